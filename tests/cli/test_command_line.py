"""What a shell sees: exit statuses, strict JSON, one line per error, files."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from warm_python import DUMPSCOPE, warm_python

from dumpscope.cli.app import COMMANDS, load_command, status, take_language
from dumpscope.cli.options import repeat_options
from dumpscope.export.document import document
from dumpscope.export.words import safe
from dumpscope.pipeline.compare.in_process import Outcome
from dumpscope.texts import LANGUAGES, catalogue


def dumpscope(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [warm_python(DUMPSCOPE), "-m", "dumpscope", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "NO_COLOR": "1", **environment},
    )


def strict(text: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(text, parse_constant=lambda word: pytest.fail(f"{word} is not JSON"))
    return found


def damaged(dumps: Path, folder: Path, name: str) -> Path:
    """A copy of a dump that may be written to."""
    copy = folder / name
    shutil.copytree(dumps / name / "step0", copy / "step0", copy_function=shutil.copyfile)
    for path in [copy, *copy.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    return copy


def test_a_fault_is_named_first_and_the_exit_status_is_1(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "target_fault", dumps / "golden")
    assert result.returncode == 1
    first = result.stdout.splitlines()[0]
    assert "Functional.softmax.1.forward" in first
    assert "models.py:14" in result.stdout
    assert "what to do" in result.stdout
    assert "first No: Functional.softmax.1.forward.output.0" in result.stdout


ENGLISH = re.compile(r"[A-Za-z]{2,}(?: [a-z]{2,}){2,}")
"""Three words in a row: names of calls, files and metrics have none."""


def test_the_answer_is_said_in_chinese(dumps: Path, tmp_path: Path) -> None:
    arguments = ("compare", dumps / "target_fault", dumps / "golden")
    result = dumpscope(*arguments, "--lang", "zh", "-o", tmp_path, "--format", "html")
    assert result.returncode == 1
    assert result.stdout.splitlines()[0] == "异常源头（计算）：Functional.softmax.1.forward（step 0，rank 0）"
    for said in ("输入全部完全相同，但输出不一致", "建议：", "首个 No：Functional.softmax.1.forward.output.0"):
        assert said in result.stdout
    named = re.sub(r"(?m)^.*models\.py:14.*$", "", result.stdout)
    assert ENGLISH.findall(named + result.stderr) == []
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert '<html lang="zh">' in page
    shown = re.sub(r"<[^>]+>", "\n", re.sub(r"(?s)<style>.*?</style>|<pre>.*?</pre>|<code>.*?</code>", "", page))
    assert "比对对象" in shown
    assert ENGLISH.findall(shown) == []


def test_the_language_comes_from_the_environment_and_json_stays_english(dumps: Path) -> None:
    chosen = dumpscope("info", dumps / "golden", DUMPSCOPE_LANG="zh")
    assert "个节点" in chosen.stdout
    assert "个节点" in dumpscope("info", dumps / "golden", DUMPSCOPE_LANG="", LC_ALL="zh_CN.UTF-8").stdout
    pair = (dumps / "target_fault", dumps / "golden")
    found = strict(dumpscope("compare", *pair, "--json", "--lang=zh").stdout)
    assert found == strict(dumpscope("compare", *pair, "--json").stdout)


def test_an_error_is_said_in_the_language_asked_for(tmp_path: Path) -> None:
    refused = dumpscope("info", tmp_path, "--lang", "zh")
    assert refused.returncode == 2
    assert "不含 dump" in refused.stderr
    unknown = dumpscope("info", tmp_path, "--lang", "fr")
    assert (unknown.returncode, unknown.stderr) == (2, "dumpscope: --lang 'fr' is not one of en, zh\n")


def test_the_language_option_ends_where_another_command_begins() -> None:
    assert take_language(["--lang", "zh", "info", "x"]) == (["info", "x"], "zh")
    assert take_language(["bisect", "--", "train", "--lang", "zh"]) == (["bisect", "--", "train", "--lang", "zh"], None)


def test_a_rank_that_a_step_lacks_leaves_the_comparison_incomplete(dumps: Path, tmp_path: Path) -> None:
    target, golden = tmp_path / "target", tmp_path / "golden"
    for side, ranks in ((target, [(0, 0), (0, 1), (1, 0), (1, 1)]), (golden, [(0, 0), (0, 1), (1, 0)])):
        for step, rank in ranks:
            source = dumps / "dist2_stat_golden" / "step0" / f"rank{rank}"
            shutil.copytree(source, side / f"step{step}" / f"rank{rank}", copy_function=shutil.copyfile)
    chosen = dumpscope("compare", target, golden, "--rank", 1, "--json")
    assert chosen.returncode == 3
    (problem,) = strict(chosen.stdout)["problems"]  # type: ignore[misc]
    assert (problem["kind"], problem["loc"]) == ("missing_rank", "step1/rank1")
    assert "the golden has ranks 0 of this step" in problem["message"]
    assert dumpscope("compare", target, golden).returncode == 3, "the run of rank 1 may have ended early"
    assert dumpscope("compare", target, golden, "--step", 0).returncode == 0


def test_hashes_of_two_kinds_are_no_success(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "md5_golden", dumps / "xor_golden")
    assert result.returncode == 3
    assert result.stdout.startswith("No tensor could be compared")
    assert "md5 (target) and xor (golden)" in result.stdout


def test_a_healthy_pair_exits_with_0(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "golden", dumps / "golden", "--step", 0)
    assert result.returncode == 0
    assert result.stdout.startswith("No divergence")


def test_two_dumps_without_a_common_item_are_no_agreement(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "debug_save_tensor", dumps / "golden")
    assert result.returncode == 3
    assert result.stdout.startswith("Nothing could be compared")
    assert "2 steps and 1 rank" in result.stdout


def test_dumps_without_numbers_agree_in_structure(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "cfg_structure", dumps / "cfg_structure")
    assert result.returncode == 0
    assert result.stdout.startswith("No divergence in structure")


def test_overflow_of_a_run_that_recorded_nothing_is_not_clean(dumps: Path) -> None:
    result = dumpscope("overflow", dumps / "crash_stat")
    assert result.returncode == 3
    assert "no_data" in result.stdout


def test_json_is_one_strict_document_and_nothing_else(dumps: Path) -> None:
    result = dumpscope("compare", dumps / "target_nan", dumps / "golden", "--json", "--pairs", "--step", 0)
    assert result.returncode == 1
    found = strict(result.stdout)
    assert found["schema"] == 1
    assert found["mode"] == "tensor"
    pairs = found["pairs"]
    assert isinstance(pairs, list)
    assert len(pairs) == found["counts"]["items"]  # type: ignore[index]
    assert "inf" in json.dumps(pairs)


def test_fail_on_never_reports_and_passes(dumps: Path) -> None:
    assert dumpscope("compare", dumps / "stat_fault", dumps / "stat_golden", "--fail-on", "never").returncode == 0


def test_a_warning_fails_only_where_it_is_asked_to(dumps: Path) -> None:
    quiet = dumpscope("compare", dumps / "target_renamed", dumps / "golden", "--step", 0, "--json")
    assert quiet.returncode == 0, quiet.stdout
    counts = strict(quiet.stdout)["counts"]
    strict_run = dumpscope("compare", dumps / "target_renamed", dumps / "golden", "--step", 0, "--fail-on", "warning")
    unmatched = counts["warning"] + counts["unmatched_target"] + counts["unmatched_golden"]  # type: ignore[index]
    assert strict_run.returncode == (1 if unmatched else 0)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["compare", "{dumps}/golden"], "golden"),
        (["compare", "/nowhere/at/all", "{dumps}/golden"], "/nowhere/at/all"),
        (["compare", "{dumps}/golden", "{dumps}/README.md"], "README.md"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--format", "docx", "-o", "{out}"], "docx"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--format", "csv"], "-o DIR"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--fail-on", "maybe"], "maybe"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--step", "7"], "no step 7 (the target has steps 0, 1"),
        (
            ["compare", "{dumps}/golden", "{dumps}/stat_golden", "--step", "0", "1"],
            "the golden has no step 1 (the target",
        ),
        (["compare", "{dumps}/dist2_stat_golden", "{dumps}/dist2_stat_golden", "--rank", "0", "7"], "no rank 7"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--pairs"], "--json"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--cell-mapping", "/no/file.yaml"], "file.yaml"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--rename", "ffn"], "'ffn' is not PATTERN=REPLACEMENT"),
        (
            ["compare", "{dumps}/golden", "{dumps}/golden", "--matches", "{out}.broken"],
            "out.broken: matches is not valid yaml",
        ),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--plan", "{out}.broken"], "out.broken: plan: is no yaml: "),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--policy", "no-such-policy"], "no-such-policy"),
        (
            ["compare", "{dumps}/golden", "{dumps}/golden", "--policy", "{out}.yaml"],
            "out.yaml: policy: ignore holds '(?!a)b'",
        ),
        (["compare", "{dumps}/golden", "{dumps}/golden", "--jobs", "many"], "--jobs"),
        (["compare", "{dumps}/golden", "{dumps}/golden", "-o", "{dumps}/README.md"], "README.md"),
        (["info", "/nowhere"], "/nowhere: there is no such file or folder (/ is there, and holds no nowhere)"),
        (["info", "{dumps}/goldne"], "did you mean {dumps}/golden?"),
        (
            ["info", "{dumps}/golden/step0/proc15534/dump_tensor_data"],
            "name the folder that it is in, with the dump.json",
        ),
        (["reproduce", "/nowhere"], "/nowhere: there is no such file"),
        (["reproduce", "{dumps}/golden", "Functional.sofmax.1"], "(written like it: Functional.softmax.1, "),
        (["upload", "{dumps}/golden"], "DUMPSCOPE_SERVER"),
        (["health", "--server", "http://127.0.0.1:9"], "no answer from http://127.0.0.1:9: "),
        (["precheck-compare", "/nowhere", "/nowhere"], "/nowhere: there is no such file or folder"),
        (["serve", "{dumps}/golden"], "`dumpscope serve --root DIR`"),
        (["parse", "{dumps}/golden", "Nothing.like.this"], "Nothing.like.this"),
        (["overflow", "/nowhere"], "/nowhere"),
        (["frobnicate"], "frobnicate"),
        (["serve", "--host", "0.0.0.0"], "DUMPSCOPE_TOKEN"),
        (["serve", "--root", "/no/such/root"], "/no/such/root"),
        (["serve", "--port", "99999"], "65535"),
    ],
)
def test_bad_usage_is_one_clear_line_and_exit_status_2(
    dumps: Path,
    tmp_path: Path,
    arguments: list[str],
    says: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DUMPSCOPE_TOKEN", "")
    monkeypatch.setenv("DUMPSCOPE_DATA_DIR", str(tmp_path))
    (tmp_path / "out.yaml").write_text("ignore: ['(?!a)b']")
    (tmp_path / "out.broken").write_text("a: [")
    assert status([word.format(dumps=dumps, out=tmp_path / "out") for word in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("dumpscope: ")
    assert printed.err.count("\n") == 1  # so no dump was read before: that tells its progress
    assert "<unicode string>" not in printed.err
    assert says.replace("{dumps}", str(dumps)) in printed.err


def test_a_refused_command_ends_its_process_with_2_and_no_traceback() -> None:
    result = dumpscope("compare", "/nowhere/at/all", "/nor/here")
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr.splitlines() == [result.stderr.strip()]
    assert "/nowhere/at/all" in result.stderr


def test_an_unreadable_tensor_is_listed_and_exits_with_3(dumps: Path, tmp_path: Path) -> None:
    copy = damaged(dumps, tmp_path, "golden")
    (victim,) = copy.rglob("Functional.gelu.0.forward.output.0.pt")
    victim.write_bytes(victim.read_bytes()[:100])
    result = dumpscope("compare", copy, dumps / "golden", "--step", 0, "--json")
    assert result.returncode == 3
    found = strict(result.stdout)
    assert found["counts"]["unreadable"] == 1  # type: ignore[index]
    assert any("Functional.gelu.0.forward.output.0" in problem["loc"] for problem in found["problems"])  # type: ignore[attr-defined,union-attr]


def test_a_truncated_dump_is_compared_as_far_as_it_goes_and_exits_with_3(dumps: Path, tmp_path: Path) -> None:
    copy = damaged(dumps, tmp_path, "stat_golden")
    (file,) = copy.rglob("dump.json")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    result = dumpscope("compare", copy, dumps / "stat_golden", "--json")
    assert result.returncode == 3
    found = strict(result.stdout)
    assert found["counts"]["yes"] > 100  # type: ignore[index]
    assert any(problem["kind"] == "truncated" for problem in found["problems"])  # type: ignore[attr-defined,index,union-attr]


def test_one_unreadable_rank_leaves_the_others(dumps: Path, tmp_path: Path) -> None:
    copy = damaged(dumps, tmp_path, "dist2_stat_golden")
    (copy / "step0" / "rank1" / "dump.json").write_bytes(b"\x00\x01")
    result = dumpscope("compare", copy, dumps / "dist2_stat_golden", "--json")
    assert result.returncode == 3
    found = strict(result.stdout)
    assert found["counts"]["items"] >= 95  # type: ignore[index]
    assert any("rank1" in problem["loc"] for problem in found["problems"])  # type: ignore[attr-defined,index,union-attr]


def test_every_format_is_written_beside_the_database(dumps: Path, tmp_path: Path) -> None:
    out = tmp_path / "new" / "out"
    result = dumpscope(
        "compare", dumps / "dist2_stat_fault", dumps / "dist2_stat_golden", "-o", out, "--format", "csv,xlsx",
        "--format", "json,html,ptdbg-csv",
    )  # fmt: skip
    assert result.returncode == 1
    assert {path.name for path in out.iterdir()} == {
        "compare_result_step0_rank0.csv", "compare_result_step0_rank1.csv", "ptdbg_result_step0_rank0.csv",
        "ptdbg_result_step0_rank1.csv", "compare_result.xlsx", "export.json", "report.html", "result.db",
    }  # fmt: skip
    printed = result.stdout.splitlines()
    assert printed.index(next(text for text in printed if text.startswith("wrote"))) > 5
    assert strict((out / "export.json").read_text())["schema"] == 1


def test_the_result_database_is_a_servers_own(dumps: Path, tmp_path: Path) -> None:
    from dumpscope.index.comparisons.catalogue import list_comparisons, stored_units  # noqa: PLC0415
    from dumpscope.index.store.database import Database, sqlite_url  # noqa: PLC0415

    dumpscope("compare", dumps / "stat_fault", dumps / "stat_golden", "-o", tmp_path)
    database = Database.open(sqlite_url(tmp_path / "result.db"))
    try:
        ((_, row),) = list_comparisons(database)
        assert row.status == "done"
        assert row.answer is not None
        assert row.answer.origins[0].node == "Functional.softmax.1.forward"
        assert [unit.items for unit in stored_units(database, row.id)] == [503]
    finally:
        database.close()


def test_an_archive_is_opened_like_a_folder(dumps: Path, tmp_path: Path) -> None:
    packed = tmp_path / "dump.zip"
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((dumps / "stat_fault").rglob("*.json")):
            archive.write(path, path.relative_to(dumps / "stat_fault"))
    result = dumpscope("compare", packed, dumps / "stat_golden", "--json")
    assert result.returncode == 1
    assert strict(result.stdout)["origins"][0]["node"] == "Functional.softmax.1.forward"  # type: ignore[index]


def test_info_says_what_is_in_a_dump(dumps: Path) -> None:
    found = strict(dumpscope("info", dumps / "golden", "--json").stdout)
    assert (found["framework"], found["task"], found["level"]) == ("pytorch", "tensor", "mix")
    assert (found["steps"], found["ranks"]) == ([0, 1], [0])
    assert found["nodes"] == 326
    assert found["problems"] == []
    text = dumpscope("info", dumps / "golden").stdout
    assert "326 nodes" in text
    assert "steps 0, 1" in text


@pytest.mark.parametrize(
    ("dump", "code", "says", "never"),
    [
        ("golden", 0, ["statistics (Max, Min, Mean, Norm) and tensors", "439 tensor files"], ["problem"]),
        ("stat_golden", 0, ["level mix: statistics (Max, Min, Mean, Norm)\n", "module tree recorded"], ["tensor file"]),
        ("xor_golden", 0, ["level mix: a checksum (xor)\n"], ["statistics (", "tensor file"]),
        ("cfg_structure", 0, ["the calls and their order, no values", "125 API, 48 module"], ["item", "statistics"]),
        ("debug_save_stat", 0, ["Norm) of saved variables", "9 saved variables"], ["tree", "debug)"]),
        ("cfg_noextra", 0, ["no call stacks, module tree inferred from names\n"], ["names and stacks\n"]),
        (
            "crash_tensor",
            3,
            ["nothing was recorded", "12 tensor files beside it have no records", "Run it again"],
            ["0 nodes", "nodes ("],
        ),
    ],
)
def test_info_reads_like_a_sentence_for_every_kind_of_dump(
    dumps: Path, capsys: pytest.CaptureFixture[str], dump: str, code: int, says: list[str], never: list[str]
) -> None:
    assert status(["info", str(dumps / dump)]) == code
    printed = capsys.readouterr().out.replace(str(dumps), "")
    assert [part for part in says if part not in printed] == []
    assert [part for part in never if part in printed] == []


def test_info_names_the_statistics_that_are_there_and_what_only_some_heads_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = {"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2], "Max": 1.0, "Min": 0.0}
    call = {"Torch.exp.0.forward": {"input_args": [record], "input_kwargs": {}, "output": [record]}}
    for rank, head in enumerate(({"task": "statistics", "level": "mix"}, {})):
        folder = tmp_path / "step0" / f"rank{rank}"
        folder.mkdir(parents=True)
        (folder / "dump.json").write_text(json.dumps({**head, "data": call}))
    assert status(["info", str(tmp_path)]) == 0
    assert "task statistics, level mix: statistics (Max, Min)\n" in capsys.readouterr().out
    assert status(["info", str(tmp_path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["task"], found["level"]) == ("statistics", "mix")
    assert [unit["statistics"] for unit in found["units"]] == [["Max", "Min"]] * 2


def test_info_says_how_a_dump_was_run_once_where_all_ranks_were_alike(
    own_dumps: Path, dumps: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["info", str(own_dumps / "good")]) == 0
    printed = capsys.readouterr().out
    assert printed.count("  versions: python ") == 1
    assert "  numerics: deterministic_algorithms false" in printed
    assert status(["info", str(own_dumps / "good"), "--json"]) == 0
    (run, *_) = (unit["run"] for unit in json.loads(capsys.readouterr().out)["units"])
    assert run["settings"]["risk_level"] == "FOCUS"
    assert status(["info", str(dumps / "stat_golden")]) == 0
    assert "versions" not in capsys.readouterr().out


def test_parse_shows_statistics_and_stack(dumps: Path) -> None:
    result = dumpscope("parse", dumps / "stat_golden", "Functional.softmax.1.forward")
    assert result.returncode == 0
    assert result.stdout.startswith("Functional.softmax.1.forward\n")
    assert "Functional.softmax.1.forward.output.0  torch.float32 [2, 2, 6, 6]  max " in result.stdout
    assert "models.py, line 14" in result.stdout


@pytest.mark.parametrize(
    ("name", "node", "part"),
    [
        ("target_nan", "Functional.gelu.0.forward", "origin"),
        ("stat_nan", "Functional.gelu.0.forward", "origin"),
        ("target_nan_mask", "Functional.softmax.1.forward", "origin"),
    ],
)
def test_overflow_names_the_birth_of_a_nan(dumps: Path, name: str, node: str, part: str) -> None:
    result = dumpscope("overflow", dumps / name, "--json")
    assert result.returncode == 1
    (unit,) = strict(result.stdout)["units"]  # type: ignore[misc]
    assert (unit["first"]["node"], unit["first"]["part"]) == (node, part)
    assert unit["counts"]["origin"] == 1
    assert unit["counts"]["propagated"] > 100


def test_overflow_leaves_a_legal_mask_alone(dumps: Path) -> None:
    result = dumpscope("overflow", dumps / "golden")
    assert result.returncode == 0
    assert "2 intended" in result.stdout


def test_demo_compares_without_serving(tmp_path: Path) -> None:
    result = dumpscope("demo", "--no-serve", "--data-dir", tmp_path)
    assert result.returncode == 0
    assert "Functional.softmax.1.forward" in result.stdout.splitlines()[0]


def test_no_arguments_show_the_commands() -> None:
    result = dumpscope()
    assert result.returncode == 0
    for command in ("compare", "info", "overflow", "parse", "serve", "demo"):
        assert command in result.stdout


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_command_and_option_has_help_in_every_language(language: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = {key: template for key, template in catalogue(language)["said"].items() if key.startswith("help.")}
    used = {
        "help.no_such_option", "help.no_such_option_near", "help.missing", "help.bad_value", "help.usage_is",
        "help.lists_options", "help.lists_commands",
    }  # fmt: skip
    assert status(["--lang", language, "--help"]) == 0
    shown = [capsys.readouterr().out]
    used |= {"help.dumpscope", "help.version", "help.lang", *(key for key in said if key.startswith("help.word."))}
    for name in COMMANDS:
        assert status(["--lang", language, name, "--help"]) == 0
        shown.append(capsys.readouterr().out)
        options = [one.name for one in load_command(name).params]
        used |= {f"help.{name}", "help.show", *(key for key in [f"help.{name}.more"] if key in said)}
        used |= {own if (own := f"help.{name}.{option}") in said else f"help.any.{option}" for option in options}
    assert used == said.keys()
    letters = "".join("".join(text.split()) for text in shown)
    assert [
        key for key in used if key.count(".") < 3 and key[5:] in COMMANDS and "".join(said[key].split()) not in letters
    ] == []
    assert ("Show this message" in letters or "Showthismessage" in letters) == (language == "en")


@pytest.mark.parametrize(
    ("words", "english", "chinese"),
    [
        (["compare"], "TARGET is missing.", "缺少 TARGET。"),
        (["compare", "a", "b", "--colour"], "There is no option --colour.", "没有选项 --colour。"),
        (["serve", "--port", "99999"], "Bad value for --port: ", "--port 的值无效："),
    ],
)
def test_a_wrong_line_is_told_in_the_language_asked_for(
    words: list[str], english: str, chinese: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for language, begin in (("en", english), ("zh", chinese)):
        assert status(["--lang", language, *words]) == 2
        assert capsys.readouterr().err.startswith(f"dumpscope: {begin}")


def test_a_command_that_is_misspelt_is_refused_with_its_neighbour() -> None:
    result = dumpscope("compair", "a", "b")
    assert result.returncode == 2
    assert "compair" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_list_of_commands_imports_none_of_them() -> None:
    code = (
        "import sys\n"
        "from dumpscope.cli.app import status\n"
        "assert status(['--help']) == 0\n"
        "loaded = [name for name in sys.modules if name.startswith('dumpscope.cli.commands.')]\n"
        "sys.exit(','.join(loaded) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


NEVER = {"pandas", "plotly", "numba", "fastapi", "torch", "pydantic", "typer", "rich", "starlette", "uvicorn"}
DATABASE = {"sqlalchemy", "alembic"}
RARE = {
    "yaml", "importlib.metadata", "multiprocessing", "tarfile", "openpyxl", "dumpscope.parallel.join_unit",
    "dumpscope.readers.result_tables", "dumpscope.readers.archives.unpack",
}  # fmt: skip
"""What only some comparisons need."""


@pytest.mark.parametrize(
    ("words", "heavy"),
    [
        ("--help", {"numpy", *NEVER, *DATABASE, *RARE}),
        ("--version", {"numpy", *NEVER, *DATABASE, *RARE}),
        ("info {golden}", NEVER | DATABASE | RARE),
        ("compare {fault} {golden}", NEVER | DATABASE | RARE),
        ("compare {fault} {golden} -o {out}", NEVER | {"alembic", "yaml", "tarfile", "openpyxl"}),
    ],
)
def test_a_command_imports_only_what_it_needs(words: str, heavy: set[str], dumps: Path, tmp_path: Path) -> None:
    line = words.format(fault=dumps / "stat_fault", golden=dumps / "stat_golden", out=tmp_path / "out").split()
    code = (
        "import sys\n"
        "from dumpscope.cli.app import status\n"
        f"status({line!r})\n"
        f"sys.exit(','.join(set({sorted(heavy)!r}) & sys.modules.keys()) or 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("output", ["/proc/results", "/proc/deep/er/results"])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_is_read(output: str, dumps: Path) -> None:
    result = dumpscope("compare", str(dumps / "golden"), "/proc/absent", "-o", output)
    assert result.returncode == 2
    assert "/proc: no results can be written here" in result.stderr
    assert "absent" not in result.stderr


def test_ctrl_c_ends_with_one_line_and_130(dumps: Path) -> None:
    code = (
        "import sys, os, signal\n"
        "import dumpscope.pipeline.compare.in_process as local\n"
        "def slow(*a, **k): print('ready', file=sys.stderr, flush=True); signal.pause()\n"
        "local.compare_layouts = slow\n"
        "from dumpscope.cli import main\n"
        f"main(['compare', {str(dumps / 'golden')!r}, {str(dumps / 'golden')!r}])\n"
    )
    with subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "dumpscope: interrupted\n"
    assert process.returncode == 130


def test_a_reader_that_goes_away_is_no_error(dumps: Path) -> None:
    command = f"{sys.executable} -m dumpscope compare {dumps}/golden {dumps}/golden --json --pairs | head -c 10"
    result = subprocess.run(command, shell=True, capture_output=True, text=True, timeout=60, check=False)
    assert result.stdout == '{"schema":'
    assert "Traceback" not in result.stderr
    assert "BrokenPipe" not in result.stderr


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["compare", "a", "b", "--step", "0", "1"], ["compare", "a", "b", "--step", "0", "--step", "1"]),
        (["compare", "--step", "0,1", "a", "b"], ["compare", "--step", "0", "--step", "1", "a", "b"]),
        (["compare", "--rank=3", "a", "b"], ["compare", "--rank", "3", "a", "b"]),
        (["compare", "--step", "x", "b"], ["compare", "--step", "x", "b"]),
        (["serve", "--root", "a", "b", "--port", "1"], ["serve", "--root", "a", "--root", "b", "--port", "1"]),
        (["compare", "--", "--step", "0", "1"], ["compare", "--", "--step", "0", "1"]),
        (["compare", "a", "b", "--step"], ["compare", "a", "b", "--step", ""]),
    ],
)
def test_lists_of_numbers_may_follow_one_option(given: list[str], wanted: list[str]) -> None:
    assert repeat_options(given) == wanted


def test_a_name_cannot_steer_the_terminal() -> None:
    assert safe("Torch.\x1b[2Jadd\x07") == "Torch.\ufffd[2Jadd\ufffd"
    assert safe("\x1b[31mred\x1b[0m") == "\x1b[31mred\x1b[0m"


def test_an_internal_error_is_one_line_too(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    import dumpscope.cli.commands.info  # noqa: PLC0415

    def broken(*_: object, **__: object) -> int:
        raise ZeroDivisionError("of\nall things")

    monkeypatch.setattr(dumpscope.cli.commands.info, "open_layout", broken)
    assert status(["info", "x"]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_ranks_in_a_pool_give_the_same_answer_as_one_after_another(
    dumps: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dumpscope.domain.options import Options  # noqa: PLC0415
    from dumpscope.pipeline.compare import in_process  # noqa: PLC0415
    from dumpscope.readers import discover  # noqa: PLC0415

    def compared(name: str, golden: str, jobs: int) -> Outcome:
        sides = discover(dumps / name), discover(dumps / golden)
        return in_process.compare_layouts(*sides, Options(), paths=("a", "b"), jobs=jobs)

    pairs = (("dist2_stat_fault", "dist2_stat_golden"), ("stat_fault", "stat_golden"))
    alone = [document(compared(*names, 1).answer) for names in pairs]
    monkeypatch.setattr(in_process, "WORTH", 0)
    assert [document(compared(*names, 2).answer) for names in pairs] == alone
