"""`dumpscope compare --dry-run`: which calls would be matched, by rule, and which would have no partner."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Final

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.opening import open_layout
from dumpscope.cli.printing import line, print_json
from dumpscope.domain.facts import unmatched_sentence
from dumpscope.domain.options import Options
from dumpscope.export.words import plural
from dumpscope.match.preview import Preview
from dumpscope.parallel.plan import write_plan
from dumpscope.pipeline.compare.in_process import preview_layouts
from dumpscope.texts import rendered, tell

SHOWN: Final = 20
"""Calls without a partner that are printed per rank; --json lists all."""


def print_dry_run(target: Path, golden: Path, options: Options, *, as_json: bool) -> int:
    with open_layout(target) as one, open_layout(golden) as other:
        found, plan = preview_layouts(one, other, options)
    if as_json:
        joined = None if plan is None else write_plan(plan)
        print_json({"schema": 1, "plan": joined, "matching": [asdict(unit) for unit in found]})
    else:
        if plan is not None:
            line(write_plan(plan).rstrip())
            line()
        for unit in found:
            _print(unit)
    return COMPARED


def _print(unit: Preview) -> None:
    methods = ", ".join(f"{count} {word}" for word, count in unit.methods.items())
    line(
        tell(
            "cli.step_rank_inside_fused_calls",
            step=unit.step,
            rank=unit.rank,
            pairs=plural(unit.pairs, "pair"),
            methods=methods,
            inside=unit.inside,
        )
    )
    for rule in unit.rules:
        line(
            "  "
            + tell("cli.rename", rule=rule.rule, labels=plural(rule.labels, "label"), pairs=plural(rule.pairs, "pair"))
        )
    line("  " + tell("cli.without_partner", calls=plural(len(unit.left), "call")))
    for left in unit.left[:SHOWN]:
        line(f"    {left.side}: {left.name} - {rendered(unmatched_sentence(left.leftover, left.beside))}")
    if len(unit.left) > SHOWN:
        line("    " + tell("cli.more_2", count=len(unit.left) - SHOWN))
