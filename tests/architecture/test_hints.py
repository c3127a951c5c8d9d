"""An error that tells a user to give an option names one that exists."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from dumpscope.cli.app import COMMANDS, ROOT_OPTIONS, load_command
from dumpscope.texts import LANGUAGES, catalogue

SOURCE = Path(__file__).resolve().parents[2] / "backend" / "dumpscope"
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")


def options_in_errors() -> Iterator[tuple[str, str]]:
    """Option and place of every option that a text of an error names: its id in a catalogue, or the line of code."""
    for language in LANGUAGES:
        for key, text in catalogue(language)["said"].items():
            for option in OPTION.findall(text):
                yield option, f"{language}: {key}"
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
                        for option in OPTION.findall(part.value):
                            yield option, f"{path.relative_to(SOURCE)}:{text.lineno}"


@pytest.fixture(scope="module")
def known() -> set[str]:
    own = {option for parameter in map(load_command, COMMANDS) for one in parameter.params for option in one.opts}
    return {*own, *(words.split()[0] for words, _ in ROOT_OPTIONS)}


def test_every_option_that_an_error_names_exists(known: set[str]) -> None:
    named = list(options_in_errors())
    assert len(named) > 20, "the texts of errors are found"
    assert [f"{place}: {option}" for option, place in named if option not in known] == []
