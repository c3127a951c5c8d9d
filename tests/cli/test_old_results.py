"""A result file of an earlier version opens as it did there, and says the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from old_result import unpack

from cli.test_serving import get, running


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, dict[str, Any]]]:
    """REST address of the comparison, and the answers of the version that made it."""
    file, answers = unpack(tmp_path_factory.mktemp("old"))
    with running("serve", file, "--port", 0) as (address, _):
        server, _, comparison = address.partition("/comparisons/")
        assert comparison == answers["id"]
        yield f"{server}/api/comparisons/{comparison}", answers


def differing(old: Any, new: Any, where: str = "") -> list[str]:
    """Places at which what was said then is not said now; what is said besides does not count."""
    if isinstance(old, dict):
        if not isinstance(new, dict):
            return [where]
        return [one for key in old for one in differing(old[key], new.get(key), f"{where}.{key}")]
    if isinstance(old, list):
        if not isinstance(new, list) or len(new) != len(old):
            return [where]
        return [
            one
            for place, pair in enumerate(zip(old, new, strict=True))
            for one in differing(*pair, f"{where}[{place}]")
        ]
    return [] if old == new else [f"{where}: {old!r}, now {new!r}"]


@pytest.mark.parametrize("field", ["counts", "mode", "first_no"])
def test_the_summary_is_the_same(opened: tuple[str, dict[str, Any]], field: str) -> None:
    address, answers = opened
    assert differing(answers[field], get(f"{address}/summary")[field]) == []  # type: ignore[index]


@pytest.mark.parametrize(
    ("part", "query"),
    [
        ("origins", "origins"),
        ("propagated", "nodes?step=0&rank=0&class=propagated&limit=500"),
        ("worst", "nodes?step=0&rank=0&q=verdict:no+linear&sort=-out_score&limit=500"),
        ("items", "pairs?step=0&rank=0&node=Functional.softmax.1.forward&limit=100"),
    ],
)
def test_a_list_is_the_same(opened: tuple[str, dict[str, Any]], part: str, query: str) -> None:
    address, answers = opened
    assert len(answers[part]) > 0
    assert differing(answers[part], get(f"{address}/{query}")["items"]) == []  # type: ignore[index]
