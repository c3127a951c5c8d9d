"""What a file of a comparison holds: the answer whole, the calls that matter with all that is said of them, and some plots."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any, Final

from dumpscope import __version__
from dumpscope.api.one_file.asking import Ask, Held
from dumpscope.api.one_file.calls import Row, Unit, choose_calls, choose_tree, choose_units, shares
from dumpscope.api.one_file.maps import take_maps
from dumpscope.api.one_file.plots import take_first_plot, take_plots, take_run_plots
from dumpscope.api.routes.comparisons.suspects import ENTRIES
from dumpscope.errors import ConflictError
from dumpscope.texts import say

BUCKETS: Final = 1500
"""Of the strip; the page makes fewer of them where it has less room."""
NOTES: Final = 500
HOPS: Final = (1, 2)
PAIRS: Final = 40
"""Pairs of items of a suspect that unfold to all their numbers."""
SUSPECTS: Final = 10
"""Calls whose plots the file holds: suspects, else the calls that the page opens with."""
EVIDENCE_BYTES: Final = 2_000_000
"""Packed bytes after which no further call is taken; suspects always are."""
PLOT_BYTES: Final = 4_500_000
"""Packed bytes after which no further plot is taken."""

Progress = Callable[[float], None]
Check = Callable[[], None]


def collect(ask: Ask, comparison: str, check: Check, progress: Progress) -> bytes:
    """The contents as JSON. check: raises to end the work; progress: is told the share that is done"""
    held = Held(ask, check)
    top = f"/api/comparisons/{comparison}"
    record = held.take(top)
    if record is None or record["status"] != "done":
        status = "" if record is None else record["status"]
        raise ConflictError(say("api.comparison_has_no_result", status=status), hint=say("api.wait_job"))
    summary = held.look(f"{top}/summary")
    units = choose_units(summary)
    _take_answer(held, top, summary, units)
    take_maps(held, top, summary, units)
    places: list[dict[str, Any]] = []
    for number, (unit, most) in enumerate(zip(units, shares(units), strict=True)):

        def told(share: float, number: int = number) -> None:
            progress((number + share) / len(units))

        places.append(_take_unit(held, top, unit, summary, most, told))
    facts = {
        "comparison": comparison,
        "version": __version__,
        "made": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "units": len(summary["units"]),
        "calls": summary["counts"]["nodes"],
        "places": places,
    }
    return held.document(facts)


def _take_answer(held: Held, top: str, summary: dict[str, Any], units: list[Unit]) -> None:
    """The answer, and what explains words; of steps and ranks the answer names those that the file holds."""
    here = {(unit.step, unit.rank) for unit in units}
    kept = [one for one in summary["units"] if (one["step"], one["rank"]) in here]
    body = json.dumps({**summary, "units": kept}, ensure_ascii=False).encode("utf-8", "replace")
    held.keep(f"{top}/summary", {}, 200, body)
    for path in (f"{top}/origins", f"{top}/plan", "/api/metrics", "/api/rules"):
        held.take(path)
    held.take(f"{top}/notes", limit=NOTES)


def _take_unit(
    held: Held, top: str, unit: Unit, summary: dict[str, Any], most: int, progress: Progress
) -> dict[str, Any]:
    """Everything of one step and rank. Returns its calls and the rows of its tree, as the page reads them."""
    here = (unit.step, unit.rank)
    listed = held.take(f"{top}/suspects", **unit.query)["items"]
    named = [one["address"] for one in listed if one["address"] and (one["step"], one["rank"]) == here]
    named += [one["node"] for one in summary["origins"] if (one["step"], one["rank"]) == here]
    first = summary["first_no"]
    if first is not None and (first["step"], first["rank"]) == here:
        named.append(first["node"])
    suspects = list(dict.fromkeys(named))[:SUSPECTS]
    held.take(f"{top}/strip", **unit.query, buckets=BUCKETS)
    checked = held.take(f"{top}/prechecks", **unit.query)
    alone = any(checked[side]["total"] for side in ("target", "golden"))
    take_run_plots(held, top, unit)
    rows, total = choose_calls(held, top, unit, suspects, most)
    # Where nothing is wrong, the page opens with the first call and offers the one with the largest error.
    opened = suspects or [row["address"] for row in (*rows[:1], *_largest(rows))]
    tree = choose_tree(held, top, unit, [*opened, *(row["address"] for row in rows)])
    entries = [row["entry"] for branch in tree.values() for row in branch.rows.values()]
    kept: dict[str, Row] = {}
    details: dict[str, Any] = {}
    order = sorted(rows, key=lambda row: row["address"] not in opened)  # stable: what matters more stays first
    for number, row in enumerate(order):
        if row["address"] not in opened and held.size > EVIDENCE_BYTES:
            break
        node = _take_call(held, top, unit, row, alone=alone)
        if node is not None:
            kept[row["address"]] = row
            details[row["address"]] = node
        progress(0.6 * number / len(order))
    for number, name in enumerate(opened):
        if name in kept and held.size <= PLOT_BYTES:
            _take_suspect(held, top, unit, kept[name], details[name], entries)
        progress(0.6 + 0.2 * number / len(opened))
    for number, row in enumerate(kept.values()):
        if held.size > PLOT_BYTES:
            break
        take_first_plot(held, top, unit, row, details[row["address"]], summary["mode"])
        progress(0.8 + 0.2 * number / len(kept))
    return {
        **unit.query,
        "total": total,
        "calls": sorted(kept.values(), key=lambda row: int(row["order"])),
        "tree": {str(parent): {"total": one.total, "spans": one.spans()} for parent, one in tree.items()},
    }


def _largest(rows: list[Row]) -> list[Row]:
    known = [row for row in rows if row["out_score"] is not None]
    return sorted(known, key=lambda row: float(row["out_score"]), reverse=True)[:1]


def _take_call(held: Held, top: str, unit: Unit, row: Row, *, alone: bool) -> Any:
    """What is said of a call; None where the server says nothing of it. alone: some calls were run alone"""
    names = dict.fromkeys((row["address"], row["name"]))
    node = held.take(f"{top}/nodes/{row['address']}", **unit.query)
    held.take(f"{top}/nodes/{row['address']}/source", **unit.query)
    for name in names:
        held.take(f"{top}/nodes/{name}/flow", **unit.query)
        if alone:
            held.take(f"{top}/prechecks/{name}", **unit.query)
    return node


def _take_suspect(held: Held, top: str, unit: Unit, row: Row, node: Any, entries: list[int]) -> None:
    """What the page shows of a call that was picked out: who inherits its difference, the path, all numbers, all plots."""
    name = row["address"]
    held.take(f"{top}/nodes/{name}/reach", **unit.query, buckets=BUCKETS)
    _take_reached_rows(held, top, unit, name, entries)
    for hops in HOPS:
        held.take(f"{top}/nodes/{name}/path", **unit.query, hops=hops)
    for pair in node["items"][:PAIRS]:
        held.take(f"{top}/pairs/{pair['id']}")
    take_plots(held, top, unit, row, node)


def _take_reached_rows(held: Held, top: str, unit: Unit, name: str, entries: list[int]) -> None:
    """Which rows of the tree hold calls that inherit the difference, of all rows in one reply."""
    found: list[int] = []
    reply: dict[str, Any] | None = None
    for start in range(0, len(entries), ENTRIES):
        asked = ",".join(map(str, entries[start : start + ENTRIES]))
        reply = held.look(f"{top}/nodes/{name}/reach", **unit.query, entry=asked)
        found += [] if reply is None else reply["entries"]
    if reply is not None:
        body = json.dumps({**reply, "entries": found}, ensure_ascii=False).encode("utf-8", "replace")
        held.keep(f"{top}/nodes/{name}/reach", {**unit.query, "entry": "all"}, 200, body)
