"""Every name a user can meet stands in the docs. Names are read from the code: a new one fails here until it is explained."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dumpscope.cli.app import COMMANDS, ROOT_OPTIONS, load_command
from dumpscope.domain.facts import CLASS_WORDS, COUNTS, KINDS, METHOD_WORDS, VERDICT_WORDS
from dumpscope.metrics import METRICS

ROOT = Path(__file__).resolve().parents[2]
UNEXPLAINED = {"--help"}  # the same in every program


def documents() -> list[Path]:
    top = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "examples" / "README.md"]
    return [*top, *sorted((ROOT / "docs").glob("*.md"))]


@pytest.fixture(scope="module")
def documented() -> set[str]:
    """Every word of the documents' code spans and code blocks."""
    words: set[str] = set()
    for path in documents():
        for block, span in re.findall(r"```.*?\n(.*?)```|`([^`\n]+)`", path.read_text(), re.DOTALL):
            words.update(re.findall(r"[\w/-]+", f"{block} {span}"))
    return words


def present(module: str) -> Any:
    """The module, or None while that stage of the project is not written."""
    try:
        return importlib.import_module(module) if importlib.util.find_spec(module) else None
    except ModuleNotFoundError:
        return None


def rules() -> Iterator[str]:
    module = present("dumpscope.verdict.rules")
    yield from module.VERDICT_RULES if module else ()
    causal = present("dumpscope.analysis.rules.registry")
    yield from sorted(causal.OURS) if causal else ()


def settings() -> Iterator[str]:
    module = present("dumpscope.settings")
    for name in module.Settings.model_fields if module else ():
        yield f"DUMPSCOPE_{name.upper()}"


def options() -> Iterator[str]:
    """Commands and long options of the command line, through its parsers."""
    yield "dumpscope"
    yield from (words.split()[0] for words, _ in ROOT_OPTIONS if words not in UNEXPLAINED)
    for name in COMMANDS:
        yield name
        for parameter in load_command(name).params:
            yield from (option for option in parameter.opts if option.startswith("--"))


def problems() -> Iterator[str]:
    """Kinds of problems: words given to what makes or notes one."""
    makers = {"Problem", "TensorError", "_note", "note"}
    for path in sorted((ROOT / "backend" / "dumpscope").rglob("*.py")):
        text = path.read_text()
        if not any(f"{maker}(" in text for maker in makers):
            continue
        for call in ast.walk(ast.parse(text)):
            name = (
                getattr(call.func, "attr", None) or getattr(call.func, "id", "") if isinstance(call, ast.Call) else ""
            )
            if name not in makers or "plots" in path.parts:
                continue
            assert isinstance(call, ast.Call)
            words = [
                *(word.value for word in call.keywords if word.arg == "kind"),
                *(call.args[1:2] if name in ("_note", "note") else ()),
            ]
            yield from (word.value for word in words if isinstance(word, ast.Constant) and word.value is not None)


@pytest.mark.parametrize("metric", [*(metric.name for metric in METRICS), *COUNTS])
def test_every_metric_is_explained(metric: str, documented: set[str]) -> None:
    assert metric in documented


@pytest.mark.parametrize("word", sorted({*VERDICT_WORDS, *CLASS_WORDS, *METHOD_WORDS, *KINDS}))
def test_every_verdict_class_match_and_cause_is_explained(word: str, documented: set[str]) -> None:
    assert word in documented


def test_the_kinds_of_problems_are_found_in_the_code() -> None:
    assert {"truncated", "refused", "bom", "over_budget", "missing_rank", "wrong_type"} <= set(problems())


@pytest.mark.parametrize("kind", sorted(set(problems())))
def test_every_kind_of_problem_is_explained(kind: str) -> None:
    section = (ROOT / "docs" / "dumps.md").read_text().partition("## Kinds of problems")[2].partition("\n## ")[0]
    assert f"`{kind}`" in section


@pytest.mark.parametrize("rule", sorted(set(rules())))
def test_every_rule_is_explained(rule: str, documented: set[str]) -> None:
    assert rule in documented


@pytest.mark.parametrize("setting", sorted(set(settings())))
def test_every_setting_is_explained(setting: str, documented: set[str]) -> None:
    assert setting in documented


@pytest.mark.parametrize("option", sorted(set(options())))
def test_every_command_and_option_is_explained(option: str, documented: set[str]) -> None:
    assert option in documented


@pytest.mark.parametrize("path", documents(), ids=lambda path: path.name)
def test_every_relative_link_leads_somewhere(path: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def listed() -> list[Path]:
    """Every text file that git knows."""
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, nothing to list")
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in names.split("\0") if name and (ROOT / name).is_file()]


def test_every_document_is_reached_from_the_readme() -> None:
    reached, waiting = set(), [ROOT / "README.md"]
    while waiting:
        path = waiting.pop()
        if path in reached or path.suffix != ".md":
            continue
        reached.add(path)
        links = re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", path.read_text())
        waiting += [(path.parent / link).resolve() for link in links if "://" not in link]
    documents = {path for path in listed() if path.suffix == ".md" and "tests" not in path.parts}
    assert documents - reached == set()


def test_no_file_names_a_document_that_is_not_here() -> None:
    lost = []
    for path in listed():
        if path.suffix in (".py", ".md", ".toml", ".yml", ".yaml", ".ts", ".tsx") or path.name in (
            "Makefile",
            "Dockerfile",
        ):
            for name in set(re.findall(r"(?<![\w./}])[\w.-][\w./-]*\.md\b", path.read_text())) - {".md"}:
                if not any((folder / name).exists() for folder in (path.parent, ROOT, ROOT / "docs")):
                    lost.append(f"{path.relative_to(ROOT)}: {name}")
    assert lost == []


def test_no_document_names_a_module_that_is_not_here() -> None:
    modules = [f"/{path.relative_to(ROOT).as_posix()}" for path in listed() if path.suffix in (".py", ".ts", ".tsx")]
    lost = []
    for path in documents():
        for name in re.findall(r"`((?:[\w-]+/)+[\w-]+\.(?:py|tsx?))`", path.read_text()):
            if not any(module.endswith(f"/{name}") for module in modules):
                lost.append(f"{path.name}: {name}")
    assert lost == []


def test_every_test_that_the_matrix_of_features_names_is_there() -> None:
    text = (ROOT / "docs" / "ui_matrix.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| [^|]+ \| ([^|]+) \| ([^|]*)\|$", text, re.MULTILINE)
    assert [int(number) for number, _, _ in rows] == list(range(1, 76))
    missing = []
    for number, shown, lacks in rows:
        named = re.findall(r"`([\w/]+\.py)::(\w+)`", shown)
        assert named or lacks.strip(), f"row {number} has neither a test nor a reason"
        for file, name in named:
            path = ROOT / "tests" / file
            if not path.is_file() or f"def {name}(" not in path.read_text(encoding="utf-8"):
                missing.append(f"{number}: {file}::{name}")
    assert missing == []
