"""Command line of a script that runs one call."""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import inspect
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import get_testing_overrides

from dumpscope_capture.replay.arguments import Case
from dumpscope_capture.replay.cells import devices
from dumpscope_capture.replay.judging import ERROR
from dumpscope_capture.replay.matrix import conclusion, run_matrix
from dumpscope_capture.replay.reporting import Report, line
from dumpscope_capture.replay.targets import DEVICE_REMEDY, function, load_npu, missing_device, run_prelude

FLOATS = ("float16", "bfloat16", "float32", "float64")


def scalars(call: dict[str, Any]) -> Iterator[tuple[str, list[Any], Any]]:
    """(option, path in the document, value) of every scalar of a call: `eps`, `arg2`, `arg1.0`."""

    def walk(name: str, way: list[Any], value: Any) -> Iterator[tuple[str, list[Any], Any]]:
        if isinstance(value, dict):
            if "float" in value:
                yield name, way, float(value["float"])
            for key in ("tuple", "dict"):
                if key in value:
                    inner = value[key].items() if key == "dict" else enumerate(value[key])
                    for part, held in inner:
                        yield from walk(f"{name}.{part}", [*way, key, part], held)
        elif isinstance(value, list):
            for part, held in enumerate(value):
                yield from walk(f"{name}.{part}", [*way, part], held)
        else:
            yield name, way, value

    names = call["names"]
    for place, value in enumerate(call["args"]):
        yield from walk(names[place] if place < len(names) and names[place] else f"arg{place}", ["args", place], value)
    for key, value in call["kwargs"].items():
        yield from walk(key, ["kwargs", key], value)


def main(call: dict[str, Any], script: str, words: list[str] | None = None) -> int:
    """Run the call with the options. Exit status: 0 right; 1 wrong here or in the dump, or an error; 2 bad usage."""
    data = os.path.join(os.path.dirname(os.path.abspath(script)), call["data"])
    call = {**copy.deepcopy(call), "data": data, "names": call["names"] or argument_names(call["target"])}
    found = list(scalars(call))
    asked = parser(call, found)
    options = asked.parse_args(words)
    try:
        load_npu([options.device, *(options.devices or "").split(",")])
        if options.prelude:
            run_prelude(options.prelude)
    except Exception as error:
        print(f"the script cannot start: {type(error).__name__}: {error}", file=sys.stderr)
        return 2
    several: dict[str, list[str]] = {}
    for name, way, value in found:
        text = getattr(options, f"scalar:{name}")
        if text is None:
            continue
        if "," in text and not isinstance(value, str):
            if not options.matrix:
                asked.error(f"--{name}: several values are for --matrix")
            several[name] = [one.strip() for one in text.split(",")]
        else:
            set_value(call, way, parse_value(text))
    if options.no_backward:
        call["backward"] = "none"
    case = Case(
        device=options.device, dtype=options.dtype, layout=options.layout, storage=options.storage_format,
        deterministic=options.deterministic, seed=options.seed,
    )  # fmt: skip
    on = [options.device]
    if options.matrix:
        on = options.devices.split(",") if options.devices else devices()
    lacking = missing_device(on)
    if lacking:
        print(f"the script cannot start: {lacking} ({DEVICE_REMEDY})", file=sys.stderr)
        return 2
    if options.matrix:
        changed = [
            f"--{name}={text}"
            for name, _, _ in found
            if name not in several and (text := getattr(options, f"scalar:{name}")) is not None
        ]
        passed = [f"--data={options.data}", *changed]
        passed += [f"--prelude={options.prelude}"] if options.prelude else []
        passed += ["--no-backward"] if options.no_backward else []
        print(f"{call['name']}: {', '.join(['device, dtype, layout, order of sums', *several])}")
        cells = run_matrix([os.path.abspath(script), *passed], call, case, on, several, options.logs)
        said = conclusion(cells, call)
        print("\n".join(said))
        if options.save:
            with open(options.save, "w", encoding="utf-8") as stream:
                json.dump({"cells": [cell.document() for cell in cells], "said": said}, stream, indent=1)
        return int(any(cell.fails for cell in cells))
    report = Report(call, options.data, case)
    if options.json:
        print(json.dumps(report.document()))
    else:
        show(report)
    return int(ERROR in (report.verdict, report.recorded_verdict))


def argument_names(target: str) -> list[str]:
    """Names of a function's positional arguments according to torch; empty where unknown."""
    with contextlib.suppress(LookupError, ValueError, TypeError):
        called = function(target)
        known = inspect.signature(get_testing_overrides().get(called, called)).parameters.values()
        return [one.name for one in known if one.kind is not inspect.Parameter.VAR_POSITIONAL]
    return []


def parser(call: dict[str, Any], found: list[tuple[str, list[Any], Any]]) -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=f"Run {call['name']} alone and judge it.", allow_abbrev=False)
    made.add_argument("--data", default=call["data"], help="folder of its tensor files [%(default)s]")
    made.add_argument("--device", default="cpu", help="cpu, cuda, npu, cuda:1 ... [%(default)s]")
    made.add_argument("--dtype", default="recorded", choices=("recorded", *FLOATS))
    made.add_argument("--layout", default="recorded", choices=("recorded", "contiguous"))
    made.add_argument("--storage-format", default="recorded", choices=("recorded", "nd"), help="of tensors on an NPU")
    made.add_argument("--deterministic", action="store_true", help="deterministic kernels only")
    made.add_argument("--seed", type=int, default=1234, help="of random calls and of tensors that are made up")
    made.add_argument("--no-backward", action="store_true")
    made.add_argument("--matrix", action="store_true", help="every device, dtype, layout and order, a process each")
    made.add_argument("--devices", help="of the matrix, with commas [all of this machine]")
    made.add_argument("--save", metavar="FILE", help="write the matrix as JSON as well")
    made.add_argument("--logs", metavar="DIR", help="a folder below it for each run of the matrix: output, device log")
    made.add_argument("--json", action="store_true", help="one JSON document on the last line")
    made.add_argument(
        "--prelude", metavar="FILE", help="Python file or module to run first: custom operators, a backend"
    )
    values = made.add_argument_group(
        "values of the call", "with --matrix several, with commas: each beside the recorded one"
    )
    for name, _, value in found:
        values.add_argument(f"--{name}", dest=f"scalar:{name}", metavar="VALUE", help=f"[{value!r}]".replace("%", "%%"))
    return made


def set_value(call: dict[str, Any], way: list[Any], value: Any) -> None:
    place: Any = call
    for part in way[:-1]:
        place = place[part]
    place[way[-1]] = value


def parse_value(text: str) -> Any:
    """The value of an option: a number, True, None...; nan and infinities by name; anything else is a text."""
    if text.lower() in ("nan", "inf", "-inf"):
        return {"float": text.lower()}
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def show(report: Report) -> None:
    call, case = report.call, report.case
    print(f"{call['name']} on {case.device}, torch {torch.__version__}, dtype {case.dtype}, layout {case.layout}")
    for note in call["notes"]:
        print(f"  note: {note}")
    if report.outcome.grads != "none":
        print(f"  backward begun with: {report.outcome.grads}")
    for title, judged in (("here", report.here), ("in the dump", report.recorded)):
        for item, one in judged.items():
            print(f"  {title:11} {item:24} {one.verdict:8} {line(one)}")
    for item, same in report.matches.items():
        print(f"  {item}: {'bit for bit as recorded' if same else 'not bit for bit as recorded'}")
    for sentence in report.sentences():
        print(sentence)
