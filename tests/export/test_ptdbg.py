"""ptdbg's tables: labels at each side of every limit, colours of rows, the advisor's text."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers.ptdbg_dumps import convert_dump

from dumpscope.domain.facts import Outcome, Reached
from dumpscope.domain.options import Options
from dumpscope.domain.result import Unit
from dumpscope.export.table.unit_table import Table
from dumpscope.pipeline.compare.in_process import Outcome as Compared, compare_layouts
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.ptdbg.export.advice import advice
from dumpscope.ptdbg.export.marks import PLAIN, RED, YELLOW, row_marks
from dumpscope.ptdbg.export.table import ptdbg_columns, ptdbg_csv, ptdbg_xlsx
from dumpscope.readers import discover, read_rank
from export.small import NODE, small_unit, tensor, with_facts

RATIOS = ("MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio")
UP, DOWN = math.inf, -math.inf


def beside(number: float, way: float) -> float:
    """The next float64 in a direction."""
    return float(np.nextafter(number, way))


def rows_of(unit: Unit) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(ptdbg_csv(Table(unit))))))


@pytest.mark.parametrize(
    ("cosine", "largest", "label"),
    [
        (0.99, 0.5, "Yes"), (beside(0.99, DOWN), 0.5, "No"), (beside(0.99, UP), 0.5, "Yes"),
        (0.95, 0.001, "Yes"), (0.95, beside(0.001, UP), "No"), (0.95, beside(0.001, DOWN), "Yes"),
        (0.9, 0.0, "Yes"), (beside(0.9, DOWN), 0.0, "No"), (beside(0.9, UP), 0.0, "Yes"),
        (1.0, 1.0, "Yes"), (1.0, beside(1.0, UP), "No"), (1.0, beside(1.0, DOWN), "Yes"),
    ],
)  # fmt: skip
def test_limits_are_strict_on_each_side_of_each(tmp_path: Path, cosine: float, largest: float, label: str) -> None:
    unit = small_unit(tmp_path, {NODE: [tensor(1.0)]})
    facts = [[cosine, 0.0, largest, *[None] * 6]]
    assert rows_of(with_facts(unit, "tensor", tensor=facts))[0]["Accuracy Reached or Not"] == label


def test_what_a_metric_is_not_for_has_its_own_word(tmp_path: Path) -> None:
    inputs = [tensor(1), tensor(1), tensor(1), tensor(1)]
    unit = with_facts(
        small_unit(tmp_path, {NODE: inputs}),
        "tensor",
        outcome=[Outcome.COMPARED, Outcome.EMPTY, Outcome.UNREADABLE, Outcome.COMPARED],
        elements=[1, 0, 2, 2],
        tensor=[[None, None, 0.5, 0.25, *[None] * 5], [None] * 9, [None] * 9, [None, None, 2.0, 2.0, *[None] * 5]],
    )
    found = [(row["Cosine"], row["MaxAbsErr"], row["One Thousandth Err Ratio"]) for row in rows_of(unit)]
    assert found == [
        ("unsupported", "0.5", "Nan"),
        ("unsupported", "0", "0"),
        ("Nan", "Nan", "Nan"),
        ("Nan", "2.0", "Nan"),
    ]
    assert {row["Accuracy Reached or Not"] for row in rows_of(unit)} == {"Nan"}


def test_where_nan_or_infinities_disagree_no_metric_reads_as_a_pass(tmp_path: Path) -> None:
    unit = with_facts(
        small_unit(tmp_path, {NODE: [tensor(1), tensor(1)]}),
        "tensor",
        outcome=[Outcome.COMPARED, Outcome.COMPARED],
        elements=[3, 3],
        nonfinite_disagree=[2, 0],
        tensor=[[1.0, 0.0, 0.0, 0.0, 1.0, 1.0, *[None] * 3]] * 2,
    )
    metrics = (
        "Cosine", "MaxAbsErr", "MaxRelativeErr", "One Thousandth Err Ratio", "Five Thousandths Err Ratio",
        "Accuracy Reached or Not",
    )  # fmt: skip
    found = [[row[name] for name in metrics] for row in rows_of(unit)]
    assert found == [[*["N/A"] * 5, "No"], ["1.0", "0.0", "0.0", "1.0", "1.0", "Yes"]]


@pytest.mark.parametrize(
    ("target", "golden", "word"),
    [
        (1.0, 0.5 - 2e-10, "Warning"), (1.0, 0.5, ""), (1.0, 0.6, ""), (0.0, 0.0, ""),
        (math.inf, 1.0, "Warning"), (1.0, math.nan, "Warning"), (math.nan, math.nan, ""), (math.inf, math.inf, ""),
        (math.inf, -math.inf, "Warning"), (None, math.inf, ""),
    ],
)  # fmt: skip
def test_statistics_warn_past_half_and_where_only_one_is_finite(
    tmp_path: Path, target: float | None, golden: float, word: str
) -> None:
    """ptdbg's quotient of an infinity is no number and was never flagged."""
    unit = small_unit(tmp_path, {NODE: [tensor(target, 0.0)]}, {NODE: [tensor(golden, 0.0)]})
    assert rows_of(unit)[0]["Result"] == word


