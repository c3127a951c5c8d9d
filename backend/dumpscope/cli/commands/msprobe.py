"""`dumpscope msprobe`: msprobe's command lines, turned into those of dumpscope before any command is looked up.

    dumpscope msprobe -f pytorch compare -i compare.json -o out

Both generations are taken: with `-f FRAMEWORK` and a compare.json, and with -tp and -gp. Options that only change what msprobe
prints, or that ask for what dumpscope always does, have no effect.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, NoReturn

from dumpscope.cli.exit_codes import COMPARED
from dumpscope.cli.parser import Argument, Command
from dumpscope.errors import UsageError
from dumpscope.texts import say

ELSEWHERE: Final = {
    "graph": "cli.msprobe_graph",
    "graph_visualize": "cli.msprobe_graph",
    "run_overflow_check": "cli.msprobe_run_overflow_check",
    "op_generate": "cli.msprobe_op_generate",
    "merge_result": "cli.msprobe_merge_result",
    "parse": "cli.msprobe_parse",
}
"""msprobe's commands that no single command of dumpscope stands for, and the sentence that says what does the work here."""


def msprobe(
    command: Command,
    line: Annotated[list[str] | None, Argument(metavar="COMMAND [OPTIONS]")] = None,
) -> int:
    """Take a command line of msprobe, print the same in words of dumpscope, and run that. Returns the exit status."""
    assert not line, "translated before"
    print(command.get_help())
    return COMPARED


def translate_line(arguments: Sequence[str]) -> list[str]:
    """The arguments of dumpscope that do what a line of msprobe, without the word msprobe, asks for.

    Raises UsageError for a line that msprobe does not know either, or that dumpscope has no equivalent of.
    """
    rest = list(arguments)
    if rest[:1] in (["-f"], ["--framework"]):
        del rest[:2]
    command, *options = rest or [""]
    if command in ELSEWHERE:
        raise UsageError(say("cli.msprobe_no_equivalent", command=command), hint=say(ELSEWHERE[command]))
    if command not in _COMMANDS:
        raise UsageError(
            say("cli.msprobe_unknown_command", command=f"{command!r}"),
            hint=say("cli.msprobe_commands", commands=", ".join([*_COMMANDS, *ELSEWHERE])),
        )
    return _COMMANDS[command](options)


class _Parser(argparse.ArgumentParser):
    """msprobe's own options of one command; `add` names them as msprobe does."""

    def __init__(self, command: str) -> None:
        super().__init__(prog=f"msprobe {command}", add_help=False, allow_abbrev=False)
        self.command = command

    def ignore(self, *flags: str) -> None:
        """Options without an argument that change nothing here."""
        for flag in flags:
            self.add_argument(flag, action="store_true", dest="ignored")

    def read(self, options: Sequence[str]) -> argparse.Namespace:
        return self.parse_args(list(options))

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            say("cli.msprobe_bad_option", command=self.command, message=message),
            hint=say("cli.msprobe_see_help"),
        )


def _compare(options: Sequence[str]) -> list[str]:
    parser = _Parser("compare")
    parser.add_argument("-i", "--input_path", dest="config")
    parser.add_argument("-tp", "--target_path", dest="target")
    parser.add_argument("-gp", "--golden_path", dest="golden")
    parser.add_argument("-o", "--output_path", dest="output", default="./output")
    parser.add_argument("-m", "--mode", default="auto")
    parser.add_argument("--xlsx", action="store_true")
    parser.add_argument("-fm", "-f", "--fuzzy_match", dest="fuzzy", action="store_true")
    parser.add_argument("-cm", "--cell_mapping", dest="cell")
    parser.add_argument("-dm", "--data_mapping", dest="data")
    parser.add_argument("-lm", "--layer_mapping", dest="layer")
    parser.add_argument("-am", "--api_mapping", dest="api", nargs="?", const="")
    parser.add_argument("--rank")
    parser.add_argument("--step")
    parser.ignore("-s", "--stack_mode", "-c", "--compare_only", "-hl", "--highlight", "-da", "--diff_analyze")
    parser.ignore("-tensor_log", "--is_print_compare_log")
    given = parser.read(options)
    if given.mode != "auto":
        raise UsageError(say("cli.msprobe_mode", mode=given.mode))
    if given.api:
        raise UsageError(say("cli.msprobe_api_mapping"), hint=say("cli.msprobe_api_mapping_hint"))
    target, golden = (given.target, given.golden) if given.config is None else _two_sides(given.config)
    if target is None or golden is None:
        raise UsageError(say("cli.msprobe_two_sides"), hint=say("cli.msprobe_two_sides_hint"))
    line = ["compare", target, golden, "-o", given.output]
    line += ["--format", "xlsx"] if given.xlsx else []
    line += ["--fuzzy"] if given.fuzzy else []
    for option, value in (
        ("--cell-mapping", given.cell),
        ("--data-mapping", given.data),
        ("--layer-mapping", given.layer),
    ):
        line += [option, value] if value else []
    for option, value in (("--rank", given.rank), ("--step", given.step)):
        line += [option, value] if value else []
    return line


