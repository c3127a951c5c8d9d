"""Every format says the same, loses nothing, and opens safely."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st
from ui.sizes import synthetic

from dumpscope.domain.context import gather
from dumpscope.domain.facts import Outcome
from dumpscope.domain.options import Options
from dumpscope.domain.records import Int64, as_stored, item_name
from dumpscope.domain.result import Answer, Side, Unit
from dumpscope.errors import Problem, UsageError
from dumpscope.export import xlsx
from dumpscope.export.document import document, json_text, wire
from dumpscope.export.files import FORMATS, check_formats, write_files
from dumpscope.export.report import report_html
from dumpscope.export.stack_frames import parse_frame, user_frame
from dumpscope.export.table import unit_table as table_module
from dumpscope.export.table.cell_text import guard, guard_all, percent
from dumpscope.export.table.cells import float_texts
from dumpscope.export.table.columns import columns
from dumpscope.export.table.csv import csv_text
from dumpscope.export.table.row_values import scalar_changes
from dumpscope.export.table.unit_table import Table
from dumpscope.export.xlsx import column_letters, write_xlsx
from dumpscope.pipeline.compare.in_process import Outcome as Result, compare_layouts
from dumpscope.pipeline.compare.unit_store import UnitStore
from dumpscope.pipeline.results.report import report
from dumpscope.ptdbg.export.table import ptdbg_columns, ptdbg_csv
from dumpscope.readers import discover
from dumpscope.texts import speaking
from dumpscope.verdict.sentences import sentence
from export.peers import PEERS, peer_tables
from export.small import NODE, small_unit, tensor, with_facts

EVIL = '=HYPERLINK("x")<img src=x onerror=alert(1)>&amp;"\'</script>'


def compared(dumps: Path, target: str, golden: str = "golden") -> Result:
    return compare_layouts(
        discover(dumps / target), discover(dumps / golden), Options(steps=(0,)), paths=(target, golden), jobs=1
    )


@pytest.fixture(scope="module")
def fault(dumps: Path) -> Result:
    return compared(dumps, "target_fault")


def csv_of(unit: Unit) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(csv_text(Table(unit))))))


def test_infinities_nan_and_absence_are_four_different_cells(tmp_path: Path) -> None:
    unit = small_unit(tmp_path, {NODE: [tensor(math.inf, -math.inf, math.nan, None)]})
    unit = with_facts(unit, diff=[[math.inf, 0.0, math.nan, None]], rel=[[math.inf, 0.0, math.nan, 0.125]])
    (row,) = csv_of(unit)
    assert [row[f"NPU {name}"] for name in ("max", "min", "mean", "l2norm")] == ["inf", "-inf", "nan", "None"]
    assert [row[name] for name in ("Max diff", "Min diff", "Mean diff", "L2norm diff")] == ["inf", "0.0", "nan", "N/A"]
    assert [row[f"{name}RelativeErr"] for name in ("Max", "Min", "Mean", "Norm")] == ["inf", "0", "nan", "12.5%"]


def test_a_side_without_the_item_says_so_in_every_cell(tmp_path: Path) -> None:
    one, two = small_unit(tmp_path, {NODE: [tensor(1), tensor(2)]}, {NODE: [tensor(1)]}), ("Bench Name", "Bench max")
    row = csv_of(one)[1]
    assert [row[name] for name in (*two, "Bench Dtype", "Bench Tensor Shape", "Bench Requires_grad")] == ["N/A"] * 5
    assert row["Bench mean"] == "N/A"
    assert csv_of(one)[0]["Bench mean"] == "None"


def test_a_stack_stands_in_the_first_row_of_its_call_only(fault: Result) -> None:
    seen: set[str] = set()
    for row in csv_of(fault.units[0]):
        if row["Node"] in seen:
            assert row["NPU_Stack_Info"] == "N/A"
        elif row["Node"].endswith("forward"):
            assert row["NPU_Stack_Info"].startswith("['File ")
        seen.add(row["Node"])
    assert len(seen) > 100


def test_csv_names_the_fault_and_the_verdict(fault: Result) -> None:
    listed = csv_of(fault.units[0])
    assert len(listed) == 503
    row = {row["NPU Name"]: row for row in listed}["Functional.softmax.1.forward.output.0"]
    assert (row["Accuracy Reached or Not"], row["Node Class"], row["Match"]) == ("No", "origin", "exact")
    assert float(row["MaxAbsErr"]) == pytest.approx(0.0071052, rel=1e-4)


def test_rows_are_the_same_however_many_are_text_at_one_time(fault: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    def everything() -> list[str]:
        table = Table(fault.units[0])
        return ["".join(csv_text(table)), "".join(json_text(fault.answer, [table])), "".join(ptdbg_csv(table))]

    whole = everything()
    monkeypatch.setattr(table_module, "BLOCK", 7)
    assert everything() == whole


def test_names_and_sentences_of_columns_are_those_of_single_rows(dumps: Path) -> None:
    for name in PEERS:
        for _, unit in peer_tables(dumps, name):
            table, context = Table(unit), gather(unit.target, unit.golden, unit.pairs, unit.items)
            rows = np.arange(len(table))
            for side, dump, items in (
                (table.target, unit.target, unit.items.target), (table.golden, unit.golden, unit.items.golden),
            ):  # fmt: skip
                assert side.names(rows) == [None if item < 0 else item_name(dump, item) for item in items.tolist()]
            said = [sentence(context, unit.facts, unit.item_opinions, row) for row in range(len(unit.items))]
            assert table.messages(rows) == said


@pytest.mark.parametrize("policy", ["ptdbg", "msprobe"])
def test_sentences_of_other_policies_are_those_of_single_rows(dumps: Path, policy: str) -> None:
    for names in (("stat_fault", "stat_golden"), ("target_nan", "golden"), ("target_bf16", "golden")):
        target, golden = (discover(dumps / name) for name in names)
        (unit, *_) = compare_layouts(target, golden, Options(steps=(0,), policy=policy), paths=names, jobs=1).units
        context = gather(unit.target, unit.golden, unit.pairs, unit.items)
        said = [sentence(context, unit.facts, unit.item_opinions, row) for row in range(len(unit.items))]
        assert Table(unit).messages(np.arange(len(unit.items))) == said


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False)))
def test_floats_are_written_as_python_writes_them(values: list[float]) -> None:
    assert float_texts(np.array(values, np.float64)) == list(map(repr, values))


@given(st.lists(st.tuples(st.floats(1, 10), st.integers(-20, 20))))
def test_floats_near_the_ends_of_plain_notation_are_too(parts: list[tuple[float, int]]) -> None:
    values = [digits * 10.0**power for digits, power in parts]
    assert float_texts(np.array(values, np.float64)) == list(map(repr, values))


@pytest.mark.parametrize("text", ["=1+1", "+x", "-x", "@SUM(A1)", "\tx"])
def test_what_a_spreadsheet_would_run_is_guarded(text: str, tmp_path: Path) -> None:
    assert guard(text) == f"'{text}"
    unit = small_unit(tmp_path, {text: [{"type": "str", "value": text}]})
    (row,) = csv_of(unit)
    assert not any(value.startswith(("=", "+", "@", "\t")) for value in row.values())
    assert row["NPU max"] == row["Node"] == f"'{text}"
    assert row["NPU Name"] == f"'{text}.input.0"
    write_xlsx(str(tmp_path / "book.xlsx"), [Table(unit)])
    heads, cells = sheet_cells(tmp_path / "book.xlsx", 1)
    assert [cells[heads.index(name)] for name in ("NPU Name", "NPU max", "Node")] == [
        row[name] for name in ("NPU Name", "NPU max", "Node")
    ]


@given(st.lists(st.text(alphabet="=+-@\t\rab", max_size=3)))
def test_many_texts_are_guarded_as_single_ones(texts: list[str]) -> None:
    assert guard_all(texts) == list(map(guard, texts))


def test_a_carriage_return_in_a_name_ends_no_line(tmp_path: Path) -> None:
    (row,) = csv_of(small_unit(tmp_path, {"one\rtwo\nthree": [tensor(1)]}))
    assert row["Node"] == "one\\rtwo\nthree"


def test_a_value_no_float_holds_and_a_name_no_text_holds_are_written_in_every_format(tmp_path: Path) -> None:
    digits = "9" * 400
    calls = {"Torch.\ud800x.0.forward": [tensor(1), {"type": "int", "value": int(digits)}]}
    unit = small_unit(tmp_path, calls, {name: [tensor(2), {"type": "float", "value": 1.5}] for name in calls})
    target, golden = (discover(tmp_path / word) for word in ("target", "golden"))
    answer = compare_layouts(target, golden, Options(), paths=("a", "b"), jobs=1).answer
    files = write_files(
        tmp_path / "out", FORMATS, answer, [lambda: Table(unit)], lambda: report(answer, UnitStore([unit])), pairs=True
    )
    table, book, document_file, *_ = files
    assert len(files) == len(FORMATS) + 2  # ptdbg are three files
    rows = list(csv.DictReader(table.open(newline="")))
    assert [rows[1][name] for name in ("NPU Name", "NPU max", "Max diff")] == [
        "Torch.?x.0.forward.input.1", digits, "inf",
    ]  # fmt: skip
    heads, _, cells = sheet_cells(book, 1)
    assert cells[heads.index("NPU max")] == digits
    assert json.loads(document_file.read_text())["pairs"][1]["metrics"]["max_diff"] == "inf"


def test_quotes_and_commas_in_names_end_no_cell(tmp_path: Path) -> None:
    names = ['a"b', "a,b", 'a","b', "plain"]
    rows = csv_of(small_unit(tmp_path, {name: [tensor(1)] for name in names}))
    assert [row["Node"] for row in rows] == names


def test_numbers_are_never_guarded(tmp_path: Path) -> None:
    (row,) = csv_of(small_unit(tmp_path, {NODE: [tensor(1.0)]}, {NODE: [tensor(2.5)]}))
    assert row["Max diff"] == "-1.5"


def test_integers_past_what_a_float_holds_stay_exact_in_every_format(tmp_path: Path) -> None:
    wide, huge = 2**63 - 1, 1e300
    unit = small_unit(tmp_path, {NODE: [tensor(wide, -wide, dtype="torch.int64"), tensor(huge, 7)]})
    first, second = csv_of(unit)
    assert [first["NPU max"], first["NPU min"], second["NPU max"]] == [str(wide), str(-wide), "1e+300"]
    assert second["NPU min"] == "7.0"
    path = tmp_path / "wide.xlsx"
    write_xlsx(str(path), [Table(unit)])
    heads, *rows = sheet_cells(path, 1)
    assert rows[0][heads.index("NPU max")] == str(wide)
    kinds = sheet_kinds(path, 1)
    assert kinds[1][heads.index("NPU max")] == "inlineStr"  # a sheet would round it
    assert kinds[2][heads.index("NPU max")] == "n"


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


def sheet_kinds(path: Path, sheet: int) -> list[list[str]]:
    space = {"m": "http://schemas.openxmlformats.org/spreadsheetml/2006/main"}
    with zipfile.ZipFile(path) as book:
        root = ElementTree.fromstring(book.read(f"xl/worksheets/sheet{sheet}.xml"))
    return [[cell.get("t", "n") for cell in row.findall("m:c", space)] for row in root.iterfind(".//m:row", space)]


def test_xlsx_holds_the_same_rows_as_csv(fault: Result, tmp_path: Path) -> None:
    path = tmp_path / "result.xlsx"
    write_xlsx(str(path), [Table(fault.units[0])])
    cells = sheet_cells(path, 1)
    wanted = csv_of(fault.units[0])
    assert cells[0] == list(wanted[0])
    words = {"0": "False", "1": "True"}
    for kinds, found, row in zip(sheet_kinds(path, 1)[1:], cells[1:], wanted, strict=True):
        shown = [words[cell] if kind == "b" else cell for kind, cell in zip(kinds, found, strict=True)]
        assert shown == [value if len(value) <= 32_767 else _cut(value) for value in row.values()]


def test_every_cell_of_a_sheet_names_its_place(tmp_path: Path) -> None:
    assert [column_letters(place) for place in (0, 25, 26, 51, 52, 701, 702)] == [
        "A",
        "Z",
        "AA",
        "AZ",
        "BA",
        "ZZ",
        "AAA",
    ]
    path = tmp_path / "places.xlsx"
    write_xlsx(str(path), [Table(small_unit(tmp_path, {NODE: [tensor(1), tensor(2)]}))])
    with zipfile.ZipFile(path) as book:
        text = book.read("xl/worksheets/sheet1.xml").decode()
        assert book.testzip() is None
    rows = re.findall(r'<row r="(\d+)">(.*?)</row>', text)
    assert [row for row, _ in rows] == ["1", "2", "3"]
    for row, cells in rows:
        places = re.findall(r'<c r="([A-Z]+\d+)"', cells)
        assert places == [f"{column_letters(place)}{row}" for place in range(len(places))]


def test_xlsx_goes_on_in_a_further_sheet_and_writes_no_formula(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xlsx, "SHEET_ROWS", 3)
    unit = small_unit(tmp_path, {f"=row{number}": [tensor(math.inf)] for number in range(7)})
    path = tmp_path / "long.xlsx"
    write_xlsx(str(path), [Table(unit)])
    with zipfile.ZipFile(path) as book:
        sheets = [name for name in book.namelist() if name.startswith("xl/worksheets/sheet")]
        assert not any(b"<f>" in book.read(name) for name in sheets)
        names = re.findall(r'<sheet name="([^"]*)"', book.read("xl/workbook.xml").decode())
    assert names == ["step0 rank0", "step0 rank0 (2)", "step0 rank0 (3)"]
    parts = [sheet_cells(path, number) for number in range(1, len(sheets) + 1)]
    assert [len(part) - 1 for part in parts] == [3, 3, 1]
    assert len({tuple(part[0]) for part in parts}) == 1
    assert [row[0] for part in parts for row in part[1:]] == [f"'=row{number}.input.0" for number in range(7)]
    assert parts[0][1][parts[0][0].index("NPU max")] == "inf"


def test_a_sheet_ends_before_its_text_is_too_long_for_an_archive(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(xlsx, "SHEET_BYTES", 1)
    monkeypatch.setattr(table_module, "BLOCK", 2)
    unit = small_unit(tmp_path, {f"Torch.add.{number}.forward": [tensor(1)] for number in range(5)})
    path = tmp_path / "bulky.xlsx"
    write_xlsx(str(path), [Table(unit)])
    assert [len(sheet_cells(path, number)) - 1 for number in (1, 2, 3)] == [2, 2, 1]


def _cut(value: str) -> str:
    mark = f" ... (cut: {len(value)} characters)"
    return value[: 32_767 - len(mark)] + mark


@pytest.mark.parametrize("letter", ["x", "\U0001f600"])
def test_xlsx_cuts_texts_a_cell_cannot_hold(letter: str, tmp_path: Path) -> None:
    path = tmp_path / "wide.xlsx"
    unit = small_unit(tmp_path, {NODE: [{"type": "str", "value": letter * 40_000}]})
    write_xlsx(str(path), [Table(unit)])
    longest = max(sheet_cells(path, 1)[1], key=len)
    assert 32_765 < len(longest.encode("utf-16-le")) // 2 <= 32_767
    mark = " ... (cut: 40000 characters)"
    assert longest.endswith(mark)
    assert set(longest.removesuffix(mark)) == {letter}


def test_xlsx_keeps_what_xml_would_drop_or_refuse(tmp_path: Path) -> None:
    names = [" blank ", "a<b>&c", "bell\x07", "_x0041_", "line\nend\n"]
    unit = small_unit(tmp_path, {name: [tensor(1)] for name in names})
    path = tmp_path / "odd.xlsx"
    write_xlsx(str(path), [Table(unit)])
    heads, *rows = sheet_cells(path, 1)
    found = [row[heads.index("Node")] for row in rows]
    assert found == [" blank ", "a<b>&c", "bell_x0007_", "_x005F_x0041_", "line\nend\n"]
    with zipfile.ZipFile(path) as book:
        assert b'<t xml:space="preserve"> blank </t>' in book.read("xl/worksheets/sheet1.xml")


def test_only_verdicts_are_coloured(tmp_path: Path) -> None:
    unit = small_unit(tmp_path, {NODE: [{"type": "str", "value": "No"}]}, {NODE: [{"type": "str", "value": "Yes"}]})
    path = tmp_path / "marks.xlsx"
    write_xlsx(str(path), [Table(unit)])
    with zipfile.ZipFile(path) as book:
        marked = re.findall(r'<c r="([A-Z]+)2" s="(\d)"', book.read("xl/worksheets/sheet1.xml").decode())
    heads, row = sheet_cells(path, 1)
    assert row[heads.index("Accuracy Reached or Not")] == "No"
    assert marked == [(column_letters(heads.index("Accuracy Reached or Not")), "2")]


def test_a_workbook_without_tables_opens(tmp_path: Path) -> None:
    write_xlsx(str(tmp_path / "none.xlsx"), [])
    assert sheet_cells(tmp_path / "none.xlsx", 1) == []


def test_json_document_is_strict_and_follows_the_contract(fault: Result) -> None:
    text = "".join(json_text(fault.answer, [Table(fault.units[0])]))
    found = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    assert list(found)[:9] == [
        "schema", "mode", "policy", "target", "golden", "counts", "first_no", "origins", "settings",
    ]  # fmt: skip
    assert found["schema"] == 1
    assert set(found["counts"]) == {
        "nodes", "items", "yes", "no", "warning", "not_comparable", "unmatched_target", "unmatched_golden", "unreadable",
    }  # fmt: skip
    assert set(found["origins"][0]) == {
        "step", "rank", "node", "kind", "confidence", "evidence", "advice", "explains", "path", "ranks", "spread", "stack",
        "evidence_said", "advice_said", "frames", "hidden", "module", "called_at", "steps",
    }  # fmt: skip
    assert set(found["first_no"]) == {
        "step",
        "called_at",
        "rank",
        "node",
        "item",
        "metrics",
        "reason",
        "reason_said",
        "stack",
        "frames",
    }
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


def test_report_stays_below_5_mb_whatever_went_wrong_and_says_what_is_left_out(fault: Result) -> None:
    whole = report(fault.answer, fault.units)
    long = "module.&<layer>." * 200
    stack = [f"{long}, line {line}" for line in range(100)]
    (origin, *_others) = fault.answer.origins
    answer = replace(
        fault.answer,
        origins=[replace(origin, node=f"{number}.forward", stack=stack) for number in range(3000)],
        problems=[Problem(loc=long, kind="missing", message=long)] * 3000,
    )
    rows = [replace(row, target=long, golden=long, message=long) for row in whole.top[:1]] * 100_000
    names = [f"{long}.{number}" for number in range(100_000)]
    page = report_html(replace(whole, answer=answer, top=rows, unmatched_target=names, unmatched_golden=names))
    assert len(page.encode()) < 5_000_000
    assert "and 2950 more origins" in page
    assert "and 99500 more" in page
    assert ".499\n" in page  # the end of a long name, which tells it from the others
    assert "<layer>" not in page


@pytest.mark.parametrize("nodes", [300, 6000])
def test_report_grows_no_further_than_its_lists(tmp_path: Path, pytestconfig: pytest.Config, nodes: int) -> None:
    """Bench's own dumps; 100 000 calls a side give less than 400 kB."""
    made = synthetic(pytestconfig.rootpath)
    made.make_dump(tmp_path / "target", nodes, 1, nodes // 3)
    made.make_dump(tmp_path / "golden", nodes, 1)
    found = compared(tmp_path, "target")
    page = report_html(report(found.answer, found.units))
    assert found.answer.counts.nodes >= nodes
    assert len(page.encode()) < 600_000
    assert all(part in page for part in ('class="banner', "call stack", "<svg", "Pairs with verdict No"))


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
    row = replace(whole.top[0], target=EVIL, golden=EVIL, message=EVIL)
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


def test_the_report_is_made_in_the_language_asked_for(fault: Result) -> None:
    with speaking("zh"):
        page = report_html(report(fault.answer, fault.units))
    assert '<html lang="zh">' in page
    assert "异常源头（计算）" in page
    assert "判定为 No 的数据项对" in page
    assert '<html lang="en">' in report_html(report(fault.answer, fault.units))


def test_files_are_named_by_step_and_rank_only_where_there_are_several(fault: Result, tmp_path: Path) -> None:
    unit = fault.units[0]
    makers = [lambda: Table(unit), lambda: Table(replace(unit, step=1, rank=3))]
    alone = write_files(
        tmp_path / "one", ["csv"], fault.answer, makers[:1], lambda: report(fault.answer, UnitStore([unit]))
    )
    assert [path.name for path in alone] == ["compare_result.csv"]
    both = write_files(
        tmp_path / "two",
        ["csv", "json", "html", "ptdbg-csv"],
        fault.answer,
        makers,
        lambda: report(fault.answer, UnitStore([unit])),
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

    class Broken(Table):
        def blocks(self) -> Iterator[Int64]:
            yield np.arange(3)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_files(
            tmp_path, ["csv"], fault.answer, [lambda: Broken(fault.units[0])], lambda: report(fault.answer, fault.units)
        )
    assert old.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["compare_result.csv"]


def test_an_unknown_format_is_named(fault: Result) -> None:
    with pytest.raises(UsageError, match="docx"):
        check_formats(["csv", "docx"])


@pytest.mark.parametrize(
    ("tensor_facts", "label"),
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
def test_ptdbg_label_follows_its_strict_limits(
    tensor_facts: tuple[float | None, ...], label: str, tmp_path: Path
) -> None:
    unit = small_unit(tmp_path, {NODE: [tensor(1.0)]})
    unit = with_facts(unit, "tensor", tensor=[[*tensor_facts, None, None, None, None, None, None]])
    assert ptdbg_of(unit)[0]["Accuracy Reached or Not"] == label


def ptdbg_of(unit: Unit) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO("".join(ptdbg_csv(Table(unit))))))


def test_ptdbg_label_of_special_pairs(tmp_path: Path) -> None:
    lone = small_unit(tmp_path, {NODE: [tensor(1), tensor(1), tensor(1)]}, {NODE: [tensor(1), tensor(1)]})
    unit = with_facts(
        lone, "tensor", nonfinite_disagree=[0, 1, -1], outcome=[Outcome.SHAPE, Outcome.COMPARED, Outcome.TARGET_ONLY]
    )
    assert [row["Accuracy Reached or Not"] for row in ptdbg_of(unit)] == ["Unmatched", "No", "Nan"]
    assert [row["Cosine"] for row in ptdbg_of(unit)] == ["shape unmatched", "N/A", "Nan"]
    assert [row["Result"] for row in ptdbg_of(with_facts(lone, "statistics"))] == ["", "", "Nan"]
    assert [row["Result"] for row in ptdbg_of(with_facts(lone, "md5"))] == ["Pass", "Pass", "Nan"]
    assert [row["Result"] for row in ptdbg_of(with_facts(lone, "structure"))] == ["Pass", "Pass", "Nan"]


@pytest.mark.parametrize("mode", ["tensor", "statistics", "md5", "structure"])
def test_ptdbg_rows_fit_their_header_and_leave_out_what_only_the_golden_has(mode: str, tmp_path: Path) -> None:
    sides = {NODE: [tensor(1)], "Torch.a.0.forward": [tensor(1)]}, {NODE: [tensor(1)], "Torch.b.0.forward": [tensor(1)]}
    unit = with_facts(small_unit(tmp_path, *sides), mode)
    assert len(unit.items) == 3
    lines = list(csv.reader(io.StringIO("".join(ptdbg_csv(Table(unit))))))
    assert lines[0] == [column.name for column in ptdbg_columns(mode, stacks=False)]
    assert {len(line) for line in lines} == {len(lines[0])}
    assert [line[0] for line in lines[1:]] == [f"{name}.input.0" for name in sides[0]]


def test_ptdbg_statistics_warn_past_half_of_the_larger_side(tmp_path: Path) -> None:
    near, far, wide = tensor(1.0, 1.0), tensor(0.9, 1.0), tensor(2**63, 1, dtype="torch.int64")
    golden = [tensor(2.0, 1.0), tensor(2.0, 1.0), tensor(1, 1, dtype="torch.int64")]
    rows = ptdbg_of(small_unit(tmp_path, {NODE: [near, far, wide]}, {NODE: golden}))
    assert [row["Result"] for row in rows] == ["", "Warning", "Warning"]


def test_stored_statistics_keep_their_kind() -> None:
    assert as_stored(3.0, 1, "torch.int64") == 3
    assert isinstance(as_stored(3.0, 1, "torch.int64"), int)
    assert as_stored(2.0**63, 1, "torch.int64", 2**63 - 1) == 2**63 - 1
    assert as_stored(1.0, 1, "torch.bool") is True
    assert isinstance(as_stored(3.0, 1, "torch.float32"), float)
    assert as_stored(0.0, 0, "torch.float32") is None


def test_scalars_differ_as_numbers_and_are_left_as_text() -> None:
    assert scalar_changes(3, 2) == (1, 0.5)
    assert scalar_changes(1, 0)[1] == math.inf
    assert scalar_changes("none", "tanh") == (None, None)
    assert scalar_changes("a", "a") == (0, 0)
    assert scalar_changes(10**400, 1.5) == (math.inf, math.inf)
    assert percent(0.234) == "23.400000000000002%"


def test_the_line_its_author_can_change_is_found() -> None:
    stack = (
        "File /usr/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1832, in inner, \n result = f()",
        'File "/home/user/train/models.py", line 14, in forward, \n a = softmax(a)',
    )
    frame = user_frame(stack)
    assert frame is not None
    assert str(frame) == "/home/user/train/models.py:14 in forward: a = softmax(a)"
    assert parse_frame("no frame at all") is None
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
    rows = csv_of(unit)
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
