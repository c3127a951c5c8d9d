"""Compares every pair of make_pairs.py and counts how often the first origin is the true one.

    python bench/origin_accuracy/score.py OUT [--keep] [--jobs 1] [--markdown]

Without --keep the dumps of pairs answered rightly are deleted (references stay), so what is left is worth a study.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dumpscope.domain.facts import Origin
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer, Side
from dumpscope.pipeline.compare import compare_rank
from dumpscope.pipeline.conclusion import conclude
from dumpscope.readers import discover, read_rank

NOWHERE = Side(path="", framework="", task="", level="", steps=[], ranks=[])
KIND = {
    "weight": "weight", "input": "input", "argument": "configuration", "structure": "structure", "nan": "overflow",
    "inf": "overflow",
}  # fmt: skip
"""Kind of origin that a cause should get; every other cause is a wrong computation."""
ABOVE_NOISE = 5.0
"""A fault counts as decidable where its deviation is this many times the noise's at the same node."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scored:
    """outcome: right, later (a true origin stands behind a false one), wrong, silent
    reach: clear (must be found), hidden (does not show at the call that owns the kernel), faint (above the noise, below a
    floor), buried (within the noise, or nothing differs in this dump)
    """

    entry: dict[str, Any]
    truth: tuple[str, ...]
    outcome: str
    reach: str
    false: int
    origins: tuple[str, ...]
    kinds: tuple[str, ...]
    other_kind: bool
    evidence: tuple[str, ...] = field(repr=False)


def compared(target: Path, golden: Path) -> Answer:
    """Compare two dumps in memory, as the command line does."""
    rivals = {(ref.step, ref.rank or 0): ref for ref in discover(golden).ranks}
    units = []
    for ref in discover(target).ranks:
        place = ref.step, ref.rank or 0
        if place in rivals:
            sides = read_rank(ref), read_rank(rivals[place])
            units.append(compare_rank(*sides, step=place[0], rank=place[1], options=Options(), threads=1))
    return conclude(units, policy="default", target=NOWHERE, golden=NOWHERE)[0]


def accepted(entry: dict[str, Any]) -> tuple[list[str], bool]:
    """Nodes that may be named, and whether the fault shows at the call that owns the kernel."""
    seen = entry["seen"]
    if entry["cause"] == "healthy":
        return [], True
    if entry["cause"] == "structure":
        if entry["level"] != "L0":
            return [entry.get("inserted", "")], True
        return [name for name in dict.fromkeys([seen["first"], seen.get("first_call", "")]) if name], False
    if entry["cause"] in ("weight", "input"):
        return [seen["first_any"]], True
    if entry["cause"] == "argument":
        return [seen.get("argument") or seen["first"]], True
    owner = entry["owner"]
    if seen["owner_out"] and not seen["owner_in"]:
        return list(dict.fromkeys([owner, seen["first"]])), True
    names = [owner, seen["first"], seen["first_any"], seen.get("first_call", ""), *seen["modules"]]
    return [name for name in dict.fromkeys(names) if name], False


def reach(entry: dict[str, Any], shows: bool) -> str:
    """How well the fault can be known from this kind of dump."""
    seen, floor = entry["seen"], entry["floor"]
    if entry["cause"] in ("healthy", "structure", "argument"):
        return "clear"
    if not seen["differing"]:
        return "buried"
    if floor and entry["cause"] not in ("weight", "input"):
        at_owner = shows and entry["owner"]
        strength = seen["owner_out"] if at_owner else seen["first_out"]
        noise = floor["owner_out"] if at_owner else floor["first_out"]
        if strength < ABOVE_NOISE * (noise or 0.0):
            return "buried"
        if strength < 1:
            return "faint"
    return "clear" if shows else "hidden"


def scored(out: Path, entry: dict[str, Any], swap: bool = False) -> Scored:
    sides = out / entry["target"] / "dump", out / entry["golden"] / "dump"
    answer = compared(*(sides[::-1] if swap else sides))
    truth, shows = accepted(entry)
    step = entry["seen"]["step"]
    right = [origin.step == step and origin.node in truth for origin in answer.origins]
    false = sum(1 for o, good in zip(answer.origins, right, strict=True) if not good and not _excused(o, entry))
    return Scored(
        entry=entry, truth=tuple(truth), reach=reach(entry, shows), outcome=_outcome(right, truth, false), false=false,
        origins=tuple(f"{o.step}/{o.node}" if entry["steps"] > 1 else o.node for o in answer.origins),
        kinds=tuple(o.kind for o in answer.origins),
        other_kind=bool(right and right[0] and answer.origins[0].kind != KIND.get(entry["cause"], "computation")),
        evidence=tuple(o.evidence for o in answer.origins),
    )  # fmt: skip


