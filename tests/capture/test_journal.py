"""The append-only journal: what is whole is found again, whatever happened to its end."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from dumpscope_format.journal import JOURNAL, MAGIC, Contents, Writer, is_flushed, read_header, replay_stream
from dumpscope_format.rendering import render

HEADER = {"task": "statistics", "level": "mix", "framework": "pytorch", "dump_data_dir": None}

plain = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
values = st.recursive(
    plain, lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3)
)
nodes = st.lists(
    st.tuples(
        st.text(min_size=1, max_size=12),
        values,
        st.none() | st.lists(st.text(max_size=6), max_size=2).map(tuple),
        st.none() | st.text(max_size=4),
    ),
    max_size=6,
)


def written(folder: Path, entries: list[tuple[str, Any, Any, Any]]) -> list[int]:
    """Write a journal; the file's length after each node."""
    (folder / JOURNAL).unlink(missing_ok=True)
    writer = Writer(folder, HEADER)
    lengths = []
    for name, body, stack, parent in entries:
        writer.link(name, parent)
        writer.node(name, body, stack=stack)
        lengths.append(os.path.getsize(writer.path))
    writer.close(remove=False)
    return lengths


def replay(path: str | os.PathLike[str]) -> Contents:
    with open(path, "rb") as stream:
        return replay_stream(stream)


def dump_of(folder: Path, contents: Contents) -> dict[str, Any]:
    out = io.BytesIO()
    with open(folder / JOURNAL, "rb") as stream:
        contents.write_dump(out, stream.fileno())
    found: dict[str, Any] = json.loads(out.getvalue())
    return found


def same(left: Any, right: Any) -> bool:
    """Equality in which NaN equals NaN and 1 is not 1.0."""
    return json.dumps(left) == json.dumps(right)


@given(values, st.integers(0, 3))
def test_text_is_what_the_standard_library_indents(value: Any, depth: int) -> None:
    lines = json.dumps(value, indent=1).split("\n")
    assert render(value, depth) == ("\n" + " " * depth).join(lines)


@given(
    st.lists(plain, min_size=4, max_size=4),
    st.lists(st.integers(0, 9), max_size=3) | plain,
    plain,
    values,
    st.integers(0, 3),
)
def test_records_of_tensors_are_no_exception(numbers: list[Any], shape: Any, kind: Any, rest: Any, depth: int) -> None:
    head = {"type": kind, "dtype": "torch.float32", "shape": shape}
    record = {**head, **dict(zip(("Max", "Min", "Mean", "Norm"), numbers, strict=True))}
    for value in (record, {**record, "requires_grad": True, "counts": rest}, {"Norm": 1, **head}, [record, record]):
        lines = json.dumps(value, indent=1).split("\n")
        assert render(value, depth) == ("\n" + " " * depth).join(lines)


@settings(max_examples=60, deadline=None)
@given(entries=nodes, data=st.data())
def test_a_journal_cut_anywhere_gives_every_node_written_before(
    entries: list[tuple[str, Any, Any, Any]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    lengths = written(folder, entries)
    whole = (folder / JOURNAL).read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    (folder / JOURNAL).write_bytes(whole[:cut])
    contents = replay(folder / JOURNAL)
    expected = {name: body for (name, body, *_), end in zip(entries, lengths, strict=True) if end <= cut}
    assert same(dump_of(folder, contents)["data"], expected)
    assert contents.end + contents.damaged == cut
    assert set(contents.parents) >= set(expected)


@settings(max_examples=60, deadline=None)
@given(entries=nodes.filter(len), data=st.data())
def test_a_changed_byte_is_never_read_as_a_record(
    entries: list[tuple[str, Any, Any, Any]], data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("bits")
    lengths = written(folder, entries)
    bad = bytearray((folder / JOURNAL).read_bytes())
    place = data.draw(st.integers(0, len(bad) - 1))
    bad[place] ^= data.draw(st.integers(1, 255))
    (folder / JOURNAL).write_bytes(bad)
    contents = replay(folder / JOURNAL)
    before = {name: body for (name, body, *_), end in zip(entries, lengths, strict=True) if end <= place}
    assert same(dump_of(folder, contents)["data"], before)
    assert contents.damaged


@given(st.binary(max_size=80))
def test_any_bytes_are_survived(tmp_path_factory: pytest.TempPathFactory, tail: bytes) -> None:
    path = tmp_path_factory.mktemp("any") / JOURNAL
    path.write_bytes(MAGIC + tail)
    assert replay(path).places == {} or replay(path).damaged >= 0
    read_header(path)


def test_a_node_named_again_replaces_its_record_and_keeps_its_place(tmp_path: Path) -> None:
    written(tmp_path, [("a", 1, ("f",), None), ("b", 2, ("f",), "a"), ("a", 3, ("f",), None)])
    contents = replay(tmp_path / JOURNAL)
    assert list(dump_of(tmp_path, contents)["data"].items()) == [("a", 3), ("b", 2)]
    assert contents.stacks == {("f",): ["a", "b"]}
    assert contents.parents == {"a": None, "b": "a"}


def test_the_writer_and_the_replay_agree_on_everything(tmp_path: Path) -> None:
    entries = [("a", 1, ("f", "g"), None), ("b", [2], None, "a"), ("c", {"x": float("nan")}, ("f", "g"), "a")]
    writer = Writer(tmp_path, HEADER)
    for name, body, stack, parent in entries:
        writer.link(name, parent)
        writer.node(name, body, stack=stack)
    again = replay(writer.path)
    assert again == writer.contents
    writer.close(remove=True)
    assert not (tmp_path / JOURNAL).exists()


def test_a_journal_knows_whether_its_records_lie_in_the_json_file(tmp_path: Path) -> None:
    writer = Writer(tmp_path, HEADER)
    writer.node("a", 1)
    assert not is_flushed(writer.path)
    writer.flushed()
    assert is_flushed(writer.path)
    assert replay(writer.path).flushed
    writer.node("b", 1)
    assert not is_flushed(writer.path)
    writer.close(remove=False)


def test_a_frame_that_could_not_be_written_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writer = Writer(tmp_path, HEADER)
    writer.node("a", 1)
    real = os.pwrite
    calls = iter([5])

    def short(handle: int, data: bytes, offset: int) -> int:
        for size in calls:
            return real(handle, data[:size], offset)
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", short)
    with pytest.raises(OSError, match="No space"):
        writer.node("b", 2)
    monkeypatch.undo()
    writer.node("c", 3)
    writer.close(remove=False)
    contents = replay(writer.path)
    assert list(contents.places) == ["a", "c"]
    assert contents.damaged == 0
