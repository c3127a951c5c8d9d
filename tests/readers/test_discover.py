"""Finding a dump under whatever path is named, and refusing what leaves it."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from dumpscope.errors import UnreadableError
from dumpscope.readers import discover

DATA = '{"task": "statistics", "data": {"Functional.a.0.forward": {}}}'
EMPTY = '{"task": "statistics", "data": {}}'


def put(folder: Path, text: str = DATA, *, name: str = "dump.json", age: float = 0) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / name
    file.write_text(text)
    os.utime(file, (1_700_000_000 - age, 1_700_000_000 - age))
    return file


def test_root_step_rank_and_file_all_lead_to_the_same_rank(dumps: Path) -> None:
    root = dumps / "dist2_stat_fault"
    paths = [root, root / "step0", root / "step0" / "rank1", root / "step0" / "rank1" / "dump.json"]
    refs = [discover(path).ranks[-1] for path in paths]
    assert {ref.dump_json for ref in refs} == {str(root / "step0" / "rank1" / "dump.json")}
    assert {(ref.step, ref.rank) for ref in refs} == {(0, 1)}
    assert [ref.label for ref in refs] == ["rank1", "rank1", "rank1", ""]
    assert all(ref.stack_json and ref.construct_json for ref in refs)


def test_every_real_dump_is_found_without_problems(dumps: Path) -> None:
    for folder in sorted(path for path in dumps.iterdir() if path.is_dir() and path.name != "peer_results"):
        layout = discover(folder)
        assert layout.problems == []
        assert layout.root == str(folder)
        assert len(layout.ranks) == len(list(folder.glob("step*/*")))
        assert {ref.debug for ref in layout.ranks} == {folder.name.startswith("debug_")}


def test_steps_and_ranks_come_in_natural_order(tmp_path: Path) -> None:
    for step in (10, 2, 0):
        for rank in (11, 2, 1):
            put(tmp_path / f"step{step}" / f"rank{rank}")
    layout = discover(tmp_path)
    assert [(ref.step, ref.rank) for ref in layout.ranks] == [
        (step, rank) for step in (0, 2, 10) for rank in (1, 2, 11)
    ]
    assert layout.steps == [0, 2, 10]
    assert layout.rank_numbers == [1, 2, 11]


@pytest.mark.parametrize("label", ["proc77", "rank"])
def test_a_run_without_ranks_counts_as_rank_0(tmp_path: Path, label: str) -> None:
    put(tmp_path / "step3" / label)
    layout = discover(tmp_path)
    assert [(ref.step, ref.rank, ref.label) for ref in layout.ranks] == [(3, None, label)]
    assert layout.rank_numbers == [0]


def test_a_dump_root_without_a_step_level_is_step_0(tmp_path: Path) -> None:
    put(tmp_path / "rank0")
    put(tmp_path / "rank1")
    assert [(ref.step, ref.rank) for ref in discover(tmp_path).ranks] == [(0, 0), (0, 1)]


def test_of_several_runs_in_a_step_the_newest_with_data_is_used(tmp_path: Path) -> None:
    put(tmp_path / "step0" / "proc1", age=50)
    put(tmp_path / "step0" / "proc2", age=20)
    put(tmp_path / "step0" / "proc3", EMPTY, age=0)
    layout = discover(tmp_path)
    assert [ref.label for ref in layout.ranks] == ["proc2"]
    assert [problem.kind for problem in layout.problems] == ["several_runs"]
    message = layout.problems[0].message
    assert "proc2 is read" in message
    assert "proc1, proc3" in message
    assert discover(tmp_path / "step0" / "proc1").ranks[0].label == "proc1"


def test_a_leftover_proc_folder_beside_ranks_is_reported_and_left_out(tmp_path: Path) -> None:
    put(tmp_path / "step0" / "rank0")
    put(tmp_path / "step0" / "proc9")
    layout = discover(tmp_path)
    assert [ref.label for ref in layout.ranks] == ["rank0"]
    assert "proc9" in layout.problems[0].message


def test_debug_json_beside_dump_json_is_left_out_until_it_is_named(tmp_path: Path) -> None:
    put(tmp_path / "step0" / "rank0")
    debug = put(tmp_path / "step0" / "rank0", name="debug.json")
    layout = discover(tmp_path)
    assert [ref.debug for ref in layout.ranks] == [False]
    assert [problem.kind for problem in layout.problems] == ["ignored"]
    assert discover(debug).ranks[0].debug


def test_the_only_dump_below_a_folder_is_found(tmp_path: Path) -> None:
    put(tmp_path / "job" / "out" / "step0" / "rank0")
    (tmp_path / "logs").mkdir()
    assert discover(tmp_path).root == str(tmp_path / "job" / "out")


def test_several_dumps_below_a_folder_are_named(tmp_path: Path) -> None:
    put(tmp_path / "one" / "step0" / "rank0")
    put(tmp_path / "two" / "step0" / "rank0")
    with pytest.raises(UnreadableError, match="holds 2 dumps") as caught:
        discover(tmp_path)
    assert "one, two" in (caught.value.hint or "")


@pytest.mark.parametrize("what", ["nothing", "empty folder", "text", "stack.json", "step without ranks", "binary"])
def test_what_is_no_dump_says_what_where_and_what_to_do(tmp_path: Path, what: str) -> None:
    path = tmp_path / "x"
    if what == "empty folder":
        path.mkdir()
    elif what == "text":
        path.write_text("hello")
    elif what == "stack.json":
        path = put(tmp_path / "rank0", "{}", name="stack.json")
    elif what == "step without ranks":
        (path / "step0").mkdir(parents=True)
    elif what == "binary":
        path.write_bytes(bytes(range(256)))
    with pytest.raises(UnreadableError) as caught:
        discover(path)
    assert caught.value.where == str(path)
    assert caught.value.hint
    assert caught.value.detail


def test_a_path_with_a_null_byte_is_an_error_like_any_other() -> None:
    with pytest.raises(UnreadableError):
        discover("a\0b")


def test_an_empty_dump_json_that_is_named_is_opened(tmp_path: Path) -> None:
    assert discover(put(tmp_path, "")).ranks[0].dump_json == str(tmp_path / "dump.json")


def test_links_that_leave_the_dump_are_refused_and_links_inside_are_not(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    put(outside / "rank5")
    secret = put(outside, name="secret.json")
    root = tmp_path / "dump"
    put(root / "step0" / "rank0")
    os.symlink(outside / "rank5", root / "step0" / "rank1")
    (root / "step0" / "rank2").mkdir()
    os.symlink(secret, root / "step0" / "rank2" / "dump.json")
    os.symlink(root / "step0" / "rank0", root / "step0" / "rank3")
    os.symlink(secret, root / "step0" / "rank0" / "stack.json")
    layout = discover(root)
    assert [ref.label for ref in layout.ranks] == ["rank0", "rank3"]
    assert layout.ranks[0].stack_json is None
    refused = {problem.loc for problem in layout.problems if problem.kind == "refused"}
    assert {"step0/rank1", "step0/rank2/dump.json", "step0/rank0/stack.json"} <= refused


def test_a_link_that_the_user_names_is_followed(tmp_path: Path) -> None:
    put(tmp_path / "real" / "step0" / "rank0")
    os.symlink(tmp_path / "real", tmp_path / "link")
    assert discover(tmp_path / "link").root == str(tmp_path / "real")


def test_pipes_and_sockets_under_a_dump_files_name_are_refused_and_never_opened(tmp_path: Path) -> None:
    put(tmp_path / "step0" / "rank0")
    for rank in (1, 2):
        (tmp_path / "step0" / f"rank{rank}").mkdir()
    os.mkfifo(tmp_path / "step0" / "rank1" / "dump.json")
    bound = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(tmp_path / "step0" / "rank2")  # a socket's path must be short
    bound.bind("dump.json")
    os.chdir(here)
    bound.close()
    layout = discover(tmp_path)
    assert [ref.label for ref in layout.ranks] == ["rank0"]
    assert [problem.kind for problem in layout.problems] == ["refused", "refused"]
    with pytest.raises(UnreadableError):
        discover(tmp_path / "step0" / "rank1" / "dump.json")
    with pytest.raises(UnreadableError, match="not a regular file"):
        discover(tmp_path / "step0" / "rank1")
