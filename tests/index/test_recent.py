"""The cache of values asked for last."""

from __future__ import annotations

import pytest

from dumpscope.index.store.recent import Recent


def test_a_value_is_loaded_once_until_others_push_it_out() -> None:
    loads: list[str] = []
    recent: Recent[str, str] = Recent(2)

    def ask(key: str) -> str:
        return recent.get(key, lambda: loads.append(key) or key.upper())  # type: ignore[func-returns-value]

    assert [ask(key) for key in "abab"] == ["A", "B", "A", "B"]
    assert loads == ["a", "b"]
    ask("a")
    ask("c")  # b is the one that nobody asked for longest
    ask("a")
    assert loads == ["a", "b", "c"]
    ask("b")
    assert loads == ["a", "b", "c", "b"]


def test_without_a_key_nothing_is_kept() -> None:
    loads: list[int] = []
    recent: Recent[str, int] = Recent(2)
    for number in (1, 2):
        assert recent.get(None, lambda number=number: loads.append(number) or number) == number  # type: ignore[misc]
    assert loads == [1, 2]


def test_a_load_that_fails_keeps_nothing() -> None:
    recent: Recent[str, int] = Recent(1)

    def failing() -> int:
        raise OSError("gone")

    with pytest.raises(OSError, match="gone"):
        recent.get("a", failing)
    assert recent.get("a", lambda: 3) == 3