def _excused(origin: Origin, entry: dict[str, Any]) -> bool:
    """An inserted call is a true difference of structure."""
    return origin.kind == "structure" and entry["insert"] is not None


def _outcome(right: list[bool], truth: list[str], false: int) -> str:
    if not truth:
        return "wrong" if false else "right"
    if not right:
        return "silent"
    if right[0]:
        return "right"
    return "later" if any(right) else "wrong"


def table(rows: Iterable[Scored]) -> str:
    """Counts by cause, dtype, noise and task, and the shares that count."""
    groups: dict[tuple[str, ...], list[Scored]] = defaultdict(list)
    for row in rows:
        entry = row.entry
        head = (entry["dtype"], "noisy" if entry["noise"] else "quiet", entry["task"])
        groups["all", *head].append(row)
        groups[row.entry["cause"], *head].append(row)
        groups["all", "all", head[1], "all"].append(row)
    lines = [
        "| cause | dtype | noise | task | pairs | right | any | silent | wrong | kind | false | hidden | faint | buried |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, some in sorted(groups.items()):
        clear = [row for row in some if row.reach == "clear"]
        hidden = [row for row in some if row.reach == "hidden"]
        faint = [row for row in some if row.reach == "faint"]
        count = {word: sum(row.outcome == word for row in clear) for word in ("right", "later", "silent", "wrong")}
        cells = [
            *key, len(clear), count["right"], count["right"] + count["later"], count["silent"], count["wrong"],
            sum(row.other_kind for row in some),
            sum(row.false > 0 for row in some), f"{sum(r.outcome == 'right' for r in hidden)} of {len(hidden)}",
            f"{sum(r.outcome == 'right' for r in faint)} of {len(faint)}", sum(row.reach == "buried" for row in some),
        ]  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def failing(row: Scored) -> bool:
    if row.false:
        return True
    return row.outcome != "right" and row.reach in ("clear", "hidden")


def line(row: Scored) -> str:
    """One failing pair: what was done, the truth, the answer."""
    entry, seen = row.entry, row.entry["seen"]
    fault = entry["run"]["fault"]
    done = (
        f"{fault['kind']} {fault['strength']:g} on {fault['op']}#{fault['count']}.{fault['output']}"
        if fault
        else entry["cause"]
    )
    done += f" insert {entry['insert']}" if entry["insert"] is not None else ""
    floor = entry["floor"]
    numbers = f"owner {entry['owner'] or '-'} in {_short(seen['owner_in'])} out {_short(seen['owner_out'])}"
    numbers += f"; first {seen['first'] or '-'} {_short(seen['first_out'])}"
    if floor:
        numbers += f"; noise there {_short(floor['owner_out'])}"
    answers = "; ".join(f"{kind} {node}" for kind, node in zip(row.kinds, row.origins, strict=True)) or "no origin"
    return (
        f"- {entry['id']} {entry['model']} {entry['dtype']} {entry['task']} {entry['level']} "
        f"{'noisy' if entry['noise'] else 'quiet'}: {done} [{row.outcome}, {row.reach}, {row.false} false]\n"
        f"  truth {' or '.join(row.truth) or 'none'} ({numbers})\n  ours {answers}\n"
        + "".join(f"  > {text[:300]}\n" for text in row.evidence[:2])
    )


def _short(value: float | None) -> str:
    return "-" if value is None else "inf" if math.isinf(value) else f"{value:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--keep", action="store_true", help="keep the dumps of pairs answered rightly")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--swap", action="store_true", help="the healthy run is the target (pairs without inserted call)"
    )
    parser.add_argument("--only", type=int, default=None, help="one pair by its id")
    options = parser.parse_args()
    entries = [json.loads(text) for text in (options.out / "pairs.jsonl").read_text().splitlines()]
    entries = [one for one in entries if (options.out / one["target"]).exists() and options.only in (None, one["id"])]
    if options.swap:
        entries = [one for one in entries if one["insert"] is None or one["cause"] in ("healthy", "structure")]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(scored, [options.out] * len(entries), entries, [options.swap] * len(entries), chunksize=4))
    print(table(rows))
    for row in rows:
        if row.other_kind:
            print(
                f"kind: {row.entry['id']} {row.entry['cause']} named {row.kinds[0]} at {row.origins[0]} ({row.reach})"
            )
    wrong = [row for row in rows if failing(row)]
    print(f"\n{len(wrong)} failing pairs of {len(rows)}:\n")
    for row in wrong:
        print(line(row))
    if not options.keep:
        failed = {row.entry["id"] for row in wrong}
        for row in rows:
            if row.entry["id"] not in failed:
                shutil.rmtree(options.out / row.entry["target"])


if __name__ == "__main__":
    main()
