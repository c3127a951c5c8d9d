"""Lines that msprobe's guides print, of both generations, in the words of dumpscope."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from dumpscope.cli.app import status
from dumpscope.cli.commands import msprobe as msprobe_line
from dumpscope.cli.commands.msprobe import translate_line
from dumpscope.errors import UsageError

LINES = {
    "compare -tp ./npu/step0 -gp ./gpu/step0 -o ./out": "compare ./npu/step0 ./gpu/step0 -o ./out",
    "compare --target_path a --golden_path b": "compare a b -o ./output",
    "compare -tp a -gp b -o out --xlsx -fm -da -tensor_log": "compare a b -o out --format xlsx --fuzzy",
    "compare -tp a -gp b -o out -cm cells.yaml -dm data.yaml -lm layers.yaml": (
        "compare a b -o out --cell-mapping cells.yaml --data-mapping data.yaml --layer-mapping layers.yaml"
    ),
    "-f pytorch compare -tp a -gp b -o out -s -c -hl -f": "compare a b -o out --fuzzy",
    "-f mindspore compare -tp a -gp b -o out --step 1,2 --rank 0": "compare a b -o out --rank 0 --step 1,2",
    "acc_check -api_info ./dump.json": "precheck ./dump.json -o ./ --device cpu",
    "-f pytorch run_ut -api_info d.json -save_error_data -j -f -o out": (
        "precheck d.json -o out --save-error-data --device cpu"
    ),
    "multi_acc_check -api_info d.json -n 4 -config c.json": "precheck d.json -o ./ --device cpu --config c.json --jobs 4",
    "-f pytorch run_ut -api_info d.json -csv_path out/accuracy_checking_result_1.csv": (
        "precheck d.json -o out --resume --device cpu"
    ),
    "api_precision_compare -npu n.csv -gpu g.csv -o out": "precheck-compare n.csv g.csv -o out",
    "overflow_check -i ./dump/step0 -o ./output": "overflow ./dump/step0",
    "-f pytorch nan_analyze -i ./dump/step0": "overflow ./dump/step0",
}


@pytest.mark.parametrize("line", LINES)
def test_a_line_of_msprobe_is_one_of_ours(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msprobe_line, "_device", lambda _number: "cpu")
    assert shlex.join(translate_line(shlex.split(line))) == LINES[line]


def test_a_pre_check_runs_on_the_accelerator_that_is_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msprobe_line, "find_spec", lambda name: name == "torch_npu")
    assert translate_line(["run_ut", "-api_info", "d.json", "-d", "3"])[-2:] == ["--device", "npu:3"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("graph_visualize -tp a -o out", "dumpscope serve OUT"),
        ("-f pytorch graph -i compare.json -o out", "dumpscope serve OUT"),
        ("-f pytorch op_generate -i c.json -o out", "dumpscope reproduce DUMP NODE"),
        ("-f pytorch run_overflow_check -api_info dump.json", "dumpscope precheck DUMP"),
        ("merge_result -i a -o b -config c", "all ranks at once"),
        ("parse -d dump.npy", "dumpscope parse"),
        ("data2db --db x", "acc_check"),
        ("compare -tp a", "give -tp TARGET -gp GOLDEN"),
        ("compare -tp a -gp b -m torchair", "only mode auto"),
        ("compare -tp a -gp b -am api.yaml", "--rename"),
        ("compare -tp a -gp b --nonsense", "--nonsense"),
        ("acc_check", "-api_info"),
        ("multi_run_ut -api_info d.json -d 0 1", "one device"),
    ],
)
def test_what_has_no_equivalent_is_said_with_what_does_the_work(line: str, said: str) -> None:
    with pytest.raises(UsageError) as refused:
        translate_line(shlex.split(line))
    assert said in str(refused.value)


def test_the_dumps_of_a_compare_json_are_compared(
    dumps: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "compare.json"
    sides = {"npu_path": dumps / "target_fault", "bench_path": dumps / "golden", "is_print_compare_log": True}
    config.write_text(json.dumps(sides, default=str), encoding="utf-8")
    out = tmp_path / "out"
    for start in (["msprobe", "-f", "pytorch"], ["-f", "pytorch"], ["msprobe"]):
        assert status([*start, "compare", "-i", str(config), "-o", str(out)]) == 1
        printed = capfd.readouterr()
        assert printed.out.startswith("Computation at Functional.softmax.1.forward")
        assert f"dumpscope compare {dumps / 'target_fault'} {dumps / 'golden'} -o {out}" in printed.err
    assert list(out.glob("*.csv"))


@pytest.mark.parametrize("text", ["[]", "{", '{"npu_path": "a"}', '{"npu_path": 1, "bench_path": "b"}'])
def test_a_compare_json_without_both_dumps_is_refused_by_name(
    text: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "compare.json"
    config.write_text(text, encoding="utf-8")
    assert status(["msprobe", "compare", "-i", str(config)]) == 2
    assert str(config) in capfd.readouterr().err
    assert status(["msprobe", "compare", "-i", str(tmp_path / "none.json")]) == 2


def test_the_help_lists_the_lines(capfd: pytest.CaptureFixture[str]) -> None:
    for line in (["msprobe"], ["msprobe", "--help"]):
        assert status(line) == 0
        assert "api_precision_compare" in capfd.readouterr().out
