"""Every format says the same, loses nothing, and opens safely."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dumpscope.domain.facts import Outcome, Verdict
from dumpscope.domain.options import Options
from dumpscope.domain.records import Kind
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import Problem, UsageError
from dumpscope.export import tables
from dumpscope.export.columns import columns
from dumpscope.export.document import document, json_text, wire
from dumpscope.export.files import check_formats, write_files
from dumpscope.export.frames import parsed, user_frame
from dumpscope.export.ptdbg import accuracy, md5_result, ptdbg_columns, statistics_result, write_ptdbg_csv
from dumpscope.export.report import report_html
from dumpscope.export.rows import ExportRow, SideCells, Table, scalar_changes, side_cells, stored
from dumpscope.export.tables import csv_lines, write_csv, write_xlsx
from dumpscope.export.text import guarded, percent
from dumpscope.export.unit_rows import rows_from_unit, table_from_unit
from dumpscope.pipeline.local import Outcome as Result
from dumpscope.pipeline.local import compare_layouts
from dumpscope.pipeline.report import report
from dumpscope.readers import discover

EVIL = '=HYPERLINK("x")<img src=x onerror=alert(1)>&amp;"\'</script>'


def compared(dumps: Path, target: str, golden: str = "golden") -> Result:
    return compare_layouts(
        discover(dumps / target), discover(dumps / golden), Options(steps=(0,)), paths=(target, golden), jobs=1
    )


@pytest.fixture(scope="module")
def fault(dumps: Path) -> Result:
    return compared(dumps, "target_fault")


def a_row(**changes: object) -> ExportRow:
    side = SideCells(
        name="Torch.add.0.forward.output.0", dtype="torch.float32", shape="[2]", requires_grad=False,
        stats=(math.inf, -math.inf, math.nan, None), hash=None, data_name=None,
    )  # fmt: skip
    row = ExportRow(
        step=0, rank=0, node="Torch.add.0.forward", golden_node="Torch.add.0.forward", role="output", target=side,
        golden=side, match="exact", confidence=1.0, outcome=Outcome.COMPARED, diff=(math.inf, 0.0, math.nan, None),
        rel=(math.inf, 0.0, math.nan, 0.125), tensor=(None,) * 9, elements=2, unequal=0, nonfinite_target=1,
        nonfinite_golden=1, nonfinite_disagree=0, verdict=Verdict.NO, rule="N-1", score=math.inf, message="because",
        cls="origin", result="error", errors=("error: x",), stack=None,
    )  # fmt: skip
    return replace(row, **changes)  # type: ignore[arg-type]


def a_table(*rows: ExportRow, mode: str = "statistics") -> Table:
    return Table(step=0, rank=0, mode=mode, stacks=False, rows=rows)


def csv_rows(table: Table) -> list[dict[str, str]]:
    stream = io.StringIO()
    write_csv(stream, table)
    return list(csv.DictReader(io.StringIO(stream.getvalue())))


def test_infinities_nan_and_absence_are_four_different_cells() -> None:
    (row,) = csv_rows(a_table(a_row()))
    assert [row[f"NPU {name}"] for name in ("max", "min", "mean", "l2norm")] == ["inf", "-inf", "nan", "None"]
    assert [row[name] for name in ("Max diff", "Min diff", "Mean diff", "L2norm diff")] == ["inf", "0.0", "nan", "N/A"]
    assert [row[f"{name}RelativeErr"] for name in ("Max", "Min", "Mean", "Norm")] == ["inf", "0", "nan", "12.5%"]
    (alone,) = csv_rows(a_table(a_row(golden=None)))
    assert alone["Bench max"] == alone["Bench Name"] == "N/A"


def test_streamed_csv_is_the_written_csv(fault: Result) -> None:
    stream = io.StringIO()
    assert write_csv(stream, table_from_unit(fault.units[0])) == 503
    assert "".join(csv_lines(table_from_unit(fault.units[0]))) == stream.getvalue()


def test_a_stack_stands_in_the_first_row_of_its_call_only(fault: Result) -> None:
    rows = list(rows_from_unit(fault.units[0]))
    seen: set[str | None] = set()
    for row in rows:
        if row.node in seen:
            assert row.stack is None
        elif row.node is not None and row.node.endswith("forward"):
            assert row.stack
        seen.add(row.node)


def test_csv_names_the_fault_and_the_verdict(fault: Result) -> None:
    rows = {row["NPU Name"]: row for row in csv_rows(table_from_unit(fault.units[0]))}
    row = rows["Functional.softmax.1.forward.output.0"]
    assert (row["Accuracy Reached or Not"], row["Node Class"], row["Match"]) == ("No", "origin", "exact")
    assert float(row["MaxAbsErr"]) == pytest.approx(0.0071052, rel=1e-4)


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx"])
def test_what_a_spreadsheet_would_run_is_guarded(text: str) -> None:
    assert guarded(text) == f"'{text}"
    cells = side_cells(
        name=text, kind=Kind.SCALAR, type_name="str", dtype=None, shape=None, requires_grad=None,
        stats=(None, None, None, None), digest=None, value=json.dumps(text), data_name=None,
    )  # fmt: skip
    (row,) = csv_rows(a_table(a_row(target=cells, message=text, node=text)))
    assert not any(value.startswith(("=", "+", "@")) for value in row.values())
    assert row["NPU Name"] == row["NPU max"] == row["Message"] == row["Node"] == f"'{text}"


def test_a_carriage_return_in_a_name_ends_no_line() -> None:
    (row,) = csv_rows(a_table(a_row(message="one\rtwo\nthree")))
    assert row["Message"] == "one\\rtwo\nthree"


def test_numbers_are_never_guarded() -> None:
    (row,) = csv_rows(a_table(a_row(diff=(-1.5, 2, None, None))))
    assert row["Max diff"] == "-1.5"


def sheet_cells(path: Path, sheet: int) -> list[list[str]]:
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(path) as book:
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{sheet}.xml"))
        texts: list[str] = []
        if "xl/sharedStrings.xml" in book.namelist():
            strings = ElementTree.fromstring(book.read("xl/sharedStrings.xml"))
            texts = ["".join(part.itertext()) for part in strings.findall("m:si", space)]
    out = []
    for row in root.iterfind(".//m:row", space):
        cells = []
        for cell in row.findall("m:c", space):
            value = "".join(cell.itertext())
            cells.append(texts[int(value)] if cell.get("t") == "s" else value)
        out.append(cells)
    return out


def test_xlsx_holds_the_same_rows_as_csv(fault: Result, tmp_path: Path) -> None:
    path = tmp_path / "result.xlsx"
    write_xlsx(str(path), [table_from_unit(fault.units[0])])
    cells = sheet_cells(path, 1)
    wanted = csv_rows(table_from_unit(fault.units[0]))
    assert cells[0] == list(wanted[0])
    assert [row[0] for row in cells[1:]] == [row["NPU Name"] for row in wanted]
    place = cells[0].index("MaxAbsErr")
    assert [row[place] for row in cells[1:]] == [row["MaxAbsErr"].removesuffix(".0") for row in wanted] or all(
        one[place] == other["MaxAbsErr"] or float(one[place]) == pytest.approx(float(other["MaxAbsErr"]))
        for one, other in zip(cells[1:], wanted, strict=True)
    )


def test_xlsx_goes_on_in_a_further_sheet_and_writes_no_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tables, "SHEET_ROWS", 3)
    rows = [a_row(message=f"=row{number}") for number in range(7)]
    path = tmp_path / "long.xlsx"
    write_xlsx(str(path), [a_table(*rows)])
    with zipfile.ZipFile(path) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        assert not any(b"<f>" in book.read(name) for name in sheets)
    counts = [len(sheet_cells(path, number)) - 1 for number in range(1, len(sheets) + 1)]
    assert counts == [3, 3, 1]
    assert sheet_cells(path, 1)[1][sheet_cells(path, 1)[0].index("NPU max")] == "inf"


def test_xlsx_cuts_texts_a_cell_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "wide.xlsx"
    write_xlsx(str(path), [a_table(a_row(message="x" * 40_000))])
    assert max(len(cell) for cell in sheet_cells(path, 1)[1]) == 32_767


def test_json_document_is_strict_and_follows_the_contract(fault: Result) -> None:
    text = "".join(json_text(fault.answer, rows_from_unit(fault.units[0])))
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert list(found)[:9] == [
        "schema", "mode", "policy", "target", "golden", "counts", "first_no", "origins", "settings",
    ]  # fmt: skip
    assert found["schema"] == 1
    assert set(found["counts"]) == {
        "nodes", "items", "yes", "no", "warning", "not_comparable", "unmatched_target", "unmatched_golden", "unreadable",
    }  # fmt: skip
    assert set(found["origins"][0]) == {"step", "rank", "node", "kind", "confidence", "evidence", "advice", "stack"}
    assert set(found["first_no"]) == {"step", "rank", "node", "item", "metrics", "reason", "stack"}
    assert len(found["pairs"]) == found["counts"]["items"]
    assert {"target", "golden", "match", "verdict", "metrics", "message"} <= set(found["pairs"][0])
    assert {pair["verdict"] for pair in found["pairs"]} <= {"yes", "no", "warning", "n/a"}
    assert json.loads("".join(json_text(fault.answer))) == document(fault.answer)


def test_wire_values_survive_strict_json() -> None:
    held = {"a": math.nan, "b": [math.inf, -math.inf], "c": 2**60, "d": True, "e": None, "f": 1.5}
    assert wire(held) == {"a": "nan", "b": ["inf", "-inf"], "c": str(2**60), "d": True, "e": None, "f": 1.5}


class Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))


def test_report_opens_offline_without_a_script_and_is_small(fault: Result) -> None:
    page = report_html(report(fault.answer, fault.units))
    assert len(page.encode()) < 5_000_000
    assert "http://" not in page
    assert "https://" not in page
    parser = Page()
    parser.feed(page)
    tags = {tag for tag, _ in parser.tags}
    assert not tags & {"script", "link", "iframe", "img", "object"}
    assert not any({"src", "href", "onload", "onclick"} & set(attributes) for _, attributes in parser.tags)
    assert sum(tag == "svg" for tag, _ in parser.tags) == 2
    assert "prefers-color-scheme: dark" in page


def test_report_names_the_origin_its_reason_and_its_line(fault: Result) -> None:
    page = report_html(report(fault.answer, fault.units))
    banner = page[page.index('class="banner') : page.index("</section>")]
    assert "Functional.softmax.1.forward" in banner
    assert "computation" in banner
    assert "models.py:14" in banner
    assert "relative L2" in banner
    assert "backward" in page


def test_report_lists_calls_without_a_partner(dumps: Path) -> None:
    found = compared(dumps, "target_extra_op")
    page = report_html(report(found.answer, found.units))
    assert "only in target" in page
    assert re.search(r"<pre>[^<]*Tensor\.__mul__", page)


def test_markup_in_names_is_shown_not_obeyed(fault: Result) -> None:
    whole = report(fault.answer, fault.units)
    origin = replace(fault.answer.origins[0], node=EVIL, evidence=EVIL, advice=EVIL, stack=[EVIL], kind=EVIL)
    assert fault.answer.first_no is not None
    answer = replace(
        fault.answer,
        origins=[origin],
        first_no=replace(fault.answer.first_no, item=EVIL, reason=EVIL, stack=[EVIL]),
        settings=[EVIL],
        problems=[Problem(loc=EVIL, kind=EVIL, message=EVIL)],
        target=replace(fault.answer.target, path=EVIL, framework=EVIL),
    )
    side = whole.top[0].target
    assert side is not None
    row = replace(whole.top[0], target=replace(side, name=EVIL), message=EVIL)
    page = report_html(
        replace(
            whole, title=EVIL, answer=answer, top=[row], unmatched_target=[EVIL], unmatched_golden=[EVIL], version=EVIL
        )
    )
    parser = Page()
    parser.feed(page)
    assert not any(tag in ("img", "script") for tag, _ in parser.tags)
    assert page.count("&lt;img src=x") > 10


def test_a_clean_comparison_says_so_in_the_report(dumps: Path) -> None:
    found = compared(dumps, "golden")
    page = report_html(report(found.answer, found.units))
    assert "No divergence" in page
    assert 'class="banner fine"' in page


def test_files_are_named_by_step_and_rank_only_where_there_are_several(fault: Result, tmp_path: Path) -> None:
    unit = fault.units[0]
    makers = [lambda: table_from_unit(unit), lambda: table_from_unit(replace(unit, step=1, rank=3))]
    alone = write_files(tmp_path / "one", ["csv"], fault.answer, makers[:1], lambda: report(fault.answer, [unit]))
    assert [path.name for path in alone] == ["compare_result.csv"]
    both = write_files(
        tmp_path / "two",
        ["csv", "json", "html", "ptdbg-csv"],
        fault.answer,
        makers,
        lambda: report(fault.answer, [unit]),
    )
    assert [path.name for path in both] == [
        "compare_result_step0_rank0.csv", "compare_result_step1_rank3.csv", "export.json", "report.html",
        "ptdbg_result_step0_rank0.csv", "ptdbg_result_step1_rank3.csv",
    ]  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "two").iterdir()) == sorted(path.name for path in both)
    assert "pairs" not in json.loads((tmp_path / "two" / "export.json").read_text())


def test_a_failed_file_leaves_the_old_one_and_no_rest(fault: Result, tmp_path: Path) -> None:
    old = tmp_path / "compare_result.csv"
    old.write_text("old")

    def broken() -> Table:
        def rows() -> object:
            yield a_row()
            raise RuntimeError

        return Table(step=0, rank=0, mode="statistics", stacks=False, rows=rows())  # type: ignore[arg-type]

    with pytest.raises(RuntimeError):
        write_files(tmp_path, ["csv"], fault.answer, [broken], lambda: report(fault.answer, fault.units))
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["compare_result.csv"]


def test_an_unknown_format_is_named(fault: Result) -> None:
    with pytest.raises(UsageError, match="docx"):
        check_formats(["csv", "docx"])


@pytest.mark.parametrize(
    ("tensor", "label"),
    [
        ((0.99, 0, 0.5), "Yes"),
        ((0.989, 0, 0.001), "Yes"),
        ((0.989, 0, 0.0011), "No"),
        ((0.9, 0, 0.0), "Yes"),
        ((0.89, 0, 0.0), "No"),
        ((1.0, 0, 1.0), "Yes"),
        ((1.0, 0, 1.1), "No"),
        ((math.nan, 0, 0.1), "Nan"),
        ((None, 0, 0.1), "Nan"),
    ],
)
def test_ptdbg_label_follows_its_strict_limits(tensor: tuple[float | None, ...], label: str) -> None:
    assert accuracy(a_row(tensor=(*tensor, None, None, None, None, None, None))) == label


def test_ptdbg_label_of_special_pairs() -> None:
    assert accuracy(a_row(outcome=Outcome.SHAPE)) == "Unmatched"
    assert accuracy(a_row(nonfinite_disagree=1)) == "No"
    assert statistics_result(a_row(golden=None)) == "Nan"
    assert md5_result(a_row(golden=None)) == "Nan"


@pytest.mark.parametrize("mode", ["tensor", "statistics", "md5", "structure"])
def test_ptdbg_rows_fit_their_header(mode: str) -> None:
    for stacks in (False, True):
        stream = io.StringIO()
        rows = [a_row(), a_row(golden=None), a_row(target=None)]
        assert write_ptdbg_csv(stream, Table(step=0, rank=0, mode=mode, stacks=stacks, rows=rows)) == 2
        lines = list(csv.reader(io.StringIO(stream.getvalue())))
        assert lines[0] == ptdbg_columns(mode, stacks=stacks)
        assert {len(line) for line in lines} == {len(lines[0])}


def test_ptdbg_statistics_warn_past_half_of_the_larger_side() -> None:
    side = a_row().target
    assert side is not None
    near = a_row(target=replace(side, stats=(1.0, 1.0, 1.0, 1.0)), golden=replace(side, stats=(2.0, 1.0, 1.0, 1.0)))
    far = a_row(target=replace(side, stats=(0.9, 1.0, 1.0, 1.0)), golden=replace(side, stats=(2.0, 1.0, 1.0, 1.0)))
    assert (statistics_result(near), statistics_result(far)) == ("", "Warning")


def test_stored_statistics_keep_their_kind() -> None:
    assert stored(3.0, 1, "torch.int64") == 3
    assert isinstance(stored(3.0, 1, "torch.int64"), int)
    assert stored(2.0**63, 1, "torch.int64", 2**63 - 1) == 2**63 - 1
    assert stored(1.0, 1, "torch.bool") is True
    assert isinstance(stored(3.0, 1, "torch.float32"), float)
    assert stored(0.0, 0, "torch.float32") is None


def test_scalars_differ_as_numbers_and_are_left_as_text() -> None:
    assert scalar_changes(3, 2) == ((1, 1, 1, 1), (0.5, 0.5, 0.5, 0.5))
    assert scalar_changes(1, 0)[1][0] == math.inf
    assert scalar_changes("none", "tanh")[0][0] is None
    assert scalar_changes("a", "a")[0][0] == 0
    assert percent(0.234) == "23.400000000000002%"


def test_the_line_its_author_can_change_is_found() -> None:
    stack = (
        "File /usr/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1832, in inner, \n result = f()",
        'File "/home/user/train/models.py", line 14, in forward, \n a = softmax(a)',
    )
    frame = user_frame(stack)
    assert frame is not None
    assert str(frame) == "/home/user/train/models.py:14 in forward: a = softmax(a)"
    assert parsed("no frame at all") is None
    assert user_frame(stack[:1]) is None


def test_every_column_of_ours_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "tables.md").read_text()
    for mode in ("tensor", "statistics", "md5", "structure"):
        for column in columns(mode, stacks=True):
            assert column.name in text


def test_a_structure_dump_gives_a_row_per_call(dumps: Path) -> None:
    found = compare_layouts(
        discover(dumps / "cfg_structure"), discover(dumps / "cfg_structure"), Options(), paths=("a", "b"), jobs=1
    )
    unit: Unit = found.units[0]
    rows = csv_rows(table_from_unit(unit))
    assert unit.mode == "structure"
    assert [row["NPU Name"] for row in rows] == unit.target.nodes.names
    assert {row["Result"] for row in rows} == {"pass"}


def test_an_answer_without_anything_still_has_a_document() -> None:
    side = Side(path="", framework="", task="", level="", steps=[], ranks=[])
    from dumpscope.domain.result import Counts  # noqa: PLC0415

    answer = Answer(
        mode="structure", policy="default", target=side, golden=side, counts=Counts(), first_no=None, origins=[],
        settings=[], problems=[],
    )  # fmt: skip
    assert document(answer)["first_no"] is None