# -- colours ---------------------------------------------------------------------------------------------------------


def marked(tmp_path: Path, given: list[Any], result: Any, mode: str = "tensor") -> list[int]:
    """Marks of a call with inputs (cosine, largest error, ratio, top of both sides) and such an output."""
    rows = [*given, result]
    for side in ("target", "golden"):
        folder = tmp_path / side / "step0" / "rank0"
        folder.mkdir(parents=True)
        tops = [row[3] if side == "target" else row[4] for row in rows]
        records = [tensor(top, 0.0) for top in tops]
        data = {NODE: {"input_args": records[:-1], "input_kwargs": {}, "output": [records[-1]]}}
        text = json.dumps({"task": "statistics", "level": "L1", "framework": "pytorch", "data": data})
        (folder / "dump.json").write_text(text)
    dumps = [read_rank(discover(tmp_path / side).ranks[0]) for side in ("target", "golden")]
    unit = compare_rank(*dumps, step=0, rank=0, options=Options())
    if mode == "tensor":
        unit = with_facts(unit, mode, tensor=[[row[0], 0.0, row[1], 0.0, row[2], *[None] * 4] for row in rows])
    return list(row_marks(Table(unit)).tolist())


FINE = (1.0, 0.0, 1.0, 1.0, 1.0)


@pytest.mark.parametrize(
    ("given", "result", "mark"),
    [
        (FINE, FINE, PLAIN),
        (FINE, (1.0, 0.0, 1.0, math.inf, 1.0), RED),
        (FINE, (1.0, 0.0, 1.0, math.nan, 1.0), RED),
        (FINE, (1.0, 1e10, 1.0, 1.0, 1.0), YELLOW),
        (FINE, (1.0, beside(1e10, UP), 1.0, 1.0, 1.0), RED),
        ((1.0, 0.5, 1.0, 1.0, 1.0), (1.0, 9.9, 1.0, 1.0, 1.0), PLAIN),
        ((1.0, 0.5, 1.0, 1.0, 1.0), (1.0, 10.0, 1.0, 1.0, 1.0), YELLOW),
        ((1.0, 12.0, 1.0, 1.0, 1.0), (1.0, 99.0, 1.0, 1.0, 1.0), PLAIN),
        ((1.0, 12.0, 1.0, 1.0, 1.0), (1.0, 100.0, 1.0, 1.0, 1.0), YELLOW),
        ((1.0, 0.0, 0.91, 1.0, 1.0), (1.0, 0.0, 0.59, 1.0, 1.0), RED),
        ((1.0, 0.0, 0.9, 1.0, 1.0), (1.0, 0.0, 0.59, 1.0, 1.0), YELLOW),
        ((1.0, 0.0, 0.91, 1.0, 1.0), (1.0, 0.0, 0.6, 1.0, 1.0), YELLOW),
        ((1.0, 0.0, 0.5, 1.0, 1.0), (1.0, 0.0, 0.45, 1.0, 1.0), PLAIN),
        ((1.0, 0.0, 1.0, 1.0, 1.0), (0.89, 0.0, 1.0, 1.0, 1.0), YELLOW),
        ((1.0, 0.0, 1.0, 1.0, 1.0), (0.91, 0.0, 1.0, 1.0, 1.0), PLAIN),
        ((1.0, 0.0, 0.95, math.nan, 1.0), (1.0, 0.0, 0.5, 1.0, 1.0), PLAIN),
    ],
)
def test_outputs_are_coloured_by_what_came_in(tmp_path: Path, given: Any, result: Any, mark: int) -> None:
    assert marked(tmp_path, [given], result)[-1] == mark


