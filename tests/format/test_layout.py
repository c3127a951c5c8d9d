"""File and folder names, and joining them without leaving the dump."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from dumpscope_format.paths import (
    file_name,
    inside,
    is_single,
    natural_key,
    rank_folder,
    rank_number,
    safe_join,
    step_folder,
    step_number,
)


def test_folder_names_round_trip() -> None:
    assert step_number(step_folder(12)) == 12
    assert rank_number(rank_folder(3, 99)) == 3
    assert rank_number(rank_folder(None, 99)) is None
    assert is_single(rank_folder(None, 99))
    assert is_single("rank")
    assert not is_single("rank0")


@pytest.mark.parametrize("name", ["step", "step01", "step-1", "step1 ", "Step1", "steps", "step٣"])
def test_a_folder_that_only_looks_like_a_step_is_none(name: str) -> None:
    assert step_number(name) is None


def test_natural_order_puts_rank2_before_rank10() -> None:
    assert sorted(["rank10", "rank2", "rank1", "proc3"], key=natural_key) == ["proc3", "rank1", "rank2", "rank10"]


@given(st.text(max_size=400))
def test_a_file_name_is_always_one_safe_component(item: str) -> None:
    name = file_name(item)
    assert len(name.encode(errors="surrogatepass")) <= 255
    assert "/" not in name
    assert "\0" not in name
    assert name.endswith(".pt")


def test_two_long_names_that_share_a_head_get_two_files() -> None:
    one, two = file_name("Module." + "x" * 300 + "1"), file_name("Module." + "x" * 300 + "2")
    assert one != two
    assert file_name("Functional.gelu.0.forward.input.0") == "Functional.gelu.0.forward.input.0.pt"
    assert file_name("a/b") != file_name("a_b")


@pytest.mark.parametrize(
    "part", ["../x", "a/../../x", "/etc/passwd", "..", ".", "", "a//b", "C:/x", "\\\\host\\x", "a\0b", "..\\x"]
)
def test_a_part_that_climbs_out_is_refused(tmp_path: Path, part: str) -> None:
    with pytest.raises(ValueError, match=r"name|climbs"):
        safe_join(str(tmp_path), part)


def test_a_link_out_of_the_folder_is_refused_and_one_inside_is_not(tmp_path: Path) -> None:
    root, outside = tmp_path / "root", tmp_path / "root-outside"
    root.mkdir()
    outside.mkdir()
    (root / "real").mkdir()
    os.symlink(outside, root / "out")
    os.symlink(root / "real", root / "in")
    with pytest.raises(ValueError, match="link"):
        safe_join(str(root), "out", "x.pt")
    assert safe_join(str(root), "in", "x.pt").endswith("in/x.pt")
    assert not inside(str(root), str(outside))
