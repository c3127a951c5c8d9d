"""Checkpoints that Megatron-LM itself wrote (tests/data/make_megatron.py), against what its optimizer held in memory.

All are of one model and two steps of training, so that what differs is the form, and rounding where a matrix was cut."""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.distributed.checkpoint as dcp
from hypothesis import given, strategies as st

from dumpscope.domain.checkpoints.tensors import Checkpoint, Raw
from dumpscope.errors import UnreadableError
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints
from dumpscope.readers.checkpoints.megatron_optimizer import lay_out
from dumpscope.readers.checkpoints.opening import open_checkpoint

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "megatron.tar.xz"
STEP = "iter_0000002"
SLOTS = {"param": "fp32", "exp_avg": "exp_avg", "exp_avg_sq": "exp_avg_sq"}
COLUMNS = ("linear_fc2.weight", "linear_proj.weight")
WHOLE = ("layernorm", "layer_norm", "linear_fc2.bias", "linear_proj.bias")
DISTRIBUTED = ("fully_reshardable", "plain_dist", "dp_reshardable", "dp_split", "model_space")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("megatron")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


@pytest.fixture(scope="module")
def truth(runs: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((runs / "truth.json").read_text())
    return found


def digest(array: Raw) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def held_by_ranks(truth: dict[str, Any], case: str) -> Iterator[tuple[int, str, str, str]]:
    """(rank of the tensor parallel group, name in the whole model, slot, digest)"""
    for folder, parameters in truth[case].items():
        shard, stage = (*map(int, folder.split("_")[2:]), 0)[:2]
        for name, slots in parameters.items():
            whole = name.replace("layers.0.", f"layers.{stage}.") if stage else name
            for slot, expected in slots.items():
                yield shard, whole, SLOTS[slot], expected


@pytest.mark.parametrize("case", ["split", "buckets", "mixed"])
def test_states_are_those_that_megatron_held_in_memory(case: str, runs: Path, truth: dict[str, Any]) -> None:
    """TP 2 and PP 2; thirteen buckets over two ranks; float32 copies of an optimizer that is not distributed."""
    held = open_checkpoint(runs / case)
    tensors = {(one.parameter, one.slot): one for one in held.tensors}
    checked = 0
    for shard, name, slot, expected in held_by_ranks(truth, case):
        assert digest(tensors[name, slot].pieces[shard].read()) == expected, (name, slot)
        checked += 1
    assert checked == 3 * 28 * (1 if case == "buckets" else 2)
    assert (held.kind, held.problems) == ("megatron", ())
    assert not [one for one in held.tensors if one.problem]


def whole(held: Checkpoint) -> dict[tuple[str, str], Raw]:
    """Arrays by parameter and slot, put together from placed pieces."""
    found: dict[tuple[str, str], Raw] = {}
    for one in held.tensors:
        array = np.full(one.shape, np.nan, np.float64)
        for piece in one.pieces:
            assert piece.place is not None
            array[tuple(slice(at, at + size) for at, size in zip(piece.place, piece.shape, strict=True))] = piece.read()
        found[one.parameter, one.slot] = array.astype(np.float32)
    return found


def shard_of(array: Raw, name: str, rank: int, ranks: int) -> Raw:
    """What a rank of the tensor parallel group holds of a parameter."""
    if any(word in name for word in WHOLE):
        return array
    if "linear_fc1" in name:
        return np.concatenate([np.split(half, ranks)[rank] for half in np.split(array, 2)])
    return np.split(array, ranks, axis=1 if name.endswith(COLUMNS) else 0)[rank]


@pytest.mark.parametrize("case", DISTRIBUTED)
def test_distributed_states_are_those_that_megatron_held_in_memory(
    case: str, runs: Path, truth: dict[str, Any]
) -> None:
    """Stacked layers become layers again, and buffers parameters: the filling between them is no part of any."""
    held = open_checkpoint(runs / case)
    assert (held.kind, held.problems) == ("distributed", ())
    shapes = {one.name: one.shape for one in held.tensors if one.section == "weights"}
    assert all(one.shape == shapes[one.parameter] for one in held.tensors if one.slot in SLOTS.values())
    arrays = whole(held)
    named = {
        "input_layernorm.": "self_attention.linear_qkv.layer_norm_",
        "pre_mlp_layernorm.": "mlp.linear_fc1.layer_norm_",
    }
    for shard, name, slot, expected in held_by_ranks(truth, case):
        title = next((name.replace(old, new) for old, new in named.items() if old in name), name)
        assert digest(shard_of(arrays[title, slot], name, shard, len(truth[case]))) == expected, (title, slot)


@pytest.mark.parametrize(("one", "other"), [("dp_reshardable", "buckets"), ("fully_reshardable", "mixed")])
def test_one_training_is_equal_in_every_form(one: str, other: str, runs: Path) -> None:
    diff = compare_checkpoints(runs / one, runs / other)
    states = {
        tensor.state
        for tensor in diff.tensors
        if not tensor.name.endswith(".step") and ".param_groups." not in tensor.name
    }
    assert states == {"equal"}
    assert sum(tensor.state == "equal" for tensor in diff.tensors) >= 28 * 4


def change(file: Path, slot: str, place: int | slice, by: float) -> None:
    held = torch.load(file, weights_only=False)
    (buffer,) = held[0].values()
    buffer[slot][place] += by
    torch.save(held, file)


def test_a_planted_change_in_a_buffer_is_found_with_its_parameter(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "split", tmp_path / "run")
    change(tmp_path / "run" / STEP / "mp_rank_01_001" / "distrib_optim.pt", "exp_avg", 64 + 8 + 1, 0.5)
    diff = compare_checkpoints(tmp_path / "run", runs / "split")
    assert {one.state for one in diff.tensors} == {"equal"}, "filling is no part of a parameter"
    change(tmp_path / "run" / STEP / "mp_rank_01_001" / "distrib_optim.pt", "exp_avg", 2 * 64 + 3, 0.5)
    worst, *others = compare_checkpoints(tmp_path / "run", runs / "split").tensors
    assert (worst.name, worst.state, worst.unequal) == (
        "optimizer.decoder.final_layernorm.weight.exp_avg",
        "differs",
        1,
    )
    assert worst.max_abs == pytest.approx(0.5)
    assert {one.state for one in others} == {"equal"}


def test_a_buffer_whose_copies_are_not_the_weights_stays_flat_and_is_told(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "buckets", tmp_path / "run")
    file = tmp_path / "run" / STEP / "mp_rank_00" / "distrib_optim.pt"
    held = torch.load(file, weights_only=False)
    (buffer,) = held[0].values()
    buffer["param"].copy_(buffer["param"].flip(0))
    torch.save(held, file)
    diff = compare_checkpoints(tmp_path / "run", runs / "buckets")
    (problem,) = diff.problems
    assert "no division of it into buckets" in problem.message
    assert not diff.agrees
    again = compare_checkpoints(tmp_path / "run", tmp_path / "run")
    assert "optimizer.mp_rank_00.0.exp_avg" in {one.name for one in again.tensors if one.state == "equal"}
    change(
        shutil.copytree(tmp_path / "run", tmp_path / "other") / STEP / "mp_rank_00" / "distrib_optim.pt",
        "exp_avg",
        7,
        1.0,
    )
    worst = compare_checkpoints(tmp_path / "other", tmp_path / "run").tensors[0]
    assert (worst.name, worst.state, worst.index) == ("optimizer.mp_rank_00.0.exp_avg", "differs", (7,))


def test_one_weight_that_is_not_its_copy_makes_its_own_states_unreadable(runs: Path, tmp_path: Path) -> None:
    for case, name in (("buckets", "decoder.layers.1.mlp.linear_fc2.weight"), ("mixed", "output_layer.weight")):
        shutil.copytree(runs / case, tmp_path / case)
        file = tmp_path / case / STEP / "mp_rank_00" / "model_optim_rng.pt"
        (weight,) = (one.pieces[0].read() for one in open_checkpoint(runs / case).tensors if one.name == name)
        content = file.read_bytes()
        assert content.count(weight.tobytes()) == 1
        file.write_bytes(content.replace(weight.tobytes(), (weight + 1).astype(weight.dtype).tobytes()))
        diff = compare_checkpoints(tmp_path / case, runs / case)
        states = {one.name: one.state for one in diff.tensors if one.state != "equal"}
        assert states.pop(name) == "differs"
        assert states[f"optimizer.{name}.exp_avg"] == "unreadable"
        assert all(name in one or "fp32_from_fp16" in one for one in states)


def test_a_flat_buffer_of_one_rank_of_several_is_compared_and_the_states_of_the_others_are_not(
    runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "split", tmp_path / "run")
    change(tmp_path / "run" / STEP / "mp_rank_01_001" / "distrib_optim.pt", "param", slice(None), 1.0)
    states = {one.name: one.state for one in compare_checkpoints(tmp_path / "run", tmp_path / "run").tensors}
    assert states["optimizer.mp_rank_01_001.0.exp_avg"] == "equal"
    assert states["optimizer.decoder.layers.1.mlp.linear_fc1.weight.exp_avg"] == "unreadable"
    assert states["optimizer.decoder.layers.0.mlp.linear_fc1.weight.exp_avg"] == "equal"


@pytest.mark.parametrize("content", [b"", None])
def test_states_that_are_damaged_or_only_partly_there_are_never_equal(
    content: bytes | None, runs: Path, tmp_path: Path
) -> None:
    shutil.copytree(runs / "split", tmp_path / "run")
    file = tmp_path / "run" / STEP / "mp_rank_01_000" / "distrib_optim.pt"
    file.unlink() if content is None else file.write_bytes(content)
    diff = compare_checkpoints(tmp_path / "run", tmp_path / "run")
    assert not diff.agrees
    assert {one.loc.rpartition(" ")[2] for one in diff.problems} == {"mp_rank_01_000/distrib_optim.pt"}
    lost = {one.name for one in diff.tensors if one.state == "unreadable"}
    assert "optimizer.decoder.layers.0.mlp.linear_fc1.weight.exp_avg" in lost
    assert "optimizer.decoder.layers.1.mlp.linear_fc1.weight.exp_avg" not in lost
    assert "decoder.layers.0.mlp.linear_fc1.weight" not in lost


def test_weights_without_the_states_are_compared_and_the_states_told_as_missing(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "buckets", tmp_path / "run", ignore=shutil.ignore_patterns("distrib_optim.pt"))
    diff = compare_checkpoints(tmp_path / "run", tmp_path / "run")
    assert {(one.kind, one.loc.rpartition(" ")[2]) for one in diff.problems} == {
        ("missing", "mp_rank_00/distrib_optim.pt")
    }


def test_a_state_in_one_object_is_told_with_the_remedy(runs: Path) -> None:
    diff = compare_checkpoints(runs / "dp_zero", runs / "dp_zero")
    assert not diff.agrees
    assert "dist-ckpt-optim-fully-reshardable" in diff.problems[0].message


def test_a_save_that_never_ended_is_refused(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "dp_reshardable", tmp_path / "run")
    (tmp_path / "run" / STEP / ".metadata").unlink()
    with pytest.raises(UnreadableError, match="metadata"):
        open_checkpoint(tmp_path / "run")


@pytest.mark.parametrize(("folder", "ranks"), [("mp_rank_00_001", 2), ("mp_rank_00_000_001", 1)])
def test_experts_that_are_divided_over_ranks_are_refused(folder: str, ranks: int, tmp_path: Path) -> None:
    (tmp_path / folder).mkdir()
    saved = {"model": {"a": torch.ones(2)}, "args": argparse.Namespace(expert_model_parallel_size=ranks)}
    torch.save(saved, tmp_path / folder / "model_optim_rng.pt")
    with pytest.raises(UnreadableError, match="experts"):
        open_checkpoint(tmp_path)


def test_another_version_of_the_buffers_and_muons_files_are_told(tmp_path: Path) -> None:
    for name, value in (
        ("distrib_optim.pt", {0: {torch.float32: {"param": [torch.ones(2)]}}}),
        ("layer_wise_optimizer_0.pt", {}),
    ):
        folder = tmp_path / name / "mp_rank_00"
        folder.mkdir(parents=True)
        torch.save({"model": {"a": torch.ones(2)}}, folder / "model_optim_rng.pt")
        torch.save(value, folder / name)
        diff = compare_checkpoints(tmp_path / name, tmp_path / name)
        assert not diff.agrees
        assert [one.name for one in diff.tensors if one.state == "unreadable"] == [f"optimizer.mp_rank_00.{name}"]


def buffered(folder: Path, *, filling: float, moment: float = 0.0) -> Path:
    """A distributed checkpoint with one buffer of a weight and two biases that are alike."""
    weight = torch.arange(8.0).bfloat16()
    copies = torch.full((2 * 64 + 4,), filling)
    moments = copies.clone()
    for start, values in ((0, weight.float()), (64, torch.zeros(4)), (128, torch.zeros(4))):
        copies[start : start + values.numel()] = values
        moments[start : start + values.numel()] = values + 0.5
    moments[130] += moment
    bucket = "optimizer.distributed.dp_group_idx_0.gbuf_idx_0.dtype_(torch.bfloat16, torch.float32).bucket_idx_0"
    state = {
        "decoder.layers.mlp.weight": weight[None], "a.bias": torch.zeros(4).bfloat16(), "b.bias": torch.zeros(4).bfloat16(),
        f"{bucket}.param": copies, f"{bucket}.exp_avg": moments,
    }  # fmt: skip
    dcp.save(state, checkpoint_id=folder, no_dist=True)
    torch.save({"args": argparse.Namespace(tensor_model_parallel_size=1, world_size=1)}, folder / "common.pt")
    return folder


def test_parts_of_weights_that_are_alike_are_compared_by_their_place(tmp_path: Path) -> None:
    mine, theirs = buffered(tmp_path / "one", filling=7.0), buffered(tmp_path / "other", filling=-3.0)
    diff = compare_checkpoints(mine, theirs)
    assert diff.agrees, "what lies between the parameters is not compared"
    names = {one.name for one in diff.tensors}
    assert "optimizer.state.exp_avg.decoder.layers.0.mlp.weight" in names
    assert any(name.endswith("exp_avg[128:132]") for name in names)
    assert "2 parts" in diff.problems[0].message
    worst = compare_checkpoints(buffered(tmp_path / "third", filling=7.0, moment=1.0), theirs).tensors[0]
    assert (worst.name[-9:], worst.state, worst.index) == ("[128:132]", "differs", (2,))


def test_filling_behind_a_part_that_fits_no_weight_is_not_compared(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "dp_reshardable", tmp_path / "run")
    name = "decoder.layers.0.self_attention.linear_proj.bias"
    (weight,) = (one.pieces[0] for one in open_checkpoint(runs / "dp_reshardable").tensors if one.name == name)
    file = tmp_path / "run" / STEP / weight.source
    content, values = file.read_bytes(), weight.read()
    assert content.count(values.tobytes()) == 1
    file.write_bytes(content.replace(values.tobytes(), (values + 1).astype(values.dtype).tobytes()))
    diff = compare_checkpoints(tmp_path / "run", runs / "dp_reshardable")
    states = {one.name: one.state for one in diff.tensors if one.state != "equal"}
    assert states.pop(name) == "differs"
    parts = {one.partition("[")[2] for one, state in states.items() if state == "target_only"}
    assert len(parts) == 1, parts
    start, _, end = parts.pop().rstrip("]").partition(":")
    assert (int(start) % 64, int(end) - int(start)) == (0, 8)


@given(
    st.lists(st.tuples(st.integers(1, 300), st.booleans()), min_size=1, max_size=12),
    st.sampled_from([1, 64]),
    st.none() | st.integers(1, 500),
)
def test_parameters_never_overlap_and_leave_less_than_a_filling(
    parameters: list[tuple[int, bool]], aligned: int, bucket: int | None
) -> None:
    sizes, alone = [size for size, _ in parameters], [own for _, own in parameters]
    starts, end = lay_out(sizes, alone, aligned=aligned, bucket=bucket)
    ends = [start + size for start, size in zip(starts, sizes, strict=True)]
    gaps = [after - before for before, after in zip([0, *ends[:-1]], starts, strict=True)]
    assert min(gaps) >= 0
    assert ends[-1] == end
    assert max(gaps) < aligned
    if bucket == 1:
        assert end == sum(sizes), "behind the last parameter of a bucket nothing is filled up"
