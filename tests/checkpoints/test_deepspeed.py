"""Checkpoints of DeepSpeed, which DeepSpeed itself wrote (tests/data/make_deepspeed.py): every stage is the whole model."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path

import numpy as np
import pytest
import torch

from dumpscope.domain.checkpoints.tensors import Checkpoint, Raw
from dumpscope.errors import UnreadableError
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints
from dumpscope.readers.checkpoints.opening import open_checkpoint

ARCHIVE = Path(__file__).resolve().parents[1] / "data" / "deepspeed.tar.xz"
TRAINED = ("0.weight", "0.bias", "1.weight", "1.bias", "2.weight", "2.bias", "3.bias")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("deepspeed")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def values(held: Checkpoint) -> dict[str, Raw]:
    assert all(one.problem is None for one in held.tensors)
    return {one.name: one.pieces[0].read() for one in held.tensors}


def test_parts_of_the_ranks_are_put_together_as_deepspeed_puts_them(runs: Path) -> None:
    held = open_checkpoint(runs / "stage2")
    whole = values(open_checkpoint(runs / "whole.pt"))
    found = values(held)
    assert held.kind == "deepspeed"
    assert not held.problems
    for name in TRAINED:
        assert np.array_equal(found[f"optimizer.{name}.fp32"], whole[name]), name
        assert found[f"optimizer.{name}.exp_avg_sq"].shape == whole[name].shape
        assert found[name].shape == whole[name].shape
    assert found["optimizer.param_groups.1.weight_decay"] == 0.0
    assert found["optimizer.param_groups.0.step"] == 3


def test_stage_1_and_2_of_one_training_agree_and_a_planted_change_is_found_alone(runs: Path) -> None:
    assert compare_checkpoints(runs / "stage1", runs / "stage2").agrees
    diff = compare_checkpoints(runs / "stage2_planted", runs / "stage2" / "global_step3")
    worst, *others = diff.tensors
    assert (worst.name, worst.state, worst.unequal) == ("optimizer.3.bias.fp32", "differs", 1)
    assert worst.max_abs == pytest.approx(0.5)
    assert {one.state for one in others} == {"equal"}


def test_stage_3_is_the_whole_model_too(runs: Path) -> None:
    found, whole = values(open_checkpoint(runs / "stage3")), values(open_checkpoint(runs / "whole.pt"))
    assert set(TRAINED) | {"3.weight", "scale"} <= found.keys()
    for name in TRAINED:  # its gradients are averaged in another order: a step of float32 apart
        np.testing.assert_allclose(found[name], whole[name], rtol=1e-6, atol=1e-8)
    diff = compare_checkpoints(runs / "stage3", runs / "stage2")
    states = {one.name: one.state for one in diff.tensors}
    assert {states[name] for name in TRAINED} == {"rounding"}
    assert (states["3.weight"], states["scale"]) == ("equal", "equal"), "frozen, and a buffer"
    assert max(one.rel_l2 or 0.0 for one in diff.tensors if ".exp_avg" in one.name) < 1e-6


@pytest.mark.parametrize("stage", ["stage2", "stage3"])
def test_a_rank_that_is_missing_makes_what_it_holds_unreadable(runs: Path, tmp_path: Path, stage: str) -> None:
    shutil.copytree(runs / stage, tmp_path / "run")
    (tmp_path / "run" / "global_step3" / "bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt").unlink()
    diff = compare_checkpoints(tmp_path / "run", runs / stage)
    (problem,) = diff.problems
    assert (problem.kind, "zero_pp_rank_1" in problem.loc) == ("missing", True)
    assert not diff.agrees
    lost = [one for one in diff.tensors if one.state == "unreadable"]
    assert any(one.name.endswith("bias.exp_avg") for one in lost)
    assert "a rank of its stage could not be read" in lost[0].note


def test_weights_alone_are_compared_without_the_files_of_the_optimizer(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "stage1", tmp_path / "run")
    for file in (tmp_path / "run" / "global_step3").glob("*optim_states.pt"):
        file.unlink()
    held = open_checkpoint(tmp_path / "run")
    assert {one.name for one in held.tensors} == {*TRAINED, "3.weight", "scale"}


def test_what_is_cut_by_tensors_too_is_refused_with_the_remedy(runs: Path, tmp_path: Path) -> None:
    shutil.copytree(runs / "stage1", tmp_path / "run")
    step = tmp_path / "run" / "global_step3"
    shutil.copy(step / "mp_rank_00_model_states.pt", step / "mp_rank_01_model_states.pt")
    with pytest.raises(UnreadableError, match="cut by tensors or layers") as caught:
        open_checkpoint(tmp_path / "run")
    assert "zero_to_fp32.py" in (caught.value.hint or "")


def test_states_of_an_older_deepspeed_follow_the_shapes(tmp_path: Path) -> None:
    """States as a list with a group each, no slices, and no length of a part that is told."""
    whole = torch.arange(10.0)
    shapes = {"a": torch.Size([2, 3]), "b": torch.Size([3])}  # the tenth number fills up
    torch.save(
        {"module": {"a": torch.zeros(2, 3), "b": torch.zeros(3)}, "param_shapes": [shapes], "dp_world_size": 2},
        tmp_path / "mp_rank_00_model_states.pt",
    )
    for rank in range(2):
        part = whole[5 * rank : 5 * rank + 5].clone()
        state = {"base_optimizer_state": [{"exp_avg": part + 100}], "single_partition_of_fp32_groups": [part]}
        torch.save({"optimizer_state_dict": state}, tmp_path / f"zero_pp_rank_{rank}_mp_rank_00_optim_states.pt")
    found = values(open_checkpoint(tmp_path))
    assert np.array_equal(found["optimizer.a.fp32"], np.arange(6.0).reshape(2, 3))
    assert np.array_equal(found["optimizer.b.exp_avg"], np.arange(106.0, 109.0))