def _two_sides(config: str) -> tuple[str, str]:
    """`npu_path` and `bench_path` of a compare.json."""
    try:
        found: Any = json.loads(Path(config).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise UsageError(error.strerror or str(error), where=config) from None
    except ValueError as error:
        raise UsageError(say("cli.msprobe_no_json", error=error), where=config) from None
    target, golden = (found.get("npu_path"), found.get("bench_path")) if isinstance(found, dict) else (None, None)
    if not (isinstance(target, str) and isinstance(golden, str) and target and golden):
        raise UsageError(say("cli.msprobe_config_keys"), where=config, hint=say("cli.msprobe_two_sides_hint"))
    return target, golden


def _precheck(options: Sequence[str]) -> list[str]:
    parser = _Parser("acc_check")
    parser.add_argument("-api_info", "--api_info_file", dest="dump", required=True)
    parser.add_argument("-o", "--out_path", dest="output", default="./")
    parser.add_argument("-save_error_data", dest="keep", action="store_true")
    parser.add_argument("-d", "--device", dest="device", nargs="+", type=int)
    parser.add_argument("-csv_path", "--result_csv_path", dest="resumed")
    parser.add_argument("-config", "--config_path", dest="config")
    parser.add_argument("-n", "--num_splits", dest="processes", type=int)
    parser.ignore("-j", "--jit_compile", "-f", "--filter_api")
    given = parser.read(options)
    if given.device and len(given.device) > 1:
        raise UsageError(say("cli.msprobe_one_device"))
    output = given.output if given.resumed is None else str(Path(given.resumed).parent)
    line = ["precheck", given.dump, "-o", output]
    line += ["--resume"] if given.resumed is not None else []
    line += ["--save-error-data"] if given.keep else []
    line += ["--device", _device(given.device[0] if given.device else 0)]
    line += ["--config", given.config] if given.config else []
    line += ["--jobs", str(given.processes)] if given.processes is not None else []
    return line


def _device(number: int) -> str:
    """The accelerator that msprobe would run on: of an NPU or a GPU by number, else the CPU."""
    if find_spec("torch_npu") is not None:
        return f"npu:{number}"
    return f"cuda:{number}" if Path("/dev/nvidia0").exists() else "cpu"


def _precheck_compare(options: Sequence[str]) -> list[str]:
    parser = _Parser("api_precision_compare")
    parser.add_argument("-npu", "--npu_csv_path", dest="mine", required=True)
    parser.add_argument("-gpu", "--gpu_csv_path", dest="other", required=True)
    parser.add_argument("-o", "--out_path", dest="output", default="./")
    given = parser.read(options)
    return ["precheck-compare", given.mine, given.other, "-o", given.output]


def _overflow(options: Sequence[str]) -> list[str]:
    parser = _Parser("overflow_check")
    parser.add_argument("-i", "--input_path", dest="dump", required=True)
    parser.add_argument("-o", "--output_path", dest="output")
    return ["overflow", parser.read(options).dump]


_COMMANDS: Final[dict[str, Callable[[Sequence[str]], list[str]]]] = {
    "compare": _compare,
    "acc_check": _precheck,
    "run_ut": _precheck,
    "multi_acc_check": _precheck,
    "multi_run_ut": _precheck,
    "api_precision_compare": _precheck_compare,
    "overflow_check": _overflow,
    "nan_analyze": _overflow,
}
