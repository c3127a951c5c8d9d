"""Patterns of calls and their treatments."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from dumpscope_format.interventions import InterventionError, check, is_single, matches, parse, treatment_text, words


@pytest.mark.parametrize(
    ("pattern", "met", "missed"),
    [
        ("Functional.linear.3", ["Functional.linear.3", "Functional.linear.3.backward"], ["Functional.linear.30"]),
        ("Functional.linear.3.forward", ["Functional.linear.3"], ["Functional.linear.2"]),
        ("Functional.linear.3-5", [f"Functional.linear.{n}" for n in (3, 4, 5)], ["Functional.linear.6"]),
        ("Functional.linear.0,2,7-8", [f"Functional.linear.{n}" for n in (0, 2, 8)], ["Functional.linear.1"]),
        ("Functional.linear", ["Functional.linear.0", "Functional.linear.12"], ["Functional.bilinear.0"]),
        ("Functional.linear.*", ["Functional.linear.0"], ["Functional.bilinear.0"]),
        ("Functional.*norm*", ["Functional.group_norm.0", "Functional.layer_norm.4"], ["Torch.norm.0"]),
        ("Tensor.*", ["Tensor.__add__.0"], ["Torch.add.0"]),
        ("*", ["Tensor.__add__.0"], []),
    ],
)
def test_a_pattern_means_these_calls_and_no_others(pattern: str, met: list[str], missed: list[str]) -> None:
    assert [name for name in met if not matches(pattern, name)] == []
    assert [name for name in missed if matches(pattern, name)] == []


def test_a_whole_name_is_told_from_a_pattern() -> None:
    assert is_single("Functional.linear.3")
    assert is_single("Functional.linear.3.forward")
    for pattern in (
        "Functional.linear",
        "Functional.linear.*",
        "Functional.linear.3-4",
        "Functional.*.3",
        "Functional.l?near.3",
    ):
        assert not is_single(pattern)


@given(
    label=st.from_regex(r"[A-Z][a-z]{1,8}\.[a-z_]{1,12}", fullmatch=True),
    number=st.integers(0, 10**6),
    width=st.integers(0, 50),
)
def test_a_range_holds_its_numbers_and_both_its_neighbours_are_outside(label: str, number: int, width: int) -> None:
    pattern = f"{label}.{number}-{number + width}"
    assert matches(pattern, f"{label}.{number}")
    assert matches(pattern, f"{label}.{number + width}")
    assert not matches(pattern, f"{label}.{number + width + 1}")
    assert not matches(pattern, f"{label}.{number - 1}")


@pytest.mark.parametrize(
    "treatments",
    [{"": "cpu"}, {"a": "gpu"}, {"a": "cpu+"}, {"a": "float32+float64"}, {"a": {}}, {"a": {"eps": [1]}}, {"a.5-3": "cpu"}, []],
)  # fmt: skip
def test_a_treatment_that_does_not_exist_is_refused(treatments: object) -> None:
    with pytest.raises(InterventionError):
        check(treatments)  # type: ignore[arg-type]


def test_treatments_come_as_text_or_from_a_file(tmp_path: Path) -> None:
    wanted = {"Functional.linear.*": "cpu+float32", "Torch.add": {"alpha": 2}}
    path = tmp_path / "set.json"
    path.write_text(json.dumps(wanted), encoding="utf-8")
    assert parse(json.dumps(wanted)) == parse(str(path)) == wanted
    assert words("cpu+float32") == ("cpu", "float32")
    assert treatment_text({"eps": 0.5}) == "eps=0.5"


@pytest.mark.parametrize("text", ["", "no/such/file", "{", '{"a": "b"}'])
def test_a_text_that_cannot_be_used_is_refused(text: str) -> None:
    with pytest.raises(InterventionError):
        parse(text)
