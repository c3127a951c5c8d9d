"""Lines of ptdbg's text files: every kind is read, and what is broken costs only itself."""

from __future__ import annotations

import io
import json
import pickle
from typing import Any

import pytest
from hypothesis import given, strategies as st

from dumpscope.ptdbg.reader.lines import Data, Stack, looks_like_lines, read_lines
from dumpscope.readers.text_lines import LINE_LIMIT

A = ["Functional_relu_0_forward_input.0", 1, [], "torch.float32", [2, 3], [1.0, -1.0, 0.5]]
B = ["Torch.add.1.backward.output", 0, [], "torch.float16", [], [0.0, 0.0, 0.0, 2.0]]
FRAMES = [["/a b/model.py", "12", "forward", "return F.relu(x)"], ["/m.py", "3", "<module>", None]]


def read(text: str | bytes) -> tuple[list[Data | Stack], list[tuple[str, str, str]]]:
    notes: list[tuple[str, str, str]] = []
    data = text if isinstance(text, bytes) else text.encode()
    found = list(read_lines(io.BytesIO(data), lambda *note: notes.append(note)))
    return found, notes


def lines(*values: Any) -> str:
    return "".join(json.dumps(value) + "\n" for value in values)


def test_every_kind_of_line_is_read() -> None:
    (three, four, check, none, overflow, stack), notes = read(
        lines(
            A,
            B,
            ["X.y.0.forward.output", 0, "0a1b2c3d", "torch.bfloat16", [4], []],
            ["X_y_0_forward_output", 0, [], "torch.bool", [4], [[], [], [], "Nan"]],
            ["X_y_0_forward_input.0", 101, [], "torch.float16", [7]],
            ["X_y_0_forward_stack_info", FRAMES],
        )
    )
    assert notes == []
    assert three == Data(A[0], 1, None, "torch.float32", (2, 3), (1.0, -1.0, 0.5))
    assert isinstance(four, Data)
    assert (four.shape, len(four.stats)) == ((), 4)
    assert isinstance(check, Data)
    assert (check.check, check.stats) == ("0a1b2c3d", ())
    assert isinstance(none, Data)
    assert none.stats == ([], [], [], "Nan")
    assert isinstance(overflow, Data)
    assert overflow.overflow
    assert overflow.stats == ()
    assert stack == Stack(
        "X_y_0_forward_stack_info",
        ("File /a b/model.py, line 12, in forward, \n return F.relu(x)", "File /m.py, line 3, in <module>"),
    )


def test_a_python_number_has_the_text_for_a_shape_and_numbers_may_be_no_numbers() -> None:
    (one, two), notes = read(
        '["a_0_forward_input.1", 0, [], "<class \'float\'>", "[]", [NaN, NaN, NaN, NaN]]\n\n  \n'
        '["a_0_forward_input.2", 0, [], "torch.float32", [1], [Infinity, -Infinity, NaN, Infinity]]\n'
    )
    assert notes == []
    assert isinstance(one, Data)
    assert one.shape == ()
    assert isinstance(two, Data)
    assert two.stats[:2] == (float("inf"), float("-inf"))


def test_a_last_line_that_was_cut_off_is_told_with_its_place() -> None:
    found, notes = read(lines(A, B) + json.dumps(A)[:40])
    assert len(found) == 2
    ((place, kind, message),) = notes
    assert (place, kind) == ("line 3 column 1", "truncated")
    assert "0 complete records" in message


def test_faq_error_5_two_records_on_one_line_are_both_read() -> None:
    found, notes = read(json.dumps(A) + json.dumps(B) + "\n" + lines(A))
    assert [type(one) for one in found] == [Data, Data, Data]
    assert [(place, kind) for place, kind, _ in notes] == [("line 1", "lines")]


def test_faq_error_5_a_record_written_into_another_costs_only_the_other_one() -> None:
    text = json.dumps(A)
    broken = f"{text[:50]}{json.dumps(B)}{text[50:]}"
    found, notes = read(f"{broken}\n{json.dumps(B)}\n")
    assert [one.name for one in found] == [B[0], B[0]]
    ((place, kind, message),) = notes
    assert kind == "unreadable"
    with pytest.raises(json.JSONDecodeError) as error:
        json.loads(broken)
    assert place == f"line 1 column {error.value.colno}"
    assert "1 complete record in it was kept" in message
    assert "rank folder" in message


@given(st.lists(st.sampled_from([A, B, ["Q_0_forward_stack_info", FRAMES]]), min_size=1, max_size=8), st.data())
def test_whole_lines_survive_whatever_stands_between_them(records: list[Any], data: st.DataObject) -> None:
    junk = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=60)
    parts = [json.dumps(one) for one in records]
    for place in range(len(parts), -1, -1):
        if data.draw(st.booleans()):
            parts.insert(place, data.draw(junk))
    found, _ = read("\n".join(parts))
    names = [one[0] for one in records]
    assert [one.name for one in found if one.name in names][: len(names)] == names


@given(st.lists(st.sampled_from([A, B]), min_size=2, max_size=5), st.integers(0, 300))
def test_a_file_cut_anywhere_keeps_every_line_before_the_cut(records: list[Any], cut: int) -> None:
    text = lines(*records)
    whole = text[:cut].count("\n")
    found, notes = read(text[:cut])
    assert len(found) >= whole
    assert [one.name for one in found[:whole]] == [one[0] for one in records[:whole]]
    assert len(found) + len(notes) >= whole + bool(text[:cut].rpartition("\n")[2].strip())


@given(st.binary(max_size=300))
def test_no_bytes_make_it_fail(data: bytes) -> None:
    read(data)
    looks_like_lines(data)


@pytest.mark.parametrize(
    "value",
    [[], {}, 3, ["a"], ["a_stack_info", 3], ["", 0, [], "d", [], []], ["a", "0", [], "d", [], []], ["a", 0, 1, "d", [], []],
     ["a", 0, [], "d", [-1], []], ["a", 0, [], "d", "[2]", []], ["a", 0, [], 5, [], []], ["a", 0, [], "d", [], {}], [1] * 6],
)  # fmt: skip
def test_what_has_no_form_of_a_record_is_told_and_left(value: Any) -> None:
    found, notes = read(lines(value, A))
    assert [one.name for one in found] == [A[0]]
    assert len(notes) == 1
    assert notes[0][0].startswith("line 1")


def test_a_hostile_line_ends_soon() -> None:
    found, notes = read(b'["' * (1 << 20) + b"\n" + json.dumps(A).encode())
    assert [one.name for one in found] == [A[0]]
    assert len(notes) == 1


def test_a_line_past_the_limit_is_skipped() -> None:
    found, notes = read(b'["' + b"x" * LINE_LIMIT + b'"]\n' + json.dumps(A).encode())
    assert [one.name for one in found] == [A[0]]
    assert notes[0][:2] == ("line 1", "limit")


def test_zeros_and_a_mark_of_byte_order_do_no_harm() -> None:
    found, notes = read(b"\xef\xbb\xbf" + lines(A).encode() + b"\0" * 100)
    assert len(found) == 1
    assert [kind for _, kind, _ in notes] == ["bom"]


def test_a_file_is_known_by_what_it_holds() -> None:
    assert looks_like_lines(lines(A).encode())
    assert looks_like_lines(b"\n \n" + lines(["Q_0_forward_stack_info", FRAMES]).encode())
    assert looks_like_lines(b'rch.float32", [2], [1.0]]\n' + lines(A).encode())
    for other in (pickle.dumps(A), b"", b'{"data": {}}', b'["forward"]', json.dumps([A], indent=1).encode()[:3]):
        assert not looks_like_lines(other)
