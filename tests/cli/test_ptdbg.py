"""What scripts written for ptdbg call, and what the command line makes of its dumps."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from readers.ptdbg_dumps import convert, convert_dump

from cli.test_command_line import dumpscope, strict
from dumpscope.ptdbg.calls import Code, CompareException, compare, compare_distributed, parse

A = ["Functional_relu_0_forward_input.0", 1, [], "torch.float32", [2], [1.0, -1.0, 0.5]]
STACK = [
    "Functional_relu_0_forward_stack_info",
    [["/net.py", "3", "forward", "x = F.relu(x)"], ["/run.py", "9", "<module>", "net(x)"]],
]


@pytest.fixture(scope="module")
def sides(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The .pkl of target_fault in the form of 2.3 and of golden in that of 6.0."""
    folder = tmp_path_factory.mktemp("sides")
    return {
        name: convert(
            next(iter(sorted((dumps / name / "step0").iterdir()))), folder / name / "rank0", form=form, stacks=stacks
        )
        for name, form, stacks in (("target_fault", "2.3", "before"), ("golden", "6.0", "after"))
    }


def param(sides: dict[str, Path], *, tensors: bool = True, **more: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"npu_pkl_path": str(sides["target_fault"]), "bench_pkl_path": str(sides["golden"])}
    if tensors:
        given |= {
            "npu_dump_data_dir": str(sides["target_fault"].with_suffix("")),
            "bench_dump_data_dir": str(sides["golden"].with_suffix("")),
        }
    return {**given, **more}


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def failed(code: Code, call: Any, *arguments: Any, **named: Any) -> str:
    with pytest.raises(CompareException) as error:
        call(*arguments, **named)
    assert error.value.code == code
    assert str(error.value)
    return str(error.value)


# -- compare ---------------------------------------------------------------------------------------------------------


def test_a_comparison_of_two_generations_names_the_cause(sides: dict[str, Path], tmp_path: Path) -> None:
    done = compare(param(sides), str(tmp_path), suffix="_run1")
    assert [path.suffix for path in done.files] == [".csv", ".xlsx", ".txt"]
    rows = table(done.files[0])
    assert list(rows[0]) == [
        "NPU Name", "Bench Name", "NPU Tensor Dtype", "Bench Tensor Dtype", "NPU Tensor Shape", "Bench Tensor Shape",
        "Cosine", "MaxAbsErr", "NPU max", "NPU min", "NPU mean", "Bench max", "Bench min", "Bench mean",
        "Accuracy Reached or Not", "Err_message", "NPU_Stack_Info",
    ], "those of 2.3, which wrote the first side"  # fmt: skip
    (row,) = [row for row in rows if row["NPU Name"] == "Functional_softmax_1_forward_output"]
    assert row["Bench Name"] == "Functional.softmax.1.forward.output"
    assert "models.py" in rows[0]["NPU_Stack_Info"]
    assert "Suspect Nodes: Functional_softmax_1_forward_output\n" in done.files[2].read_text()
    assert all("_run1_20" in path.name for path in done.files)
    assert [origin.node for origin in done.answer.origins] == ["Functional_softmax_1_forward"]


