"""Command line of a script that runs one region of compiled code."""

from __future__ import annotations

import argparse
import copy
import json
import os
import sys
from typing import Any, Final

import torch

from dumpscope_capture.replay.arguments import Case
from dumpscope_capture.replay.judging import ERROR, ORDER, WARNING, Judgement
from dumpscope_capture.replay.region_reports import RegionReport
from dumpscope_capture.replay.regions import BACKENDS
from dumpscope_capture.replay.reporting import line
from dumpscope_capture.replay.targets import DEVICE_REMEDY, load_npu, missing_device, run_prelude

ROW_LIMIT: Final = 6
"""Results that are shown of a backend."""


def run_region(call: dict[str, Any], script: str, words: list[str] | None = None) -> int:
    """Run the region with the options. Exit status: 0 right; 1 wrong here or in the dump, or an error; 2 bad usage."""
    options = region_parser(call).parse_args(words)
    data = options.data or os.path.join(os.path.dirname(os.path.abspath(script)), call["data"])
    call = {**copy.deepcopy(call), "data": data}
    try:
        load_npu([options.device])
        if options.prelude:
            run_prelude(options.prelude)
    except Exception as error:
        print(f"the script cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    lacking = missing_device([options.device])
    if lacking:
        print(f"the script cannot start: {lacking} ({DEVICE_REMEDY})", file=sys.stderr)
        return 2
    if options.no_backward:
        call["backward"] = "none"
    backends = options.backends.split(",") if options.backends else known_backends(call["backend_name"])
    try:
        report = RegionReport(
            call, Case(device=options.device, seed=options.seed), backends, search=not options.no_search
        )
    except (LookupError, OSError) as error:
        print(f"the graph cannot be run: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(report.document()))
    else:
        show_region(report)
    return int(ERROR in (report.verdict, report.recorded_verdict))


def known_backends(recorded: str) -> list[str]:
    """The backends of every torch, and the recorded one."""
    return list(dict.fromkeys((*BACKENDS, *([recorded] if recorded else []))))


def region_parser(call: dict[str, Any]) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=f"Run {call['name']} alone with each backend.", allow_abbrev=False)
    made.add_argument("--data", help=f"folder of its tensor files [{call['data']}]".replace("%", "%%"))
    made.add_argument("--device", default="cpu", help="cpu, cuda, npu, cuda:1 ... [%(default)s]")
    made.add_argument("--backends", help=f"with commas [{','.join(known_backends(call['backend_name']))}]")
    made.add_argument("--seed", type=int, default=1234, help="of random numbers whose state was not recorded")
    made.add_argument("--no-backward", action="store_true")
    made.add_argument("--no-search", action="store_true", help="do not look for the smallest wrong part")
    made.add_argument("--json", action="store_true", help="one JSON document on the last line")
    made.add_argument(
        "--prelude", metavar="FILE", help="Python file or module to run first: custom operators, a backend"
    )
    return made


def show_region(report: RegionReport) -> None:
    call, region = report.call, report.region
    print(
        f"{call['name']} on {report.case.device}, torch {torch.__version__}: {len(region.graph.nodes)} operations, "
        f"recorded with {call['backend_name'] or 'an unknown backend'}"
    )
    for note in call["notes"]:
        print(f"  note: {note}")
    rows = {**report.judged, "in the dump": report.recorded} if not report.error else {}
    for title, judged in rows.items():
        ran = report.ran.get(title)
        if ran is not None and ran.error:
            print(f"  {title:11} {report.verdict_of(title):8} {ran.error}")
        for row in rows_of(report, judged):
            print(f"  {title:11} {row}")
    for backend, found in report.narrowed.items():
        for row in rows_of(report, found.check.judged) if found is not None else ():
            print(f"  {backend:11} {row}, from inputs of eager code")
    for sentence in report.sentences():
        print(sentence)


def rows_of(report: RegionReport, judged: dict[str, Judgement]) -> list[str]:
    """The worst results, and how many there are."""
    ordered = sorted(judged.items(), key=lambda one: (ORDER.index(one[1].verdict), one[1].units), reverse=True)
    bad = [one for one in ordered if one[1].verdict in (WARNING, ERROR)]
    shown = bad[:ROW_LIMIT] or ordered[:1]
    rows = [f"{one.verdict:8} {report.item(item):24} {line(one)}" for item, one in shown]
    rest = len(judged) - len(shown)
    if rest and rows:
        rows[-1] += f" ({rest} more result{'s' * (rest > 1)}, no worse)"
    return rows
