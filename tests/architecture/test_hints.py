"""An error that tells a user to give an option names one that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from dumpscope.cli.app import COMMANDS, load_command
from dumpscope.texts import template

SOURCE = Path(__file__).resolve().parents[2] / "backend" / "dumpscope"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def options_in_errors() -> Iterator[tuple[str, str]]:
    """Option and place of every option that a text of an error names."""
    for path in sorted(SOURCE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text())):
            if not isinstance(call, ast.Call):
                continue
            name = getattr(call.func, "attr", None) or getattr(call.func, "id", "")
            hints = [word.value for word in call.keywords if word.arg == "hint"]
            texts = [*call.args, *(word.value for word in call.keywords)] if name.endswith("Error") else hints
            for text in texts:
                for part in ast.walk(text):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str):
                        for sentence in (part.value, *sentences(part.value)):
                            for option in OPTION.findall(sentence):
                                yield option, f"{path.relative_to(SOURCE)}:{part.lineno}"


def sentences(id: str) -> Iterator[str]:
    """The sentence of this id in every language, none where it is no id."""
    for language in ("en", "zh"):
        with suppress(KeyError):
            yield template(id, language)


@pytest.fixture(scope="module")
def known() -> set[str]:
    return {option for name in COMMANDS for parameter in load_command(name).params for option in parameter.opts}


def test_every_option_that_an_error_names_exists(known: set[str]) -> None:
    named = list(options_in_errors())
    assert len(named) > 20, "the texts of errors are found"
    assert [f"{place}: {option}" for option, place in named if option not in known] == []