def test_every_input_counts(tmp_path: Path) -> None:
    low = (1.0, 0.0, 0.5, 1.0, 1.0)
    assert marked(tmp_path / "a", [low, (1.0, 0.0, 0.95, 1.0, 1.0)], low)[-1] == RED
    assert marked(tmp_path / "b", [low, low], (1.0, 0.0, 0.45, 1.0, 1.0)) == [PLAIN] * 3


@pytest.mark.parametrize(
    ("given", "result", "mark"),
    [
        ((2.0, 2.0), (2.0, 2.0), PLAIN),
        ((2.0, 2.0), (3.1, 2.0), RED),
        ((2.0, 2.0), (3.0, 2.0), YELLOW),
        ((2.0, 2.0), (2.19, 2.0), PLAIN),
        ((2.02, 2.0), (2.5, 2.0), PLAIN),
        ((2.0, 2.0), (0.0, -0.5), RED),
        ((2.0, 2.0), (2e10 + 4, 2.0), RED),
    ],
)
def test_statistics_are_coloured_by_their_share(tmp_path: Path, given: Any, result: Any, mark: int) -> None:
    one, other = ((1.0, 0.0, 1.0, *tops) for tops in (given, result))
    assert marked(tmp_path, [one], other, "statistics")[-1] == mark


def test_a_coloured_row_is_coloured_whole(tmp_path: Path) -> None:
    unit = small_unit(tmp_path, {NODE: [tensor(math.inf, 0.0), tensor(1.0, 0.0)]})
    unit = with_facts(unit, "tensor")
    ptdbg_xlsx(str(tmp_path / "t.xlsx"), [Table(unit)])
    with zipfile.ZipFile(tmp_path / "t.xlsx") as book:
        sheet, styles = book.read("xl/worksheets/sheet1.xml").decode(), book.read("xl/styles.xml").decode()
    head, red, plain = re.findall(r"<row .*?</row>", sheet)
    columns = head.count("<c ")
    assert red.count('<c s="5" r=') == columns
    assert "s=" not in plain.replace("xml:space=", "").replace("inlineStr", "").replace("<is>", "")
    fills = re.findall(r'<fgColor rgb="(\w+)"', styles)
    cells = re.findall(r'<xf [^>]*fillId="(\d+)"[^>]*>', styles.partition("<cellXfs")[2])
    assert fills[int(cells[5]) - 2] == "FFFF0000"
    assert fills[int(cells[4]) - 2] == "00FFFF00"


# -- advice ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fault(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Compared:
    sides = [
        discover(convert_dump(dumps / name, tmp_path_factory.mktemp(name), form="4.0"))
        for name in ("target_fault", "golden")
    ]
    return compare_layouts(*sides, Options(policy="ptdbg"), paths=("a", "b"), jobs=1)


def test_the_suspect_is_the_cause_and_the_line_is_where_it_stands(fault: Compared) -> None:
    table = Table(fault.units[0])
    line, suspect, said = advice(fault.answer, table).splitlines()  # by ptdbg's limits nothing is No
    assert suspect == "Suspect Nodes: Functional_softmax_1_forward_output"
    number = int(line.removeprefix("Line: "))
    lines = list(csv.reader(io.StringIO("".join(ptdbg_csv(table)))))
    assert lines[number - 1][0] == "Functional_softmax_1_forward_output"
    assert said.startswith("Expert Advice: The input is equal; the output differs.")
    assert said.endswith(f" Confidence: high ({100 * fault.answer.origins[0].confidence:.0f} %).")


def test_a_cause_in_what_came_in_is_named_there(dumps: Path) -> None:
    sides = [discover(dumps / name) for name in ("target_fault_weight", "golden")]
    done = compare_layouts(*sides, Options(steps=(0,)), paths=("a", "b"), jobs=1)
    text = advice(done.answer, Table(done.units[0]))
    assert "Suspect Nodes: Functional.linear.6.forward.input.1\n" in text


def test_the_first_no_is_named_beside_the_cause(dumps: Path) -> None:
    sides = [discover(dumps / name) for name in ("target_nan", "golden")]
    done = compare_layouts(*sides, Options(policy="ptdbg"), paths=("a", "b"), jobs=1)
    table = Table(done.units[0])
    number, name = advice(done.answer, table).splitlines()[3].removeprefix("First No: line ").split(", ")
    assert name == "Functional.gelu.0.forward.output.0"
    rows = list(csv.reader(io.StringIO("".join(ptdbg_csv(table)))))
    assert rows[int(number) - 1][0] == name
    assert [row for row in rows[: int(number)] if "No" in row] == [rows[int(number) - 1]]


