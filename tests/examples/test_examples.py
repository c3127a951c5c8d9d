"""Every example runs as its text says."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from file_schemas import assert_schema
from warm_python import DUMPSCOPE, warm_python

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"


def run(*command: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    python = warm_python(DUMPSCOPE) if command[0] == "-m" else warm_python()
    return subprocess.run([python, *map(str, command)], capture_output=True, text=True, cwd=cwd, check=False)


def test_the_recorded_fault_is_named_with_its_line(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    ran = run(EXAMPLES / "record_and_compare.py", tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert ran.stdout.startswith("Configuration at Functional.gelu.0.forward (step 0, rank 0)")
    assert 'approximate is "tanh" in the target and "none" in the golden' in ran.stdout
    assert "hidden = functional.gelu(self.first(x), approximate=self.approximate)" in ran.stdout


def test_the_notebook_reads_an_answer(dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compared = run(
        "-m", "dumpscope", "compare", dumps / "target_fault", dumps / "golden", "-o", tmp_path / "result",
        "--format", "json", "--pairs",
    )  # fmt: skip
    assert compared.returncode == 1
    monkeypatch.setenv("RESULT", str(tmp_path / "result" / "export.json"))
    names: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / "read_result.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "clear the outputs before a notebook is committed"
            exec("".join(cell["source"]), names)
    assert names["origins"]["node"].tolist() == ["Functional.softmax.1.forward"]
    assert len(names["worst"]) == 10
    assert names["by_api"]["wrong"].sum() == names["answer"]["counts"]["no"]


def test_the_policy_is_taken(dumps: Path) -> None:
    ran = run(
        "-m", "dumpscope", "compare", dumps / "target_fault", dumps / "golden", "--policy", EXAMPLES / "policy.yaml",
        "--json",
    )  # fmt: skip
    assert ran.returncode == 1, ran.stderr
    assert json.loads(ran.stdout)["origins"][0]["node"] == "Functional.softmax.1.forward"


def test_the_ci_job_runs_a_command_that_exists(dumps: Path, tmp_path: Path) -> None:
    job = yaml.safe_load((EXAMPLES / "compare-job.yml").read_text())["compare-with-golden"]
    (command,) = (line for line in job["script"] if line.startswith("dumpscope "))
    places = {"$TARGET": dumps / "target_fault", "$GOLDEN": dumps / "golden"}
    words = [places.get(word, word) for word in shlex.split(command)[1:]]
    assert run("-m", "dumpscope", *words, cwd=tmp_path).returncode == 1
    assert list(tmp_path.glob(job["artifacts"]["reports"]["junit"]))
    workflow = yaml.safe_load((EXAMPLES / "compare-workflow.yml").read_text())["jobs"]["compare"]
    (there,) = (step["run"] for step in workflow["steps"] if step.get("run", "").startswith("dumpscope "))
    assert there.partition(" |")[0].split(" -o ")[0] == command.split(" -o ")[0], "both have the same command"
    kept = next(step["with"]["path"] for step in workflow["steps"] if "upload-artifact" in step.get("uses", ""))
    assert kept == shlex.split(there)[shlex.split(there).index("-o") + 1]


@pytest.mark.parametrize(
    ("file", "schema"), [("compare-job.yml", "gitlab-ci"), ("compare-workflow.yml", "github-workflows")]
)
def test_the_ci_jobs_have_the_form_that_their_systems_read(file: str, schema: str) -> None:
    assert_schema(EXAMPLES / file, schema)


def test_every_example_is_listed() -> None:
    listed = (EXAMPLES / "README.md").read_text()
    assert [path.name for path in EXAMPLES.iterdir() if path.is_file() and f"({path.name})" not in listed] == [
        "README.md"
    ]
