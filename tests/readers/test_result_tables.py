"""Result tables of msprobe and ptdbg open as a comparison of their two sides."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import openpyxl
import pytest

from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.errors import ForeignError, UnreadableError
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover
from dumpscope.readers.result_tables import find_tables, write_dumps
from dumpscope.readers.result_tables.rows import read_row

TRUTHS = {
    "tensor_fault": ("Functional.softmax.1.forward", "computation"),
    "stat_fault": ("Functional.softmax.1.forward", "computation"),
    "md5_fault": ("Functional.softmax.1.forward", "computation"),
    "xor_fault": ("Functional.softmax.1.forward", "computation"),
    "da_tensor_fault": ("Functional.softmax.1.forward", "computation"),
    "tensor_fault_gelu_arg": ("Functional.gelu.1.forward", "configuration"),
    "stat_fault_weight": ("Functional.linear.6.forward", "weight"),
    "tensor_fault_weight": ("Functional.linear.6.forward", "weight"),
    "stat_fault_bwd": ("Functional.layer_norm.3.backward", "computation"),
    "tensor_fault_bwd": ("Functional.layer_norm.3.backward", "computation"),
    "stat_nan": ("Functional.gelu.0.forward", "overflow"),
    "tensor_nan": ("Functional.gelu.0.forward", "overflow"),
    "tensor_nan_mask": ("Tensor.masked_fill.1.forward", "input"),
    "fm_extra_op": ("Functional.gelu.1.forward", "structure"),
}
"""Folder of a real table of msprobe -> cause, as the README of the dumps tells."""

PTDBG = (
    "NPU Name,Bench Name,NPU Tensor Dtype,Bench Tensor Dtype,NPU Tensor Shape,Bench Tensor Shape,Cosine,MaxAbsErr,NPU max,"
    "NPU min,NPU mean,Bench max,Bench min,Bench mean,Accuracy Reached or Not,Err_message"
)


def compare_table(path: Path, tmp_path: Path) -> Outcome:
    opened = write_dumps(find_tables(path), tmp_path / "sides")
    sides = discover(opened.target), discover(opened.golden)
    return compare_layouts(*sides, Options(), paths=(str(opened.target), str(opened.golden)))


def answer_of(path: Path, tmp_path: Path) -> Answer:
    return compare_table(path, tmp_path).answer


@pytest.mark.parametrize("name", TRUTHS)
def test_the_cause_is_named_from_the_table_alone(name: str, dumps: Path, tmp_path: Path) -> None:
    first = answer_of(dumps / "peer_results" / name, tmp_path).origins[0]
    assert (first.node, first.kind) == TRUTHS[name]


@pytest.mark.parametrize(
    "name", ["tensor_golden_repeat", "stat_bf16", "tensor_bf16", "self_types_L1", "renamed_mix_cm"]
)
def test_a_table_of_a_healthy_pair_names_nothing(name: str, dumps: Path, tmp_path: Path) -> None:
    answer = answer_of(dumps / "peer_results" / name, tmp_path)
    assert not answer.origins
    assert answer.counts.no == 0


def test_distances_of_the_table_are_those_shown(dumps: Path, tmp_path: Path) -> None:
    path = dumps / "peer_results" / "tensor_fault" / "compare_result.csv"
    unit = compare_table(path, tmp_path).units[0]
    with path.open(newline="") as file:
        rows = {row["NPU Name"]: row for row in csv.DictReader(file)}
    row = rows["Functional.softmax.1.forward.output.0"]
    node = unit.target.nodes.names.index("Functional.softmax.1.forward")
    pair = unit.pairs.target.tolist().index(node)
    item = max(place for place, one in enumerate(unit.items.pair.tolist()) if one == pair)
    for metric, column in (("cosine", "Cosine"), ("euclidean", "EucDist"), ("max_abs", "MaxAbsErr")):
        assert unit.facts.metric(metric)[item] == float(row[column])
    assert unit.facts.unequal[item] == -1  # a table does not tell it


def test_the_call_stack_of_the_table_is_that_of_the_call(dumps: Path, tmp_path: Path) -> None:
    first = answer_of(dumps / "peer_results" / "stat_fault", tmp_path).origins[0]
    assert any("models.py" in frame for frame in first.stack)


def test_tables_of_several_ranks_are_one_comparison(dumps: Path, tmp_path: Path) -> None:
    answer = answer_of(dumps / "peer_results" / "dist2_stat", tmp_path)
    assert answer.target.ranks == [0, 1]
    assert (answer.origins[0].node, answer.origins[0].rank) == ("Tensor.__add__.0.forward", 1)


def test_the_answer_says_that_it_comes_from_a_table(dumps: Path, tmp_path: Path) -> None:
    answer = answer_of(dumps / "peer_results" / "stat_fault", tmp_path)
    assert any(one["id"] == "setting.note.table" for one in answer.settings_said)


def test_the_newest_table_of_a_rank_counts(dumps: Path, tmp_path: Path) -> None:
    table = (dumps / "peer_results" / "stat_fault" / "compare_result.csv").read_text()
    for stamp in ("20240101000000", "20240301000000", "20240201000000"):
        (tmp_path / f"compare_result_rank3_{stamp}.csv").write_text(table)
    (found,) = find_tables(tmp_path)
    assert (found.rank, Path(found.path).name) == (3, "compare_result_rank3_20240301000000.csv")


def test_a_workbook_says_what_the_csv_says(dumps: Path, tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    with (dumps / "peer_results" / "tensor_fault" / "compare_result.csv").open(newline="") as file:
        for line in csv.reader(file):
            book.active.append(line)
    book.save(tmp_path / "compare_result_20240101000000.xlsx")
    first = answer_of(tmp_path / "compare_result_20240101000000.xlsx", tmp_path).origins[0]
    assert (first.node, first.kind) == TRUTHS["tensor_fault"]


def test_names_and_verdicts_of_ptdbg_are_read(tmp_path: Path) -> None:
    lines = [
        PTDBG,
        'Functional_relu_0_forward_input.0,Functional_relu_0_forward_input.0,torch.float32,torch.float32,"[2, 3]","[2, 3]",'
        "1.000000,0.000000,2.0,0.5,1.0,2.0,0.5,1.0,Yes,",
        'Functional_relu_0_forward_output,Functional_relu_0_forward_output,torch.float32,torch.float32,"[2, 3]","[2, 3]",'
        "0.707107,1.500000,3.5,0.5,1.3,2.0,0.5,1.0,No,",
        'Functional_relu_1_forward_input.0,N,torch.float32,a,"[2, 3]",n,Nan,Nan,3.5,0.5,1.3,Nan,Nan,Nan,Nan,N.npy not found',
    ]
    (tmp_path / "compare_result_20230401000000.csv").write_text("\n".join(lines))
    answer = answer_of(tmp_path, tmp_path)
    assert answer.origins[0].node == "Functional.relu.0.forward"
    assert answer.counts.unmatched_target == 1
    dump = json.loads((tmp_path / "sides" / "target" / "step0" / "rank" / "dump.json").read_text())
    record = dump["data"]["Functional.relu.0.forward"]["output"][0]
    assert record["table"] == {"verdict": "No"}
    assert record["measured"]["cosine"] == 0.707107


def test_a_row_without_a_partner_has_no_golden() -> None:
    row = read_row({"NPU Name": "Tensor.add.0.forward.input.0", "Bench Name": "N/A", "NPU Dtype": "torch.float32"})
    assert row is not None
    assert row.golden is None


def test_a_table_named_as_a_dump_says_how_it_opens(dumps: Path) -> None:
    with pytest.raises(ForeignError, match="result table of msprobe or ptdbg") as caught:
        discover(dumps / "peer_results" / "stat_fault" / "compare_result.csv")
    assert "dumpscope compare FILE" in str(caught.value.hint)


def test_a_graph_of_msprobe_says_what_it_is(tmp_path: Path) -> None:
    path = tmp_path / "compare.vis"
    path.write_text("{}")
    with pytest.raises(ForeignError, match="graph of msprobe's visualization"):
        discover(path)


def test_other_csv_files_are_no_tables(tmp_path: Path) -> None:
    path = tmp_path / "loss.csv"
    path.write_text("step,loss\n0,1.5\n")
    assert find_tables(path) == []


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "compare_result_20240101000000.csv"
    path.write_text(PTDBG + "\n")
    with pytest.raises(UnreadableError, match="no row"):
        write_dumps(find_tables(path), tmp_path / "sides")
