"""The parser of the command line: what a line means, and how help is laid out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest

from dumpscope.cli.parser import Argument, Command, Option, columns, wrap
from dumpscope.errors import UsageError


def command(asked: Callable[[dict[str, Any]], None] = lambda given: None) -> Command:
    """A command of every kind of parameter. asked: gets what the function was called with"""

    def pack(
        source: Annotated[Path, Argument()],
        target: Annotated[Path | None, Argument()] = None,
        rest: Annotated[list[str] | None, Argument(metavar="[MORE]...")] = None,
        output: Annotated[Path, Option("-o", "--output")] = Path("out"),
        level: Annotated[int, Option("--level", min=0, max=9)] = 6,
        share: Annotated[float | None, Option("--share")] = None,
        name: Annotated[list[str] | None, Option("--name")] = None,
        quiet: Annotated[bool, Option("--quiet")] = False,
    ) -> int:
        asked(locals())
        return 5

    return Command("pack", pack)


DEFAULTS = {
    "target": None, "rest": None, "output": Path("out"), "level": 6, "share": None, "name": None, "quiet": False,
}  # fmt: skip


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a", {"source": Path("a")}),
        ("a b c d", {"source": Path("a"), "target": Path("b"), "rest": ["c", "d"]}),
        ("--quiet a -o x b", {"source": Path("a"), "target": Path("b"), "output": Path("x"), "quiet": True}),
        ("a --output=x=y", {"source": Path("a"), "output": Path("x=y")}),
        ("a -ox --level 0", {"source": Path("a"), "output": Path("x"), "level": 0}),
        ("a --share -1e-3", {"source": Path("a"), "share": -0.001}),
        ("a --name p --name=q", {"source": Path("a"), "name": ["p", "q"]}),
        ("a --name -- ", {"source": Path("a"), "name": ["--"]}),
        ("- -- --quiet -o", {"source": Path("-"), "target": Path("--quiet"), "rest": ["-o"]}),
    ],
)
def test_a_line_is_read(line: str, said: dict[str, Any]) -> None:
    found: list[dict[str, Any]] = []
    assert command(found.append).run(line.split()) == 5
    assert [{name: value for name, value in one.items() if name != "asked"} for one in found] == [{**DEFAULTS, **said}]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("", "SOURCE is missing."),
        ("a --loud", "There is no option --loud."),
        ("a -xy", "There is no option -x."),
        ("a --out x", "There is no option --out. Did you mean --output?"),
        ("a --level ten", "Bad value for --level: 'ten' is no whole number"),
        ("a --level 10", "Bad value for --level: 10 is more than 9"),
        ("a --level=-1", "Bad value for --level: -1 is less than 0"),
        ("a --share x", "Bad value for --share: 'x' is no number"),
        ("a --quiet=yes", "Bad value for --quiet: it takes no value"),
        ("a -o", "Bad value for -o / --output: a value must follow"),
    ],
)
def test_a_line_that_means_nothing_is_refused_by_name(line: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        command().run(line.split())
    assert refused.value.detail == why
    if "Bad value" not in why:
        assert f"dumpscope {command().name} " in str(refused.value.hint)  # how it is written, or what lists the options


def test_an_argument_too_many_is_refused() -> None:
    def show(path: Annotated[Path, Argument()]) -> int:
        return 0

    with pytest.raises(UsageError, match="b is one argument too many"):
        Command("show", show).run(["a", "b"])


def test_help_lists_arguments_and_options_and_comes_before_what_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    one = command()
    one.help = "Pack it."
    for parameter in one.params:
        parameter.help = f"About {parameter.name}."
    assert one.run(["--quiet", "--help"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Usage: dumpscope pack [OPTIONS] SOURCE [TARGET] [MORE]...",
        "",
        "  Pack it.",
        "",
        "Arguments:",
        "  SOURCE     About source.",
        "  [TARGET]   About target.",
        "  [MORE]...  About rest.",
        "",
        "Options:",
        "  -o, --output PATH  About output. [default: out]",
        "  --level INTEGER    About level. [default: 6; 0..9]",
        "  --share NUMBER     About share.",
        "  --name TEXT        About name.",
        "  --quiet            About quiet.",
        "  --help             Show this message and exit.",
    ]


@pytest.mark.parametrize("width", [9, 20, 40])
@pytest.mark.parametrize(
    "text", ["one two three four five six seven", "比对两个 dump，并指出最先出错的算子。", "averylongword"]
)
def test_wrapped_lines_fit_and_lose_nothing(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert "".join("".join(lines).split()) == "".join(text.split())
    assert all(columns(line) <= width or " " not in line for line in lines)