def test_no_cause_is_not_called_fine_where_nothing_met(tmp_path: Path, fault: Compared) -> None:
    """ptdbg says that all is fine where every call was unmatched."""
    healthy = small_unit(tmp_path / "a", {NODE: [tensor(1.0)]})
    lone = small_unit(tmp_path / "b", {NODE: [tensor(1.0)]}, {"Torch.sub.0.forward": [tensor(1.0)]})
    off = with_facts(small_unit(tmp_path / "c", {NODE: [tensor(1.0)]}), "tensor", tensor=[[0.5, 0.0, 2.0, *[None] * 6]])
    answer = replace(fault.answer, origins=[])
    texts = [advice(answer, Table(unit)) for unit in (healthy, lone, off)]
    assert all(text.startswith("Line: NA\nSuspect Nodes: NA\nExpert Advice: ") for text in texts)
    assert texts[0].endswith("within the limits.\n")
    assert "nothing was compared" in texts[1]
    assert "1 values are beyond" in texts[2]


def test_values_without_a_partner_are_counted_where_the_others_are_fine(tmp_path: Path, fault: Compared) -> None:
    unit = small_unit(
        tmp_path,
        {NODE: [tensor(1.0)], "Torch.sub.0.forward": [tensor(2.0), tensor(3.0)]},
        {NODE: [tensor(1.0)], "Torch.exp.0.forward": [tensor(4.0)]},
    )
    text = advice(replace(fault.answer, origins=[]), Table(unit))
    assert "within the limits. 2 values of the NPU side and 1 of the bench have no partner" in text


def test_a_rank_that_only_receives_names_where_it_came_from(dumps: Path) -> None:
    sides = [discover(dumps / f"dist2_stat_{name}") for name in ("fault", "golden")]
    done = compare_layouts(*sides, Options(), paths=("a", "b"), jobs=1)
    (origin,) = done.answer.origins
    reached = replace(origin, spread=[Reached(rank=0, node="Distributed.all_reduce.0.forward")])
    answer = replace(done.answer, origins=[reached])
    texts = {unit.rank: advice(answer, Table(unit)) for unit in done.units}
    assert "Suspect Nodes: Tensor.__add__.0.forward" in texts[1]
    assert "came from Tensor.__add__.0.forward of step 0 rank 1" in texts[0]


@pytest.mark.parametrize(
    ("form", "summary", "missing"),
    [
        ("2.3", "tensor", {*RATIOS, "NPU l2norm", "Bench l2norm"}),
        ("2.3", "statistics", {"L2norm diff", "NPU l2norm", "Bench l2norm"}),
        ("4.0", "tensor", set()),
        ("4.0", "statistics", {"Result", "Err_message"}),
        ("6.0", "tensor", set()),
        ("6.0", "statistics", set()),
    ],
)  # fmt: skip
def test_a_table_has_the_columns_of_the_generation_that_was_compared(
    dumps: Path, tmp_path: Path, form: str, summary: str, missing: set[str]
) -> None:
    source = {"tensor": ("target_fault", "golden"), "statistics": ("stat_fault", "stat_golden")}[summary]
    sides = [convert_dump(dumps / name, tmp_path / name, form=form, summary=summary) for name in source]
    target, golden = (read_rank(discover(side).ranks[0]) for side in sides)
    table = Table(compare_rank(target, golden, step=0, rank=0, options=Options()))
    heading, *rows = csv.reader(io.StringIO("".join(ptdbg_csv(table))))
    last = [column.name for column in ptdbg_columns(summary, stacks=True)]
    assert [name for name in last if name not in heading] == [name for name in last if name in missing]
    assert {len(row) for row in rows} == {len(heading)}


def test_rows_that_are_well_have_no_message(dumps: Path) -> None:
    target, golden = (read_rank(discover(dumps / name).ranks[0]) for name in ("target_nan", "golden"))
    rows = rows_of(compare_rank(target, golden, step=0, rank=0, options=Options()))
    told = {
        label: [row["Err_message"] for row in rows if row["Accuracy Reached or Not"] == label]
        for label in ("Yes", "No")
    }
    assert set(told["Yes"]) == {""}
    assert told["No"]
    assert all(told["No"])
