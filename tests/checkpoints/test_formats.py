"""Every form that is read: a change planted in files which the real tools wrote is found, and nothing else."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.checkpoints.tensors import find_gap
from dumpscope.errors import NotFoundError, UnreadableError
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints
from dumpscope.readers.checkpoints.opening import open_checkpoint

from .conftest import place

KINDS = {
    "safetensors": "safetensors", "sharded": "sharded", "torch": "torch", "legacy": "torch", "torch_shards": "sharded",
    "training": "torch", "megatron": "megatron", "distributed": "distributed",
}  # fmt: skip


@pytest.mark.parametrize("form", KINDS)
def test_a_planted_change_is_found_alone(form: str, saved: Path, facts: dict[str, dict[str, Any]]) -> None:
    diff = compare_checkpoints(place(saved, form, "planted"), place(saved, form, "healthy"))
    worst, *others = diff.tensors
    assert diff.target_kind == KINDS[form]
    assert (worst.name, worst.state, worst.unequal) == (facts[form]["tensor"], "differs", 1)
    assert worst.index == tuple(facts[form]["index"])
    assert worst.max_abs == pytest.approx(facts[form]["by"])
    assert {one.state for one in others} == {"equal"}
    assert not diff.problems


@pytest.mark.parametrize("form", ["torch", "legacy", "torch_shards", "sharded"])
def test_one_model_is_the_same_in_every_form(form: str, saved: Path) -> None:
    diff = compare_checkpoints(place(saved, form, "healthy"), place(saved, "safetensors", "healthy"))
    assert diff.agrees
    assert {one.match for one in diff.tensors} == {"exact"}
    assert len(diff.tensors) == 21


def test_parts_on_two_ranks_are_the_whole_tensors(saved: Path) -> None:
    diff = compare_checkpoints(saved / "distributed" / "healthy", saved / "sharded" / "healthy")
    weights = [one for one in diff.tensors if one.section == "weights"]
    assert {one.state for one in weights} == {"equal"}
    assert len(weights) == 21


def test_the_shards_and_stages_of_megatron_are_the_model(saved: Path) -> None:
    diff = compare_checkpoints(saved / "megatron" / "healthy", place(saved, "safetensors", "healthy"))
    states = {one.name: (one.state, one.form, one.match) for one in diff.tensors}
    assert states["decoder.layers.1.mlp.linear_fc2.weight"] == ("equal", None, "renamed")
    assert states["decoder.layers.1.mlp.linear_fc1.weight"] == ("equal", "fused", "fused")
    assert states["embedding.word_embeddings.weight"] == ("form", "padded", "renamed")
    assert states["decoder.layers.0.self_attention.linear_qkv.weight"] == ("form", "fused", "fused")
    assert {one.state for one in diff.tensors} == {"equal", "form", "golden_only"}


def test_a_difference_between_replicas_is_found(saved: Path, tmp_path: Path) -> None:
    """Rank 1's norm alone was changed: the first rank's copy hides nothing."""
    shutil.copytree(saved / "megatron" / "healthy", tmp_path / "run")
    file = tmp_path / "run" / "iter_0000100" / "mp_rank_01_001" / "model_optim_rng.pt"
    content = file.read_bytes()
    ones = b"\x00\x00\x80\x3f" * 32
    at = content.rindex(ones)
    file.write_bytes(content[:at] + b"\x00\x00\x00\x40" + content[at + 4 :])
    diff = compare_checkpoints(tmp_path / "run", saved / "megatron" / "healthy")
    assert diff.tensors[0].state == "differs"
    assert "norm" in diff.tensors[0].name


def test_moments_have_the_names_of_their_parameters(saved: Path) -> None:
    held = open_checkpoint(place(saved, "training", "healthy"))
    names = {one.name for one in held.tensors if one.section == "optimizer"}
    assert "optimizer.model.layers.1.input_layernorm.weight.exp_avg_sq" in names
    assert "optimizer.model.norm.weight.step" in names
    assert "optimizer.param_groups.0.weight_decay" in names


def test_a_tied_tensor_is_compared_under_its_other_name(saved: Path) -> None:
    for pair in (("tied.pt", "tied"), ("tied", "tied.pt")):
        diff = compare_checkpoints(*(saved / "others" / name for name in pair))
        tied = [one for one in diff.tensors if one.match == "tied"]
        assert diff.agrees
        assert {(one.name, one.golden) for one in tied} in (
            {("lm_head.weight", "model.embed_tokens.weight")},
            {("model.embed_tokens.weight", "lm_head.weight")},
        )


def test_a_whole_module_is_read_and_none_of_its_classes_is_made(saved: Path) -> None:
    diff = compare_checkpoints(saved / "others" / "whole_module.pt", saved / "sharded" / "healthy")
    assert diff.counts == {"equal": 21, "target_only": 2}  # its frequencies are buffers that state dicts leave out


def test_a_shard_that_is_not_there_makes_its_tensors_unreadable(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "sharded" / "healthy", tmp_path / "model")
    (tmp_path / "model" / "model-00002-of-00004.safetensors").unlink()
    diff = compare_checkpoints(tmp_path / "model", saved / "sharded" / "healthy")
    assert set(diff.counts) == {"equal", "unreadable"}
    assert [(one.kind, one.loc.rpartition(" ")[2]) for one in diff.problems] == [
        ("missing", "model-00002-of-00004.safetensors")
    ]


def test_shards_are_read_without_their_index(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "sharded" / "healthy", tmp_path / "model")
    (tmp_path / "model" / "model.safetensors.index.json").unlink()
    diff = compare_checkpoints(tmp_path / "model", saved / "sharded" / "healthy")
    assert diff.agrees
    assert not diff.problems
    (tmp_path / "model" / "model-00001-of-00004.safetensors").unlink()
    assert [one.kind for one in open_checkpoint(tmp_path / "model").problems] == ["missing"]


def test_a_rank_that_is_cut_off_makes_its_stage_unreadable(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "megatron" / "healthy", tmp_path / "run")
    file = tmp_path / "run" / "iter_0000100" / "mp_rank_01_001" / "model_optim_rng.pt"
    file.write_bytes(file.read_bytes()[:5000])
    diff = compare_checkpoints(tmp_path / "run", saved / "megatron" / "healthy")
    unreadable = {one.name for one in diff.tensors if one.state == "unreadable"}
    assert "decoder.layers.1.mlp.linear_fc1.weight" in unreadable
    assert "decoder.layers.0.mlp.linear_fc1.weight" not in unreadable
    assert [one.kind for one in diff.problems] == ["truncated"]


def test_a_distributed_file_that_is_cut_off_is_a_problem_of_its_tensors(saved: Path, tmp_path: Path) -> None:
    shutil.copytree(saved / "distributed" / "healthy", tmp_path / "run")
    file = tmp_path / "run" / "__1_0.distcp"
    file.write_bytes(file.read_bytes()[:9000])
    diff = compare_checkpoints(tmp_path / "run", saved / "distributed" / "healthy")
    lost = [one for one in diff.tensors if one.state == "unreadable"]
    assert lost
    assert all("__1_0.distcp" in one.note for one in lost)


def test_parts_that_overlap_are_damage_though_they_count_as_many_elements(saved: Path, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    shutil.copytree(saved / "distributed" / "healthy", tmp_path / "run")
    file = tmp_path / "run" / ".metadata"
    table = pickle.loads(file.read_bytes())  # written by torch, see make_checkpoints.py
    name, entry = next(
        (name, entry)
        for name, entry in table.state_dict_metadata.items()
        if len(getattr(entry, "chunks", ())) == 2 and entry.chunks[0].sizes == entry.chunks[1].sizes
    )
    entry.chunks[1] = entry.chunks[0]
    file.write_bytes(pickle.dumps(table))
    diff = compare_checkpoints(tmp_path / "run", saved / "distributed" / "healthy")
    (lost,) = (one for one in diff.tensors if one.state == "unreadable")
    assert lost.name == name
    assert "2 hold the element [0, 0]" in lost.note


BOXES = st.lists(st.tuples(st.tuples(*[st.integers(0, 3)] * 2), st.tuples(*[st.integers(0, 4)] * 2)), max_size=5)


@given(BOXES, st.tuples(*[st.integers(0, 4)] * 2))
def test_a_gap_is_the_first_element_that_not_one_box_alone_holds(boxes: list[Any], whole: tuple[int, int]) -> None:
    inside = [
        (place, tuple(max(0, min(size, end - at)) for at, size, end in zip(place, shape, whole, strict=True)))
        for place, shape in boxes
    ]
    counts = np.zeros(whole, int)
    for (down, across), (height, width) in inside:
        counts[down : down + height, across : across + width] += 1
    gap = find_gap(inside, whole)
    wrong = np.argwhere(counts != 1)
    assert (gap is None) == (len(wrong) == 0)
    if gap is not None:
        assert gap == (tuple(wrong[0].tolist()), counts[gap[0]])


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(NotFoundError):
        open_checkpoint(tmp_path / "nothing")
    for path in (tmp_path, tmp_path / "notes.txt"):
        with pytest.raises(UnreadableError):
            open_checkpoint(path)
