"""What stands in for newer Pythons behaves like them on all."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, field

import pytest

from dumpscope_format.older_python import dataclass, without_prefix, without_suffix


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    name: str = "origin"
    x: int
    marks: list[int] = field(default_factory=list)
    y: int


def test_a_field_without_default_may_follow_one_with():
    point = Point(x=1, y=2)
    assert (point.name, point.x, point.y, point.marks) == ("origin", 1, 2, [])
    assert Point(y=2, x=1, name="a") == Point(name="a", x=1, y=2)
    with pytest.raises(FrozenInstanceError):
        point.x = 3


def test_ends_of_a_text_are_cut_where_they_are_there():
    assert [without_prefix(text, "torch.") for text in ("torch.float", "float", "")] == ["float", "float", ""]
    assert [without_suffix(text, ".forward") for text in ("relu.0.forward", "relu.0", ".forward")] == [
        "relu.0", "relu.0", "",
    ]  # fmt: skip
    assert without_prefix("a", "") == without_suffix("a", "") == "a"
