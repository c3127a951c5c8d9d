"""Every number msprobe wrote about the bundled dumps, against ours; what differs on purpose is listed here and in the docs."""

from __future__ import annotations

import ast
import csv
from collections import Counter
from pathlib import Path

import pytest

from dumpscope.domain.facts import TensorFacts
from dumpscope.metrics import compare_tensors
from dumpscope.readers.tensors import torch_file

COLUMNS = {
    "Cosine": "cosine",
    "EucDist": "euclidean",
    "MaxAbsErr": "max_abs",
    "MaxRelativeErr": "max_rel",
    "One Thousandth Err Ratio": "ratio_1e3",
    "Five Thousandths Err Ratio": "ratio_5e3",
}
PAIRS = {
    "tensor_fault/compare_result.csv": ("target_fault", "golden"),
    "tensor_fault_bwd/compare_result.csv": ("target_fault_bwd", "golden"),
    "tensor_fault_weight/compare_result.csv": ("target_fault_weight", "golden"),
    "tensor_fault_gelu_arg/compare_result.csv": ("target_fault_gelu_arg", "golden"),
    "tensor_extra_op/compare_result.csv": ("target_extra_op", "golden"),
    "tensor_renamed/compare_result.csv": ("target_renamed", "golden"),
    "tensor_golden_repeat/compare_result.csv": ("golden", "golden"),
    "tensor_bf16/compare_result.csv": ("target_bf16", "golden"),
    "tensor_nan/compare_result.csv": ("target_nan", "golden"),
    "tensor_nan_mask/compare_result.csv": ("target_nan_mask", "golden"),
    "dist2_tensor/compare_result_rank0.csv": ("dist2_tensor_fault", "dist2_tensor_golden"),
    "dist2_tensor/compare_result_rank1.csv": ("dist2_tensor_fault", "dist2_tensor_golden"),
    "debug_tensor/debug_compare_result.csv": ("debug_save_tensor", "debug_save_tensor"),
    "self_conv_L1/compare_result.csv": ("conv_L1", "conv_L1"),
    "self_weird_mix/compare_result.csv": ("weird_mix", "weird_mix"),
    "self_checkpoint/compare_result.csv": ("checkpoint", "checkpoint"),
    "self_types_L1/compare_result.csv": ("types_L1", "types_L1"),
    "self_microbatch/compare_result.csv": ("microbatch", "microbatch"),
    "renamed_mix_cm/compare_result.csv": ("target_renamed", "golden"),
    "renamed_mix_dm/compare_result.csv": ("target_renamed", "golden"),
    "fm_extra_op/compare_result.csv": ("target_extra_op", "golden"),
}


def data_folder(root: Path, table: str) -> Path:
    step = root / "step0"
    rank = step / "rank1" if "rank1" in table else step / "rank0"
    return (rank if rank.is_dir() else next(step.glob("proc*"))) / "dump_tensor_data"


def close(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= max(1e-6 * abs(theirs), 1e-11)


def differs_on_purpose(facts: TensorFacts, column: str, theirs: str) -> bool:
    """The differences named in docs/metrics.md: they all stand as `Nan` in the peer's table."""
    if theirs != "Nan":
        return False
    if column == "Cosine" and facts.cosine is None:
        return facts.nonfinite_disagree == 0  # exactly one zero vector
    if column == "Cosine":
        return facts.cosine == 1.0 and facts.unequal == 0  # the peer's squares of large float64 overflowed
    return facts.elements == 1 and facts.nonfinite_disagree == 1  # one nan against a number


@pytest.mark.parametrize("table", PAIRS)
def test_every_number_in_the_peers_tables_is_ours_too(dumps: Path, table: str) -> None:
    target, golden = (data_folder(dumps / name, table) for name in PAIRS[table])
    seen: Counter[str] = Counter()
    wrong: list[str] = []
    with (dumps / "peer_results" / table).open(newline="") as file:
        for row in csv.DictReader(file):
            names = ast.literal_eval(row["Data_name"])
            if {"-1", "N/A"} & set(names) or row["Cosine"] == "shape unmatched":
                continue
            first = torch_file.load(target / names[0]).array
            second = torch_file.load(golden / names[1]).array
            if first.size == 0:
                continue
            facts = compare_tensors(first, second)
            for column, field in COLUMNS.items():
                theirs, ours = row[column], getattr(facts, field)
                if theirs == "N/A":
                    seen["not finite"] += 1
                    if facts.nonfinite_disagree == 0:
                        wrong.append(f"{row['NPU Name']} {column}: N/A but all agree")
                elif theirs == "unsupported":
                    seen["one element"] += 1
                    if ours is not None or first.size != 1:
                        wrong.append(f"{row['NPU Name']} {column}: unsupported, ours {ours}")
                elif differs_on_purpose(facts, column, theirs):
                    seen["on purpose"] += 1
                else:
                    seen["number"] += 1
                    if ours is None or not close(ours, float(theirs)):
                        wrong.append(f"{row['NPU Name']} {row['NPU Dtype']} {column}: {theirs}, ours {ours}")
    assert seen["number"] >= 24
    assert seen["on purpose"] <= 4
    assert wrong == [], "\n".join(wrong[:20])
