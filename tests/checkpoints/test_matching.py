"""Which tensors of two checkpoints count as the same one, and what is told of those that do not look the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from dumpscope.domain.checkpoints.differences import CheckpointDiff
from dumpscope.pipeline.checkpoints.compare import compare_checkpoints

from .conftest import save_file, weights

Tensors = dict[str, np.ndarray[Any, Any]]


def compare(tmp_path: Path, target: Tensors, golden: Tensors, **options: Any) -> CheckpointDiff:
    first, second = save_file(tmp_path / "a.safetensors", target), save_file(tmp_path / "b.safetensors", golden)
    return compare_checkpoints(first, second, **options)


def model(layers: int = 3) -> Tensors:
    shapes: dict[str, tuple[int, ...]] = {
        "embed_tokens__weight": (24, 8),
        "norm__weight": (8,),
        "lm_head__weight": (24, 8),
    }
    for layer in range(layers):
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            shapes[f"layers__{layer}__self_attn__{part}__weight"] = (8, 8)
        shapes[f"layers__{layer}__mlp__gate_proj__weight"] = (16, 8)
        shapes[f"layers__{layer}__mlp__up_proj__weight"] = (16, 8)
        shapes[f"layers__{layer}__mlp__down_proj__weight"] = (8, 16)
    return weights(**shapes)


@pytest.mark.parametrize(
    "wrapper",
    ["module.", "_orig_mod.", "_fsdp_wrapped_module.", "base_model.model.", "model.model.", "module.module.model."],
)
def test_words_of_wrappers_are_taken_off(wrapper: str, tmp_path: Path) -> None:
    golden = model()
    diff = compare(tmp_path, {wrapper + name: array for name, array in golden.items()}, golden)
    assert diff.counts == {"equal": len(golden)}
    assert {one.match for one in diff.tensors} == {"unwrapped"}


def test_words_of_wrappers_inside_are_taken_off(tmp_path: Path) -> None:
    golden = model()
    target = {name.replace("self_attn.", "self_attn._fsdp_wrapped_module."): array for name, array in golden.items()}
    assert compare(tmp_path, target, golden).counts == {"equal": len(golden)}


def test_a_prefix_that_all_layers_change_alike_is_found(tmp_path: Path) -> None:
    golden = model()
    target = {name.replace("layers.", "transformer.h."): array + 1 for name, array in golden.items()}
    diff = compare(tmp_path, target, golden)
    assert diff.counts == {"differs": len(golden)}
    assert diff.rules == ("transformer.h -> layers",)


def test_renamed_parts_are_found_by_their_bytes_and_their_siblings(tmp_path: Path) -> None:
    """Layer 1's tensor was changed too, so only its siblings say what it is."""
    golden = model()
    target = {name.replace("gate_proj", "w1"): array.copy() for name, array in golden.items()}
    target["layers.1.mlp.w1.weight"][3, 4] += 1
    diff = compare(tmp_path, target, golden)
    (changed,) = (one for one in diff.tensors if one.state == "differs")
    assert (changed.name, changed.golden) == ("layers.1.mlp.w1.weight", "layers.1.mlp.gate_proj.weight")
    assert changed.index == (3, 4)
    assert diff.counts == {"differs": 1, "equal": len(golden) - 1}


def test_a_rule_of_the_user_comes_first(tmp_path: Path) -> None:
    golden = model()
    target = {name.replace("mlp.gate_proj", "ff.a"): array * 2 for name, array in golden.items()}
    diff = compare(tmp_path, target, golden, renames=[r"ff\.a=mlp.gate_proj"])
    assert {one.golden for one in diff.tensors if ".ff.a." in one.name and one.match == "rule"} == {
        f"layers.{layer}.mlp.gate_proj.weight" for layer in range(3)
    }


def test_another_layer_is_no_rename(tmp_path: Path) -> None:
    golden = model(4)
    target = {name: array for name, array in golden.items() if not name.startswith("layers.2.")}
    golden = {name: array for name, array in golden.items() if not name.startswith("layers.3.")}
    diff = compare(tmp_path, target, golden)
    assert diff.counts == {"target_only": 7, "golden_only": 7, "equal": 17}