def test_the_advice_is_printed_as_well_as_saved(
    sides: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    done = compare(param(sides), tmp_path)
    assert capsys.readouterr().out == done.files[2].read_text()
    compare(param(sides), tmp_path, auto_analyze=False)
    assert capsys.readouterr().out == ""


def test_what_is_damaged_or_lacks_tensors_is_said_where_a_script_sees_it(
    sides: dict[str, Path], dumps: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    torn = tmp_path / "rank0" / "dump.pkl"
    shutil.copytree(sides["golden"].parent, torn.parent)
    torn.write_text(torn.read_text()[:-200])
    compare(param(sides, tensors=False, npu_pkl_path=str(torn)), tmp_path)
    assert any("rank0" in told and "ends in the middle of a line" in told for told in caplog.messages)
    caplog.clear()
    npu, bench = (ranked(dumps, tmp_path / name, "dist2_tensor_fault", [0, 1], summary="tensor") for name in "ab")
    shutil.rmtree(bench / "rank1" / "dump")
    compare_distributed(npu, bench, tmp_path)
    assert [str(bench / "rank1") in told for told in caplog.messages if "no tensor files" in told] == [True]


def written(folder: Path, *lines: list[Any], **arrays: float) -> Path:
    """A .pkl of lines. arrays: of one element, by the place among the inputs"""
    path = folder / "dump.pkl"
    for name, value in arrays.items():
        path.with_suffix("").mkdir(parents=True, exist_ok=True)
        np.save(path.with_suffix("") / f"Torch.add.0.forward.{name}.0.npy", np.array([value], np.float32))
    folder.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def advised(target: Path, golden: Path, output: Path, capsys: pytest.CaptureFixture[str], *, tensors: bool) -> str:
    """The advice that `compare` prints."""
    given = {"npu_pkl_path": str(target), "bench_pkl_path": str(golden)}
    if tensors:
        given |= {f"{side}_dump_data_dir": given[f"{side}_pkl_path"][:-4] for side in ("npu", "bench")}
    compare(given, output)
    return capsys.readouterr().out.partition("Expert Advice: ")[2].strip()


def test_values_that_differ_without_a_label_are_not_called_fine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 against 2 is not more than half apart, so ptdbg has no warning for it."""
    name = "Torch.add.0.forward.input.0"
    sides = [
        written(tmp_path / word, [name, 0, [], "<class 'int'>", "[]", [value] * 4])
        for word, value in (("a", 1), ("b", 2))
    ]
    said = advised(*sides, tmp_path, capsys, tensors=False)
    assert said.startswith(f"1 values differ and no label says so, the first is {name}.")


def test_the_message_of_a_single_element_has_its_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sides = [
        written(
            tmp_path / word,
            ["Torch.add.0.forward.input.0", 0, [], "torch.float32", [1], [value] * 4],
            input=value,
        )
        for word, value in (("a", 7.0), ("b", 1.0))
    ]
    assert "This input differs" in advised(*sides, tmp_path, capsys, tensors=True)
    (path,) = tmp_path.glob("*.csv")
    (row,) = table(path)
    assert row["Accuracy Reached or Not"] == "Nan"
    assert row["Err_message"].startswith("1 of 1 elements differ, relative L2 6, largest error 6")


def test_files_without_any_number_are_not_called_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Overflow files of 2.3 have no statistics, so without their tensors there is nothing to compare."""
    line = ["Torch_add_0_forward_input.0", 101, [], "torch.float32", [1]]
    sides = [written(tmp_path / word, line) for word in "ab"]
    assert "nothing was compared" in advised(*sides, tmp_path, capsys, tensors=False)


def test_a_number_that_differs_is_different_in_the_table_of_checksums(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Numbers of Python's have no checksum: that neither side has one is not that they are equal."""

    def side(word: str, value: float) -> Path:
        return written(
            tmp_path / word,
            ["Torch.add.0.forward.input.0", 0, "0a1b2c3d", "torch.float32", [2], []],
            ["Torch.add.0.forward.input.1", 0, [], "<class 'float'>", "[]", [value] * 4],
            ["Torch.add.0.forward.input.2", 0, [], "<class 'float'>", "[]", [0.5] * 4],
        )

    said = advised(side("a", 1.5), side("b", 2.5), tmp_path, capsys, tensors=False)
    (path,) = tmp_path.glob("*.csv")
    assert [row["Result"] for row in table(path)] == ["Pass", "Different", "Pass"]
    assert said.startswith("1 values are beyond the limits")


def test_checksums_beside_statistics_are_not_called_fine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ("Torch.add.0.forward.input.0", "Torch.add.0.forward.input.1")
    number = [names[1], 0, [], "<class 'float'>", "[]", [0.5] * 4]
    target = written(tmp_path / "a", [names[0], 0, "0a1b2c3d", "torch.float32", [2], []], number)
    golden = written(tmp_path / "b", [names[0], 0, [], "torch.float32", [2], [1.0, 0.0, 0.5, 1.0]], number)
    said = advised(target, golden, tmp_path, capsys, tensors=False)
    (path,) = tmp_path.glob("*.csv")
    assert [row["Result"] for row in table(path)] == ["Nan", ""]
    assert "1 values hold no number that both sides have and were not compared." in said


@pytest.mark.parametrize(
    ("call", "wrong", "hint"),
    [
        ("Functional.layer_norm.0", "output", "add in another order each time"),
        ("Tensor.matmul.3", "output", "add in another order each time"),
        ("Functional.batch_norm.0", "input.1", "running statistics took part"),
        ("Functional.softmax.0", "output", ""),
    ],
)
@pytest.mark.parametrize("mark", [".", "_"])
def test_the_advice_knows_operators_that_vary_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], call: str, wrong: str, hint: str, mark: str
) -> None:
    def side(word: str, value: float) -> Path:
        numbers = {place: value if place == wrong else 1.0 for place in ("input.0", "input.1", "output")}
        return written(
            tmp_path / word,
            *(
                [f"{call.replace('.', mark)}{mark}forward{mark}{place}", 0, [], "torch.float32", [2], [number] * 4]
                for place, number in numbers.items()
            ),
        )

    said = advised(side("a", 9.0), side("b", 1.0), tmp_path, capsys, tensors=False)
    assert ("seed_all(mode=True)" in said) == bool(hint)
    assert hint in said


def test_the_suffix_may_be_the_fifth_argument_as_in_the_first_generation(
    sides: dict[str, Path], tmp_path: Path
) -> None:
    done = compare(param(sides, tensors=False), str(tmp_path), True, True, "_night")
    assert all("_night_20" in path.name for path in done.files)


def test_without_folders_the_statistics_are_compared(sides: dict[str, Path], tmp_path: Path) -> None:
    done = compare(param(sides, tensors=False), tmp_path, auto_analyze=False, fuzzy_match=True)
    assert [path.suffix for path in done.files] == [".csv", ".xlsx"]
    assert done.answer.mode == "statistics"
    assert "Max diff" in table(done.files[0])[0]


def test_a_folder_of_any_name_goes_with_the_file_that_it_is_named_for(sides: dict[str, Path], tmp_path: Path) -> None:
    other = tmp_path / "moved elsewhere"
    shutil.copytree(sides["golden"].with_suffix(""), other)
    done = compare(param(sides, bench_dump_data_dir=str(other)), tmp_path)
    assert done.answer.mode == "tensor"
    assert done.answer.counts.unreadable == 0


def test_checksums_are_compared_without_folders(dumps: Path, tmp_path: Path) -> None:
    """ptdbg 6.0 fails here with an IndexError."""
    source = next(iter(sorted((dumps / "golden" / "step0").iterdir())))
    one, other = (convert(source, tmp_path / name, form="6.0", summary="md5") for name in ("a", "b"))
    other.write_text(other.read_text().replace('[], "torch.float32"', '[], "torch.float32"', 1))
    done = compare({"npu_pkl_path": one, "bench_pkl_path": other}, tmp_path)
    rows = table(done.files[0])
    assert list(rows[0])[6:9] == ["NPU MD5", "BENCH MD5", "Result"]
    assert {row["Result"] for row in rows if row["NPU Tensor Dtype"].startswith("torch")} == {"Pass"}


def test_faq_error_9_stacks_are_seen_in_the_files_and_are_a_matter_of_display(
    sides: dict[str, Path], dumps: Path, tmp_path: Path
) -> None:
    """The mode that was used and the name of the file do not matter, and one side alone may have stacks."""
    bare = convert(sides_source(dumps), tmp_path / "list_renamed", stem="list_dump", stacks="none")
    for stack_mode in (None, True, False):
        both = compare(param(sides, tensors=False), tmp_path, stack_mode=stack_mode)
        assert ("NPU_Stack_Info" in table(both.files[0])[0]) == (stack_mode is not False)
        one = compare(param(sides, tensors=False, npu_pkl_path=str(bare)), tmp_path, stack_mode=stack_mode)
        assert "NPU_Stack_Info" not in table(one.files[0])[0]


def sides_source(dumps: Path) -> Path:
    return next(iter(sorted((dumps / "golden" / "step0").iterdir())))


def test_two_comparisons_in_one_second_write_two_tables(sides: dict[str, Path], tmp_path: Path) -> None:
    files = [path for _ in range(3) for path in compare(param(sides, tensors=False), tmp_path).files]
    assert len({*files}) == 9
    assert all(path.exists() for path in files)


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        ({"npu_pkl_path": None}, Code.INVALID_PATH, "npu_pkl_path"),
        ({"bench_pkl_path": "/nowhere/dump.pkl"}, Code.INVALID_PATH, "/nowhere/dump.pkl"),
        ({"npu_dump_data_dir": "/nowhere"}, Code.INVALID_PATH, "npu_dump_data_dir"),
        ({"npu_dump_data_dri": "/nowhere"}, Code.INVALID_PARAM, "npu_dump_data_dri"),
        ({"is_print_compare_log": "yes"}, Code.INVALID_PARAM, "is_print_compare_log"),
    ],
)
def test_a_wrong_input_is_an_error_with_its_code(
    sides: dict[str, Path], tmp_path: Path, change: dict[str, Any], code: Code, said: str
) -> None:
    """A misspelt key used to mean, silently, that tensors are not compared."""
    assert said in failed(code, compare, {**param(sides), **change}, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_wrong_arguments_are_errors_with_their_codes(sides: dict[str, Path], tmp_path: Path) -> None:
    failed(Code.INVALID_PARAM, compare, [1], tmp_path)
    failed(Code.INVALID_PATH, compare, param(sides), tmp_path / "missing")
    failed(Code.INVALID_PARAM, compare, param(sides), tmp_path, suffix="../x")
    for name in ("stack_mode", "auto_analyze", "fuzzy_match"):
        assert name in failed(Code.INVALID_PARAM, compare, param(sides), tmp_path, **{name: 1})
    empty = tmp_path / "empty.pkl"
    empty.touch()
    failed(Code.INVALID_DUMP_FILE, compare, {**param(sides), "npu_pkl_path": str(empty)}, tmp_path)
    empty.write_text("no records\n")
    failed(Code.INVALID_DUMP_FILE, compare, {**param(sides), "npu_pkl_path": str(empty)}, tmp_path)


def test_faq_error_11_any_legal_path_will_do(sides: dict[str, Path], tmp_path: Path) -> None:
    folder = tmp_path / "a b;c $d {x} é中"
    shutil.copytree(sides["golden"].parent, folder)
    path = str(folder / "dump.pkl")
    data = str(folder / "dump")
    done = compare(param(sides, bench_pkl_path=path, bench_dump_data_dir=data), folder, suffix="_{x}")
    assert all(file.exists() for file in done.files)
    assert done.answer.counts.unreadable == 0


def test_a_script_need_not_guard_its_main_module(sides: dict[str, Path], tmp_path: Path) -> None:
    script = tmp_path / "old_script.py"
    script.write_text(
        f"from dumpscope.ptdbg import *\ncompare({param(sides)!r}, {str(tmp_path)!r})\nprint('reached')\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.count("reached") == 1


def test_the_server_part_imports_no_torch() -> None:
    code = "import dumpscope.ptdbg, sys; assert 'torch' not in sys.modules and 'dumpscope_capture' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60, env={**os.environ})


# -- compare_distributed ---------------------------------------------------------------------------------------------


def ranked(dumps: Path, folder: Path, name: str, numbers: list[int], summary: str = "statistics") -> Path:
    for place, number in enumerate(numbers):
        convert(
            dumps / name / "step0" / f"rank{place}",
            folder / name / f"rank{number}",
            summary=summary,
            stacks="none",
        )
    return folder / name


def test_faq_error_2_ranks_are_paired_by_the_order_of_their_numbers(dumps: Path, tmp_path: Path) -> None:
    """`rank10` comes after `rank9`, and a rank that is named by a process id has its place in the order too."""
    npu = ranked(dumps, tmp_path, "dist2_stat_fault", [9, 10])
    bench = ranked(dumps, tmp_path, "dist2_stat_golden", [4711, 4720])
    output = tmp_path / "out"
    output.mkdir()
    done = compare_distributed(str(npu), str(bench), str(output), auto_analyze=True, fuzzy_match=False)
    stems = {path.name.rsplit("_", 1)[0] for path in done.files}
    assert stems == {
        f"{word}_{pair}" for word in ("compare_result", "advisor") for pair in ("rank9-rank4711", "rank10-rank4720")
    }
    assert [(origin.rank, origin.node) for origin in done.answer.origins] == [(10, "Tensor___add___0_forward")]


def test_a_folder_that_is_no_rank_is_named(dumps: Path, tmp_path: Path) -> None:
    npu = ranked(dumps, tmp_path, "dist2_stat_fault", [0, 1])
    bench = ranked(dumps, tmp_path, "dist2_stat_golden", [0])
    assert "2 of" in failed(Code.INVALID_PATH, compare_distributed, npu, bench, tmp_path)
    assert "suffix" in failed(Code.INVALID_PARAM, compare_distributed, npu, npu, tmp_path, suffix="x")
    (npu / "step0").mkdir()
    assert "step0" in failed(Code.INVALID_PATH, compare_distributed, npu, npu, tmp_path)
    (npu / "step0").rmdir()
    (npu / "rank1" / "dump.pkl").unlink()
    assert "rank1" in failed(Code.NO_DUMP_FILE, compare_distributed, npu, npu, tmp_path)
    (npu / "rank1" / "compare_data.py").touch()
    convert(dumps / "golden" / "step0" / sides_source(dumps).name, npu / "rank1", stem="mine")
    assert len(compare_distributed(npu, npu, tmp_path).files) == 6
    (npu / "rank1" / "mine").rename(npu / "rank1" / "yours")
    assert "yours" in failed(Code.INVALID_FILE, compare_distributed, npu, npu, tmp_path)


# -- parse -----------------------------------------------------------------------------------------------------------


def test_parse_prints_statistics_and_the_stack_with_the_outermost_call_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "dump.pkl"
    lines = [
        A,
        ["Functional_relu_0_forward_output", 0, "0a1b2c3d", "torch.float32", [2], []],
        STACK,
        ["Torch_add_0_forward_output", *A[1:]],
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    parse(str(path), "Functional_relu_0_forward")
    out = capsys.readouterr().out
    assert out.splitlines()[:3] == [
        "Statistics (name, dtype, shape, max, min, mean):",
        "Functional_relu_0_forward_input.0  torch.float32  [2]  1.0  -1.0  0.5",
        "Functional_relu_0_forward_output  torch.float32  [2]  md5 0a1b2c3d",
    ]
    assert out.splitlines()[4:] == [
        "Traceback (most recent call last):",
        '  File "/run.py", line 9, in <module>',
        "    net(x)",
        '  File "/net.py", line 3, in forward',
        "    x = F.relu(x)",
    ]
    parse(str(path), "Nothing")
    assert "no record" in capsys.readouterr().out
    failed(Code.INVALID_PARAM, parse, str(path), 3)
    failed(Code.INVALID_PATH, parse, str(tmp_path / "none.pkl"), "x")


def test_faq_error_5_parse_says_where_a_line_is_broken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "dump.pkl"
    path.write_text(json.dumps(A)[:30] + json.dumps(A) + "\n")
    parse(path, "Functional")
    out = capsys.readouterr().out
    assert "line 1 column" in out
    assert out.count("torch.float32") == 1


# -- command line ----------------------------------------------------------------------------------------------------


def test_a_shell_compares_ptdbg_dumps_and_gets_its_tables(dumps: Path, tmp_path: Path) -> None:
    target, golden = (convert_dump(dumps / name, tmp_path / name, form="4.0") for name in ("target_fault", "golden"))
    done = dumpscope("compare", target, golden, "--format", "ptdbg", "-o", tmp_path / "out", "--json")
    assert done.returncode == 1
    found = strict(done.stdout)
    assert found["origins"][0]["node"] == "Functional_softmax_1_forward"  # type: ignore[index]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        "ptdbg_advisor.txt", "ptdbg_result.csv", "ptdbg_result.xlsx", "result.db",
    ]  # fmt: skip
    told = dumpscope("info", target, "--json")
    assert strict(told.stdout)["layout"] == "ptdbg 4.0"
    assert "form of ptdbg 4.0" in dumpscope("info", target).stdout


def test_a_shell_parses_a_file_by_the_beginning_of_names(sides: dict[str, Path]) -> None:
    node = dumpscope("parse", sides["target_fault"], "Functional_softmax_1_forward")
    assert (node.returncode, node.stdout.count("torch.float32")) == (0, 2)
    item = dumpscope("parse", sides["target_fault"], "Functional_softmax_1_forward_output")
    assert (item.returncode, item.stdout.count("torch.float32")) == (0, 1)
    assert "models.py" in item.stdout
    assert dumpscope("parse", sides["target_fault"], "Nothing").returncode == 2


def test_a_call_that_cannot_be_run_from_such_a_dump_says_why(sides: dict[str, Path], tmp_path: Path) -> None:
    done = dumpscope("reproduce", sides["target_fault"], "Functional.softmax.1.forward", "-o", tmp_path / "x.py")
    assert done.returncode == 2
    assert "does not keep all arguments" in done.stderr
    assert "layout='msprobe'" in done.stderr


def test_an_overflow_is_found_in_such_a_dump(dumps: Path, tmp_path: Path) -> None:
    done = dumpscope("overflow", convert_dump(dumps / "target_nan", tmp_path, form="2.3"))
    assert done.returncode == 1
    assert done.stdout.startswith("step 0 rank 0: Functional_gelu_0_forward  [origin, critical]")
