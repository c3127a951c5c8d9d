"""What pyproject.toml lists is what the product imports: nothing less, and nothing for nobody."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
OURS = {"dumpscope", "dumpscope_format", "dumpscope_capture"}
BY_NAME = {"import_module", "find_spec"}  # what is loaded late or only looked up
DRIVERS = {"psycopg"}  # SQLAlchemy imports the driver that a database address names
FOR_USERS = {"pandas"}  # an extra for notebooks that read our results
TARGETS = {"torch", "torch_npu"}  # what recording runs in


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def listed(lines: list[str]) -> set[str]:
    """Distribution names of requirement lines."""
    return {canonical(re.split(r"[<>=!~;\[ ]", line)[0]) for line in lines}


def project() -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return found


def imported_names() -> Iterator[str]:
    """Top-level names of every import in product code."""
    for path in [*(ROOT / "backend").rglob("*.py"), *(ROOT / "capture").rglob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                yield from (alias.name.partition(".")[0] for alias in node.names)
            elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
                yield node.module.partition(".")[0]
            elif isinstance(node, ast.Call) and getattr(node.func, "attr", getattr(node.func, "id", "")) in BY_NAME:
                first = node.args[0] if node.args else None
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value.partition(".")[0]


def imported_distributions() -> set[str]:
    """Names as a package index knows them."""
    known = packages_distributions()
    others = {name for name in imported_names() if name not in sys.stdlib_module_names and name not in OURS}
    return {canonical(dist) for name in others for dist in known.get(name, [name])}


def test_every_dependency_is_imported_by_product_code() -> None:
    assert listed(project()["dependencies"]) - imported_distributions() == set()  # type: ignore[arg-type]


def test_every_import_of_product_code_is_declared() -> None:
    extras: dict[str, list[str]] = project()["optional-dependencies"]  # type: ignore[assignment]
    declared = listed(project()["dependencies"])  # type: ignore[arg-type]
    declared |= {name for extra, lines in extras.items() if extra != "dev" for name in listed(lines)}
    targets = {canonical(name) for name in TARGETS}
    assert imported_distributions() - declared - targets == set()


def test_every_extra_serves_product_code_or_its_users() -> None:
    extras: dict[str, list[str]] = project()["optional-dependencies"]  # type: ignore[assignment]
    given = {name for extra, lines in extras.items() if extra != "dev" for name in listed(lines)}
    assert given - imported_distributions() - DRIVERS - FOR_USERS - {canonical(name) for name in TARGETS} == set()