def fuse(tensors: Tensors, fused: str, parts: tuple[str, ...], *, order: tuple[int, ...] = ()) -> Tensors:
    made = {name: array for name, array in tensors.items() if not any(f".{part}." in name for part in parts)}
    for name in tensors:
        if f".{parts[0]}." in name:
            rows = np.concatenate([tensors[name.replace(parts[0], part)] for part in parts])
            made[name.replace(parts[0], fused)] = rows[list(order)] if order else rows
    return made


def test_a_fused_tensor_is_compared_with_its_parts(tmp_path: Path) -> None:
    golden = model()
    target = fuse(golden, "qkv_proj", ("q_proj", "k_proj", "v_proj"))
    for pair in ((target, golden), (golden, target)):
        diff = compare(tmp_path, *pair)
        assert diff.agrees
        assert sum(one.match == "fused" for one in diff.tensors) == 3
        assert any("qkv_proj" in rule and "k_proj" in rule for rule in diff.rules)


def test_a_change_inside_a_fused_tensor_is_found_or_told_as_another_order(tmp_path: Path) -> None:
    golden = model()
    target = fuse(golden, "gate_up_proj", ("gate_proj", "up_proj"), order=tuple(range(31, -1, -1)))
    diff = compare(tmp_path, target, golden)
    assert {(one.state, one.form) for one in diff.tensors if one.match == "fused"} == {("form", "fused")}


def test_a_transposed_matrix_is_told_as_that(tmp_path: Path) -> None:
    golden = model()
    target = {
        name: np.ascontiguousarray(array.T) if "down_proj" in name or "o_proj" in name else array
        for name, array in golden.items()
    }
    forms = {
        one.name: (one.form, one.unequal) for one in compare(tmp_path, target, golden).tensors if one.state == "form"
    }
    assert forms == {
        f"layers.{layer}.{part}.weight": ("transposed", 0)
        for layer in range(3)
        for part in ("mlp.down_proj", "self_attn.o_proj")  # the second is square: its shape tells nothing
    }


def test_reshaped_padded_and_foreign_shapes_are_told_apart(tmp_path: Path) -> None:
    golden = weights(a=(4, 6), b=(10, 4), c=(3, 3))
    target = {
        "a": golden["a"].reshape(24),
        "b": np.concatenate([golden["b"], np.ones((2, 4), np.float32)]),
        "c": golden["c"][:2, :2],
    }
    target["c"] = np.ascontiguousarray(target["c"])
    found = {one.name: (one.state, one.form, one.unequal) for one in compare(tmp_path, target, golden).tensors}
    assert found == {"a": ("form", "reshaped", 0), "b": ("form", "padded", 0), "c": ("form", "shape", -1)}


def test_rounding_to_another_dtype_is_no_difference(tmp_path: Path) -> None:
    golden = model()
    golden["norm.weight"] = np.ones(8, np.float32)
    target = {name: array.astype(ml_dtypes.bfloat16) for name, array in golden.items()}
    diff = compare(tmp_path, target, golden)
    assert diff.counts == {"rounding": len(golden) - 1, "equal_cast": 1}
    target["norm.weight"][2] = 1.03
    assert compare(tmp_path, target, golden).tensors[0].name == "norm.weight"


def test_one_step_is_noise_in_float32_and_a_change_in_bfloat16(tmp_path: Path) -> None:
    wide, narrow = np.ones(100, np.float32), np.ones(100, ml_dtypes.bfloat16)
    others = {"wide": np.nextafter(wide, np.float32(2)), "narrow": narrow.copy()}
    others["narrow"][7] = 1 + 2**-7
    diff = compare(tmp_path, {"wide": wide, "narrow": narrow}, others)
    assert {one.name: one.state for one in diff.tensors} == {"narrow": "differs", "wide": "rounding"}


def test_nan_on_one_side_is_the_worst_difference(tmp_path: Path) -> None:
    golden = weights(a=(40,), b=(40,))
    target = {"a": golden["a"] * 100, "b": golden["b"].copy()}
    target["b"][3] = np.nan
    worst = compare(tmp_path, target, golden).tensors[0]
    assert (worst.name, worst.nonfinite_target, worst.nonfinite_golden) == ("b", 1, 0)
