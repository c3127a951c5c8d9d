"""Members of a JSON object are cut and decoded the same by lines and by structure, and damage stays local."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dumpscope.readers.msprobe import json_members
from dumpscope.readers.msprobe.json_members import Members
from dumpscope.readers.msprobe.json_split import count_starts, structure


def read(data: bytes, *, lines: bool = True, inside: str | None = "data") -> tuple[list[tuple[str, Any]], Members]:
    members = Members(io.BytesIO(data), loc="f", inside=inside, lines=lines)  # type: ignore[arg-type]
    return [member for run in members for member in run], members


def plain(value: Any) -> Any:
    """Make values comparable: NaN equals NaN, marked words equal numbers."""
    if isinstance(value, float) and not math.isfinite(value):
        return ("number", str(value))
    if isinstance(value, str) and value.startswith("\0"):
        return ("number", str(float(value[1:].replace("Infinity", "inf"))))
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    return value


scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12)
    | st.sampled_from(['"', "\\", '\\"', "{", "}", ',\n  "', "NaN", ": NaN,", "\n }", "]"])
)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=6), inner, max_size=4)
    ),
    max_leaves=12,
)
bodies = st.dictionaries(
    st.sampled_from(["Functional.a.0.forward", "Module.x.Y.backward.1", "h.0.debug"])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    values,
    max_size=6,
)


@settings(max_examples=150, deadline=None)
@given(bodies, st.sampled_from([None, 0, 1, 2, 3, "\t"]), st.booleans(), st.integers(16, 200), st.booleans())
def test_any_json_is_read_as_the_standard_library_reads_it(
    data: dict[str, Any], indent: Any, lines: bool, window: int, tail: bool
) -> None:
    whole: dict[str, Any] = {"task": "statistics", "dump_data_dir": None, "data": data}
    if tail:
        whole["extra"] = {"a": [1, "}"]}
    text = json.dumps(whole, indent=indent).encode()
    before = json_members.WINDOW
    json_members.WINDOW = window  # type: ignore[misc]
    try:
        found, members = read(text, lines=lines)
    finally:
        json_members.WINDOW = before  # type: ignore[misc]
    assert plain(dict(found)) == plain(data)
    assert [name for name, _ in found] == list(data)
    assert members.problems == []
    assert members.header == {key: value for key, value in whole.items() if key != "data"}


@settings(max_examples=100, deadline=None)
@given(bodies, st.sampled_from([None, 1, 4]))
def test_an_object_at_the_top_is_read_like_one_inside(data: dict[str, Any], indent: int | None) -> None:
    found, members = read(json.dumps(data, indent=indent).encode(), inside=None)
    assert plain(dict(found)) == plain(data)
    assert members.problems == []


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300), st.booleans())
def test_no_bytes_make_the_reader_fail(junk: bytes, lines: bool) -> None:
    read(junk, lines=lines)
    read(b'{\n "data": {\n  "Functional.a.0.forward": ' + junk, lines=lines)
    read(b'{"data": {"a.0.debug": 1, ' + junk + b', "Functional.b.0.forward": {}}}', lines=lines)


@settings(max_examples=100, deadline=None)
@given(bodies, st.integers(0, 400), st.sampled_from([None, 1]))
def test_a_file_cut_anywhere_keeps_the_records_before_the_cut(
    data: dict[str, Any], cut: int, indent: int | None
) -> None:
    text = json.dumps({"task": "x", "data": data}, indent=indent).encode()
    cut = min(cut, len(text) - 1)
    found, members = read(text[:cut])
    assert (
        plain([value for _, value in found]) == plain(list(data.values())[: len(found)])
        or b"NaN" in text
        or b"Infinity" in text
    )
    assert [name for name, _ in found] == list(data)[: len(found)]
    assert members.problems


def test_lines_and_structure_agree_on_every_real_file(dumps: Path) -> None:
    files = [
        *dumps.glob("*/step*/*/d*.json"),
        *dumps.glob("*/step*/*/stack.json"),
        *dumps.glob("*/step*/*/construct.json"),
    ]
    assert len(files) > 150
    for file in files:
        inside = "data" if file.name.startswith("d") else None
        text = file.read_bytes()
        by_lines, one = read(text, inside=inside)
        by_structure, two = read(text, lines=False, inside=inside)
        truth = json.loads(text)
        truth = truth["data"] if inside else truth
        assert plain(by_lines) == plain(by_structure) == plain(list(truth.items()))
        assert one.problems == two.problems == []


@given(
    st.binary().map(lambda junk: bytes(b'\n  "a\n'[byte % 6] for byte in junk)), st.sampled_from([b'\n "', b'\n  "'])
)
def test_beginnings_of_records_are_counted_wherever_they_stand(text: bytes, start: bytes) -> None:
    assert count_starts(text, start) == text.count(start)


def test_structure_finds_commas_and_the_bracket_outside_of_strings() -> None:
    text = b'"a,}": [1, {"b": "\\"}"}], "c": "\\\\", "d": {}} , "e": 1'
    commas, close = structure(text)
    assert [text[at : at + 5] for at in commas] == [b', "c"', b', "d"']
    assert text[close:] == b'} , "e": 1'


def dump(*records: str, indent: bool = True) -> bytes:
    if indent:
        return ('{\n "task": "statistics",\n "data": {\n' + ",\n".join(records) + "\n }\n}").encode()
    return ('{"task":"statistics","data":{' + ",".join(record.strip() for record in records) + "}}").encode()


GOOD = ['  "Functional.a.0.forward": {\n   "input": []\n  }', '  "Functional.b.0.forward": {\n   "input": []\n  }']
DAMAGES = {
    "a missing value": '  "Functional.x.0.forward": {\n   "input": \n  }',
    "a missing quote": '  "Functional.x.0.forward": {\n   "input: []\n  }',
    "a bracket too many": '  "Functional.x.0.forward": {\n   "input": []}\n  }',
    "a bracket too few": '  "Functional.x.0.forward": {\n   "input": [\n  }',
    "nesting without end": '  "Functional.x.0.forward": ' + "[" * 100_000 + "]" * 100_000,
    "garbage": '  "Functional.x.0.forward": {\n   "input": \0\1\2\n  }',
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("indent", [True, False])
def test_one_damaged_record_does_not_spoil_the_others(damage: str, indent: bool) -> None:
    found, members = read(dump(GOOD[0], DAMAGES[damage], GOOD[1], indent=indent))
    names = [name for name, _ in found]
    assert "Functional.a.0.forward" in names
    assert "Functional.b.0.forward" in names
    assert members.problems
    assert all("byte" in problem.loc for problem in members.problems)


def test_a_record_that_is_nested_too_deeply_is_named() -> None:
    found, members = read(dump(GOOD[0], DAMAGES["nesting without end"], GOOD[1]))
    assert len(found) == 2
    assert [problem.kind for problem in members.problems] == ["nesting"]
    assert "Functional.x.0.forward" in members.problems[0].message


def test_bytes_that_are_not_utf8_are_replaced_and_reported() -> None:
    text = dump(GOOD[0], '  "Functional.x.0.forward": {"input": ["@@"]}').replace(b"@@", b"\xff\xfe")
    found, members = read(text)
    assert found[1] == ("Functional.x.0.forward", {"input": ["��"]})
    assert [problem.kind for problem in members.problems] == ["encoding"]


def test_an_integer_of_thousands_of_digits_is_kept_as_text_and_reported() -> None:
    found, members = read(dump('  "Functional.x.0.forward": {"input": ' + "9" * 5000 + "}", GOOD[0]))
    assert found[0][1]["input"] == "9" * 5000
    assert len(found) == 2
    assert [problem.kind for problem in members.problems] == ["number"]


def test_lone_surrogates_cannot_leave_the_reader() -> None:
    found, _ = read(dump('  "a\\ud800.0.debug": {"k\\udfff": ["\\ud83d\\ude00", "x\\ud800"]}'))
    assert found == [("a?.0.debug", {"k?": ["😀", "x?"]})]
    json.dumps(found, ensure_ascii=False).encode()


def test_a_byte_order_mark_is_reported_and_skipped() -> None:
    found, members = read(b"\xef\xbb\xbf" + dump(*GOOD))
    assert len(found) == 2
    assert [problem.kind for problem in members.problems] == ["bom"]


def test_duplicate_keys_are_all_handed_over_in_order() -> None:
    found, _ = read(dump(GOOD[0], '  "Functional.a.0.forward": 2', GOOD[1]))
    assert [name for name, _ in found] == ["Functional.a.0.forward", "Functional.a.0.forward", "Functional.b.0.forward"]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"[1]", "unreadable"),
        (b'{"task": "x"}', "missing"),
        (b'{"data": 5}', "missing"),
        (b'{"task": "x", "data": {', "truncated"),
        (b'{"data": {}} more', "trailing"),
        (b"PK\x03\x04", "unreadable"),
    ],
)
def test_a_file_that_is_no_dump_says_why(text: bytes, kind: str) -> None:
    found, members = read(text)
    assert found == []
    assert [problem.kind for problem in members.problems] == [kind]


def test_a_truncated_file_says_how_many_records_were_kept_and_where_it_ends() -> None:
    text = dump(*GOOD)[:-14]
    found, members = read(text)
    assert len(found) == 1
    problem = members.problems[0]
    assert problem.kind == "truncated"
    assert problem.loc == f"f:byte {len(text)}"
    assert "1 complete record" in problem.message


def test_infinities_are_read_fast_and_differ_from_texts() -> None:
    body = '{\n   "a": NaN,\n   "b": -Infinity,\n   "c": "NaN",\n   "d": [\n    Infinity\n   ]\n  }'
    found, members = read(dump('  "x.0.debug": ' + body))
    assert found[0][1] == {"a": "\0NaN", "b": "\0-Infinity", "c": "NaN", "d": ["\0Infinity"]}
    assert members.problems == []
