"""The JSON files of need_replicate, whole and damaged."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.records import RankDump, State
from dumpscope.errors import UnreadableError
from dumpscope.ptdbg.reader import cases
from dumpscope.readers import discover, read_rank
from dumpscope.readers.browsing import looks_like_dump, offers

DATA = "forward_real_data_20231201101500/rank{}/{}.npy"


def tensor(folder: Path, name: str, array: Any, *, rank: int = 0, shown: str = "./") -> dict[str, Any]:
    path = folder / DATA.format(rank, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    np.save(path, array)
    return {"type": "torch.Tensor", "datapath": f"{shown}{DATA.format(rank, name)}", "requires_grad": False}


def write(folder: Path, word: str, told: Any, pid: int = 7) -> Path:
    path = folder / f"{word}_info_{pid}.json"
    path.write_text(told if isinstance(told, str) else json.dumps(told))
    return path


def call(*args: Any, **kwargs: Any) -> dict[str, Any]:
    return {"args": list(args), "kwargs": kwargs}


def read(path: Path) -> RankDump:
    (ref,) = discover(path).ranks
    return read_rank(ref)


@pytest.mark.parametrize("shown", ["./", "", "/home/somebody/run/", "C:\\run\\"])
def test_tensors_are_found_beside_the_json_wherever_the_run_was(tmp_path: Path, shown: str) -> None:
    one = tensor(tmp_path, "Torch_mul_0.0", np.array([1.0, -3.0], np.float16), shown=shown)
    write(
        tmp_path,
        "forward",
        {"Torch_mul_0": call(one, [{"type": "int", "value": 2}], out={"type": "slice", "value": [0, 1, None]})},
    )
    dump = read(tmp_path)
    assert dump.nodes.names == ["Torch_mul_0_forward"]
    assert dump.items.stats[0].tolist() == pytest.approx([1.0, -3.0, -1.0, 10**0.5])
    assert dump.items.dtypes[dump.items.dtype[0]] == "torch.float16"
    assert len(dump.items) == 3
    assert not dump.problems


@pytest.mark.parametrize(
    ("array", "high"),
    [
        (np.array([True]), None), (np.zeros(0), None), (np.array(2**62 + 1), 2.0**62), (np.array([3 + 4j]), 5.0),
        (np.array([np.inf, 1]), np.inf),
    ],
)  # fmt: skip
def test_arrays_of_every_kind_have_the_statistics_that_they_can_have(
    tmp_path: Path, array: Any, high: float | None
) -> None:
    write(tmp_path, "forward", {"Torch.neg.0": call(tensor(tmp_path, "Torch.neg.0.0", array))})
    dump = read(tmp_path)
    shown = None if dump.items.stat_state[0, 0] == State.ABSENT else dump.items.stats[0, 0]
    infinite = dump.items.stat_state[0, 0] == State.POS_INF
    assert (np.inf if infinite else shown) == high
    assert not dump.problems


def test_what_is_damaged_is_told_and_the_rest_is_read(tmp_path: Path) -> None:
    good = tensor(tmp_path, "Torch.neg.0.0", np.ones(2))
    lost = {**good, "datapath": good["datapath"].replace("neg.0", "neg.9")}
    out = {**good, "datapath": "../../etc/passwd"}
    deep: Any = []
    for _ in range(900):
        deep = [deep]
    told = {
        "Torch.neg.0": call(good),
        "Torch.neg.1": call(lost),
        "Torch.neg.2": call(out),
        "Torch.neg.3": 5,
        "Torch.neg.4": call(deep),
    }
    write(tmp_path, "forward", told)
    write(tmp_path, "backward", '{"Torch.neg.0.backward": [')
    write(tmp_path, "stack", [])
    dump = read(tmp_path)
    assert dump.nodes.names == [f"Torch.neg.{number}.forward" for number in range(5)]
    assert sorted(problem.kind for problem in dump.problems) == [
        "nesting", "refused", "tensor_unreadable", "unreadable", "unreadable", "wrong_type",
    ]  # fmt: skip


def test_links_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "run"
    folder.mkdir()
    outside.mkdir()
    np.save(outside / "x.npy", np.ones(2))
    one = tensor(folder, "Torch.neg.0.0", np.ones(2))
    path = folder / DATA.format(0, "Torch.neg.0.0")
    path.unlink()
    path.symlink_to(outside / "x.npy")
    write(folder, "forward", {"Torch.neg.0": call(one)})
    (problem,) = read(folder).problems
    assert problem.kind == "tensor_unreadable"
    write(outside, "backward", {"Torch.neg.0.backward": []})
    (folder / "forward_info_7.json").unlink()
    (folder / "backward_info_7.json").symlink_to(outside / "backward_info_7.json")
    with pytest.raises(UnreadableError):
        discover(folder)


def test_processes_in_one_folder_are_ranks_and_of_two_runs_the_newer_is_read(tmp_path: Path) -> None:
    for pid, rank, age in ((30, 1, 0), (40, 0, 0), (50, 0, 100)):
        one = tensor(tmp_path, f"Torch.neg.{pid}.0", np.ones(2), rank=rank)
        path = write(tmp_path, "forward", {f"Torch.neg.{pid}": call(one)}, pid)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    layout = discover(tmp_path)
    assert [(ref.rank, ref.label, os.path.basename(ref.dump_json)) for ref in layout.ranks] == [
        (0, "rank0", "forward_info_40.json"), (1, "rank1", "forward_info_30.json"),
    ]  # fmt: skip
    (problem,) = layout.problems
    assert "rank0" in problem.message
    assert read(tmp_path / "forward_info_50.json").nodes.names == ["Torch.neg.50.forward"]


def test_stacks_alone_are_no_dump(tmp_path: Path) -> None:
    path = write(tmp_path, "stack", {})
    with pytest.raises(UnreadableError, match="alone"):
        discover(path)
    with pytest.raises(UnreadableError):
        discover(tmp_path)


def test_the_server_offers_them(tmp_path: Path) -> None:
    write(tmp_path, "backward", {})
    assert looks_like_dump(str(tmp_path))
    assert [offer.kind for offer in offers(str(tmp_path), [str(tmp_path)])[0]] == ["file"]


def test_statistics_of_more_bytes_than_allowed_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cases, "MEASURED_LIMIT", 20)
    two = [tensor(tmp_path, f"Torch.cat.0.{place}", np.ones(2)) for place in range(2)]
    write(tmp_path, "forward", {"Torch.cat.0": call(two[0], two[0], two[1])})
    states = read(tmp_path).items.stat_state[:, 0].tolist()
    assert states[0] == states[1] != states[2]


KEYS = st.sampled_from(["args", "kwargs", "type", "value", "datapath", "dtype", "shape", "Max"]) | st.text(max_size=8)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(KEYS, part, max_size=4),
    max_leaves=12,
)


@given(
    st.dictionaries(
        st.sampled_from(["Torch.a.0", "a_0", "a.b.0.backward", ""]) | st.text(max_size=8), JSON, max_size=3
    ),
    JSON,
)
def test_no_json_ends_the_reader(forward: dict[str, Any], stack: Any) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, "forward", forward)
        write(folder, "stack", stack)
        dump = read(folder)
        assert len(set(dump.nodes.names)) == len(dump.nodes)


RECORD = {
    "type": "torch.Tensor",
    "dtype": "torch.float32",
    "shape": [2],
    "Max": 1.5,
    "Min": -1.0,
    "requires_grad": True,
}
OLDER = {
    "Torch.chunk.4.forward": {
        "input_args": [RECORD, {"type": "int", "value": 2}],
        "input_kwargs": {"dim": {"type": "int", "value": -1}},
        "output": [RECORD, RECORD],
    },
    "Functional.relu.0.forward": {"input_args": [RECORD], "input_kwargs": {}},
}
"""Records as the accuracy checker of 2023 wrote them: like msprobe's, without a head."""


@pytest.mark.parametrize("name", ["forward.json", "forward_info_7.json", "old.json"])
@pytest.mark.parametrize("before", ["", "\ufeff", "\n "])
def test_records_without_a_head_open_with_all_their_values(tmp_path: Path, name: str, before: str) -> None:
    path = tmp_path / name
    path.write_text(before + json.dumps(OLDER), encoding="utf-8")
    dump = read(path)
    assert dump.nodes.names == list(OLDER)
    assert len(dump.items) == 6
    tensors = dump.items.stat_state[:, :2] == State.FINITE
    assert dump.items.stats[tensors.all(axis=1), :2].tolist() == [[1.5, -1.0]] * 4
    assert [one.kind for one in dump.problems if one.kind not in ("missing", "bom")] == []
