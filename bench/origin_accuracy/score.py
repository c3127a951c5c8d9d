"""Compares planted pairs (`python -m planted.pairs OUT`, in tests) and counts how often the first origin is the true one.

PYTHONPATH=tests:capture python bench/origin_accuracy/score.py OUT [OUT ...] [--jobs 1] [--swap] [--only ID]
"""

from __future__ import annotations

import argparse
import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from planted.scoring import Scored, scored

WAYS = ("checkpointed", "micro", "steps", "beside")
"""What a part of the pairs has: a checkpoint, micro-batches, two steps, an inserted call right beside one of its operator."""


def entries(out: Path) -> list[dict[str, Any]]:
    return [json.loads(text) for text in (out / "pairs.jsonl").read_text().splitlines()]


def table(rows: Iterable[Scored]) -> str:
    """A line for each kind of fault, then for each way of dumping: how many of those that count are right."""
    groups: dict[str, list[Scored]] = defaultdict(list)
    for row in rows:
        entry = row.entry
        groups[f"1 {entry['cause']}"].append(row)
        if entry["cause"] == "healthy":
            groups[f"1 healthy: {entry['healthy']}"].append(row)
            continue
        noise = "with noise" if entry["noise"] else "noise-free"
        groups[f"2 {noise}, {entry['dtype']}"].append(row)
        groups[f"3 {noise}, {entry['task']}"].append(row)
        groups[f"4 {noise}, {entry['level']}"].append(row)
        groups[f"5 {noise}, {entry['phase'] or 'no kernel'}"].append(row)
        groups[f"6 {noise}, {'inserted call' if entry['insert'] is not None else 'same calls'}"].append(row)
        for way in WAYS:
            if entry[way] is True or entry[way] > 1:
                groups[f"7 {noise}, {way}"].append(row)
        groups[f"8 all {noise}"].append(row)
        groups["9 all"].append(row)
    lines = [
        "| pairs of | count | right | % | later | silent | wrong | false beside | other kind | hidden | faint | buried |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for key, some in sorted(groups.items()):
        sure = [row for row in some if row.counts]
        count = Counter(row.outcome for row in sure)
        share = f"{100 * count['right'] / len(sure):.1f}" if sure else "-"
        rest = [f"{sum(r.outcome == 'right' for r in part)}/{len(part)}" for part in (
            [row for row in some if row.reach == "hidden"], [row for row in some if row.reach == "faint"])]  # fmt: skip
        cells = [
            key[2:], len(sure), count["right"], share, count["later"], count["silent"], count["wrong"],
            sum(row.false > 0 for row in some), sum(row.other_kind for row in sure), *rest,
            sum(row.reach == "buried" for row in some),
        ]  # fmt: skip
        lines.append("| " + " | ".join(str(cell) for cell in cells) + " |")
    return "\n".join(lines)


def failing(row: Scored) -> bool:
    return bool(row.false) or (row.outcome != "right" and row.counts)


def line(row: Scored) -> str:
    """One failing pair: what was done, the truth, the answer."""
    entry, seen = row.entry, row.entry["seen"]
    done = entry["cause"] + "".join(f" {entry[key]}" for key in ("healthy", "argument", "weight") if key in entry)
    for fault in entry["run"]["faults"]:
        done = f"{fault['kind']} {fault['strength']:g} on {fault['op']}#{fault['count']}.{fault['output']}"
    done += f" insert {entry['insert']}" if entry["insert"] is not None else ""
    done += "".join(f" {way}" for way in WAYS if entry[way] is True or entry[way] > 1)
    numbers = f"owner {entry['owner'] or '-'} in {_short(seen['owner_in'])} out {_short(seen['owner_out'])}"
    numbers += f"; first {seen['first'] or '-'} {_short(seen['first_out'])}"
    for floor in entry["floors"]:
        numbers += f"; noise {_short(floor['owner_out'])} {_short(floor['first_out'])}"
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
    parser.add_argument("out", type=Path, nargs="+")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument(
        "--swap", action="store_true", help="the healthy run is the target (pairs without inserted call)"
    )
    parser.add_argument("--only", type=int, default=None, help="one pair by its id")
    options = parser.parse_args()
    some = [(out, entry) for out in options.out for entry in entries(out) if options.only in (None, entry["id"])]
    if options.swap:
        some = [one for one in some if one[1]["insert"] is None or one[1]["cause"] in ("healthy", "structure")]
    with ProcessPoolExecutor(options.jobs) as pool:
        rows = list(pool.map(scored, *zip(*some, strict=True), [options.swap] * len(some), chunksize=4))
    print(table(rows))
    several = [row for row in rows if len(row.found) > 1]
    if several:
        print(
            f"of {sum(len(row.found) for row in several)} faults that nothing but themselves explains, in pairs with several, "
            f"{sum(sum(row.found) for row in several)} are listed"
        )
    for row in rows:
        if row.other_kind:
            print(
                f"kind: {row.entry['id']} {row.entry['cause']} named {row.kinds[0]} at {row.origins[0]} ({row.reach})"
            )
    wrong = [row for row in rows if failing(row)]
    print(f"\n{len(wrong)} failing pairs of {len(rows)}:\n")
    for row in wrong:
        print(line(row))


if __name__ == "__main__":
    main()
