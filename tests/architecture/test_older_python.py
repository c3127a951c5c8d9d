"""The recorder is written in what Python 3.8 has. Everywhere, also where no such interpreter is at hand to try."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

CAPTURE = Path(__file__).resolve().parents[2] / "capture"
SHIM: Final = CAPTURE / "dumpscope_format" / "older_python.py"

METHODS: Final = {"removeprefix", "removesuffix", "is_relative_to", "with_stem", "bit_count", "hardlink_to"}
"""Methods that came after 3.8; `without_prefix` and `without_suffix` of older_python stand in for the first two."""

NAMES: Final = {
    "typing": {"NotRequired", "Required", "Self", "TypeAlias", "ParamSpec", "Annotated", "Never", "Unpack", "override"},
    "functools": {"cache"},
    "itertools": {"pairwise", "batched"},
    "math": {"lcm", "nextafter", "ulp"},
    "contextlib": {"aclosing", "chdir"},
    "types": {"GenericAlias", "UnionType", "NoneType"},
    "enum": {"StrEnum"},
    "datetime": {"UTC"},
    "dataclasses": {"KW_ONLY"},
    "sys": {"exception", "orig_argv", "stdlib_module_names"},
    "random": {"randbytes"},
    "ast": {"unparse"},
}
"""Names that came after 3.8. They may be imported for type checkers, and used behind a test of the version."""

BUILT_IN: Final = {"list", "dict", "tuple", "set", "frozenset", "type"}
COLLECTIONS: Final = {
    "collections.abc",
    "collections",
    "contextlib",
    "queue",
    "weakref",
    "os",
    "re",
    "subprocess",
    "functools",
}


def newer_parts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, what) of each part of a module that Python 3.8 would not run."""
    generic = set(BUILT_IN)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in COLLECTIONS:
            generic |= {name.asname or name.name for name in node.names}
    yield from _look(tree, generic)


def _look(node: ast.AST, generic: set[str]) -> Iterator[tuple[int, str]]:
    if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
        return
    if isinstance(node, ast.If) and "sys.version_info" in ast.unparse(node.test):
        return
    if isinstance(node, ast.Match):
        yield node.lineno, "match"
    if isinstance(node, ast.ImportFrom) and node.module in NAMES:
        yield from ((node.lineno, name.name) for name in node.names if name.name in NAMES[node.module])
    if isinstance(node, ast.Attribute):
        owner = node.value.id if isinstance(node.value, ast.Name) else ""
        if node.attr in METHODS or node.attr in NAMES.get(owner, ()):
            yield node.lineno, node.attr
    if isinstance(node, ast.Call):
        yield from ((node.lineno, word) for word in _newer_keywords(node))
    if isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in generic:
        yield node.lineno, ast.unparse(node)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        starred = any(isinstance(part, ast.Starred) for part in node.slice.elts)
        if starred:
            yield node.lineno, ast.unparse(node)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = {ast.unparse(node.left), ast.unparse(node.right)}
        if sides & {*BUILT_IN, "None", "int", "float", "str", "bool", "bytes"}:
            yield node.lineno, ast.unparse(node)
    for field, child in ast.iter_fields(node):
        if field in (
            "annotation",
            "returns",
        ):  # texts, as every module begins with `from __future__ import annotations`
            continue
        for one in child if isinstance(child, list) else [child]:
            if isinstance(one, ast.AST):
                yield from _look(one, generic)


def _newer_keywords(call: ast.Call) -> list[str]:
    words = {keyword.arg for keyword in call.keywords}
    if isinstance(call.func, ast.Name) and call.func.id == "zip" and "strict" in words:
        return ["zip(strict=)"]
    plain = ast.unparse(call.func) == "dataclasses.dataclass"
    return ["dataclass(slots=, kw_only=)"] if plain and words & {"slots", "kw_only"} else []


def _takes_plain_dataclass(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "dataclasses"
        and any(name.name == "dataclass" for name in node.names)
        for node in ast.walk(tree)
    )


def _asks_for_more(tree: ast.Module) -> bool:
    return any(
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "dataclass"
        and {keyword.arg for keyword in node.keywords} & {"slots", "kw_only"}
        for node in ast.walk(tree)
    )


@pytest.mark.parametrize("path", sorted(CAPTURE.rglob("*.py")), ids=lambda path: path.relative_to(CAPTURE).as_posix())
def test_no_module_of_the_recorder_needs_a_newer_python(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert list(newer_parts(tree)) == []
    assert path == SHIM or not (_takes_plain_dataclass(tree) and _asks_for_more(tree)), "take older_python's dataclass"


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("Pair = tuple[int, int]", ["tuple[int, int]"]),
        ("from collections.abc import Callable\nF = Callable[[int], int]", ["Callable[[int], int]"]),
        ("isinstance(x, list | tuple)", ["list | tuple"]),
        ("Number = int | None", ["int | None"]),
        ("zip(a, b, strict=True)", ["zip(strict=)"]),
        ("x = name.removeprefix('torch.')", ["removeprefix"]),
        ("from typing import NotRequired", ["NotRequired"]),
        ("known[first, *rest] = 1", ["known[first, *rest]"]),
        ("x: list[int] | None = None\ndef f(a: int | str) -> dict[str, int]: ...", []),
        ("if TYPE_CHECKING:\n    from typing import TypeAlias", []),
        ("flags = os.O_RDONLY | os.O_CLOEXEC", []),
    ],
)
def test_what_a_newer_python_brought_is_seen(source: str, found: list[str]) -> None:
    assert [what for _, what in newer_parts(ast.parse(source))] == found
