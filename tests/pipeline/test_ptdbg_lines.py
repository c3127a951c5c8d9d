"""Every kind of line of a ptdbg dump, written, read and compared: equal ones agree, changed ones do not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.domain.facts import Verdict
from dumpscope.domain.records import item_name
from dumpscope.domain.result import Unit
from pipeline.comparing import compare

NAME = "Functional_relu_0_forward_output"
DOTTED = "Functional.relu.0.forward.output"
ARRAY = [1.0, 2.0, -3.0]


def dump(folder: Path, lines: list[Any], *, array: list[float] | None = None, stem: str = "dump") -> Path:
    rank = folder / "tag" / "rank0"
    rank.mkdir(parents=True)
    (rank / f"{stem}.pkl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if array is not None:
        (rank / stem).mkdir()
        for line in lines:
            if len(line) > 2:
                np.save(rank / stem / f"{line[0]}.npy", np.array(array, np.float32))
    return folder


def verdicts(target: Path, golden: Path) -> list[Verdict]:
    _, (unit,) = compare(target, golden)
    assert isinstance(unit, Unit)
    return [Verdict(code) for code in unit.item_opinions.verdict.tolist()]


@pytest.mark.parametrize(
    ("line", "place", "value"),
    [
        ([NAME, 1, [], "torch.float32", [3], [2.0, -3.0, 0.0]], 5, [2.5, -3.0, 0.2]),
        ([NAME, 0, [], "torch.float32", [3], [2.0, -3.0, 0.0, 3.7]], 5, [2.0, -3.0, 0.0, 5.0]),
        ([DOTTED, 0, [], "torch.bfloat16", [3], [2.0, -3.0, 0.0, 3.7]], 5, [9.0, -3.0, 2.0, 9.5]),
        ([NAME, 0, [], "torch.float32", [3], [math.nan, -3.0, 0.0, 3.7]], 5, [2.0, -3.0, 0.0, 3.7]),
        ([NAME, 0, [], "torch.int64", [], [3, 3, 3, "Nan"]], 5, [4, 4, 4, "Nan"]),
        ([DOTTED, 0, "0a1b2c3d", "torch.float32", [3], []], 2, "ffffffff"),
        ([NAME, 0, [], "<class 'int'>", "[]", [3, 3, 3, 3]], 5, [4, 4, 4, 4]),
        ([NAME, 1, [], "<class 'bool'>", "[]", [True] * 3], 5, [False] * 3),
        ([NAME, 1, [], "<class 'float'>", "[]", [0.5] * 3], 5, [math.inf] * 3),
        ([NAME, 0, [], "torch.float32", [3], [2.0, -3.0, 0.0, 3.7]], 4, [4]),
        ([NAME, 101, [], "torch.float32", [3], [2.0, -3.0, 0.0, 3.7]], 5, [math.inf, -3.0, 0.0, 3.7]),
    ],
)
def test_an_equal_line_agrees_and_a_changed_one_does_not(
    tmp_path: Path, line: list[Any], place: int, value: Any
) -> None:
    change = [*line[:place], value, *line[place + 1 :]]
    one, same, other = (dump(tmp_path / name, [text]) for name, text in (("a", line), ("b", line), ("c", change)))
    assert verdicts(one, same) == [Verdict.YES]
    assert verdicts(other, one) == [Verdict.NO]


@pytest.mark.parametrize(("on_target", "word"), [(True, "target"), (False, "golden")])
def test_a_result_that_is_a_tensor_on_one_side_alone_is_the_evidence(
    tmp_path: Path, on_target: bool, word: str
) -> None:
    given = ["Functional_relu_0_forward_input.0", 0, [], "torch.float32", [3], [2.0, -3.0, 0.0, 3.7]]
    tensor = [NAME, 0, [], "torch.float32", [3], [2.0, 0.0, 0.5, 2.0]]
    plain = [NAME, 0, [], "<class 'float'>", "[]", [2.0] * 4]
    sides = [dump(tmp_path / name, [given, line]) for name, line in (("tensor", tensor), ("plain", plain))]
    answer, (unit,) = compare(*(sides if on_target else sides[::-1]))
    assert [Verdict(code) for code in unit.item_opinions.verdict.tolist()] == [Verdict.YES, Verdict.NO]
    (origin,) = answer.origins
    assert f"output: a tensor in the {word} only." in origin.evidence


@pytest.mark.parametrize("fields", [5, 6])
def test_overflow_files_are_compared_by_their_tensors(tmp_path: Path, fields: int) -> None:
    head = [NAME, 101, [], "torch.float32", [3]]
    line, overflown = (
        [*head, stats][:fields] for stats in ([2.0, -3.0, 0.0, 3.7], [math.inf, -3.0, math.inf, math.inf])
    )
    stem = "Overflow_info_20230609_010203_1" if fields == 5 else "Functional_relu_0_forward_1"
    one, same, other = (
        dump(tmp_path / name, [text], array=array, stem=stem)
        for name, text, array in (("a", line, ARRAY), ("b", line, ARRAY), ("c", overflown, [1.0, math.inf, -3.0]))
    )
    assert verdicts(one, same) == [Verdict.YES]
    assert verdicts(other, one) == [Verdict.NO]


def test_arrays_without_records_are_compared(tmp_path: Path) -> None:
    lines = [[NAME, 0, [], "torch.float32", [3], [2.0, -3.0, 0.0, 3.7]]]
    one, same, other = (
        dump(tmp_path / name, lines, array=array)
        for name, array in (("a", ARRAY), ("b", ARRAY), ("c", [1.0, 5.0, -3.0]))
    )
    for folder in (one, other):
        (folder / "tag" / "rank0" / "dump.pkl").unlink()
    assert verdicts(one, same) == [Verdict.YES]
    assert verdicts(other, same) == [Verdict.NO]


number = st.floats(allow_nan=True, allow_infinity=True, width=32) | st.integers(-(2**40), 2**40)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["relu", "add_", "__add__", "convolution.default"]), st.integers(0, 99),
            st.sampled_from(["forward", "backward"]), st.sampled_from(["input.0", "input.1.0", "output"]),
            st.lists(number, min_size=4, max_size=4), st.lists(st.integers(0, 9), max_size=3),
        ),
        max_size=12, unique_by=lambda part: part[:4],
    )
)  # fmt: skip
def test_a_dump_in_one_form_equals_itself_in_the_other(
    tmp_path_factory: pytest.TempPathFactory, parts: list[Any]
) -> None:
    folder = tmp_path_factory.mktemp("pair")
    parts = sorted(parts, key=lambda part: (part[2] == "backward", part[1], part[0], part[3]))
    last = ("zz", 0, "forward", "output", [1.0] * 4, [1])
    sides = [
        dump(
            folder / name,
            [
                [mark.join(("Torch", op, str(index), way, item)), 0, [], "torch.float32", shape, stats]
                for op, index, way, item, stats, shape in (*parts, last)
            ],
        )
        for mark, name in (("_", "under"), (".", "dotted"))
    ]
    answer, (unit,) = compare(*sides)
    items = unit.items
    assert ((items.target >= 0) & (items.golden >= 0)).all()
    for t, g in zip(items.target.tolist(), items.golden.tolist(), strict=True):
        one, other = (
            item_name(*place).replace("_", "").replace(".", "") for place in ((unit.target, t), (unit.golden, g))
        )
        assert one == other
    assert answer.counts.no == 0
    assert answer.origins == []
