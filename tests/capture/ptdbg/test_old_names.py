"""Scripts of ptdbg_ascend and msprobe run unchanged: `python -m dumpscope_capture.run --as NAME script.py`."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from warm_python import warm_python

from capture.ptdbg.reading import calls

SCRIPTS = Path(__file__).with_name("scripts")

MSPROBE = """
import sys
import torch
from msprobe.pytorch import PrecisionDebugger, module_dump, module_dump_end, seed_all
from msprobe.pytorch.common.utils import seed_all as the_same
import msprobe.pytorch

assert the_same is seed_all is msprobe.pytorch.seed_all
seed_all(1)
net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
debugger = PrecisionDebugger(config_path=sys.argv[1], dump_path=sys.argv[2])
debugger.start(model=net)
net(torch.rand(2, 4) + float(sys.argv[3])).sum().backward()
debugger.stop()
debugger.step()
"""

COMPARING = """
import sys
from msprobe.pytorch import compare, compare_distributed

sides = [f"{folder}/step0/rank" for folder in sys.argv[1:3]]
compare({"npu_path": sides[0] + "/dump.json", "bench_path": sides[1] + "/dump.json", "is_print_compare_log": True},
        "one", stack_mode=True, fuzzy_match=True)
compare({"npu_json_path": sides[0], "bench_json_path": sides[1], "stack_json_path": sides[0] + "/stack.json"}, "two")
compare_distributed(f"{sys.argv[1]}/step0", f"{sys.argv[2]}/step0", "three")
try:
    compare({"npu_path": "nowhere", "bench_path": sides[1]}, "four")
except RuntimeError as error:
    print("refused:", error)
"""


def run(*arguments: object, status: int = 0) -> str:
    done = subprocess.run(
        [warm_python(), "-m", "dumpscope_capture.run", *map(str, arguments)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_a_script_of_ptdbg_runs_unchanged() -> None:
    for name in ("single_card.py", "net.py"):
        Path(name).write_bytes((SCRIPTS / name).read_bytes())
    assert "from ptdbg_ascend import *" in Path("single_card.py").read_text(encoding="utf-8")
    said = run("--as", "ptdbg_ascend", "single_card.py", "./npu_dump.pkl", "npu")
    assert "is imported as well" not in said  # it is this package itself
    assert any(name.endswith("forward") for name in calls(Path("npu_v2.3/rank0/npu_dump.pkl")))


def test_a_script_of_msprobe_records_and_compares_unchanged() -> None:
    Path("train.py").write_text(MSPROBE, encoding="utf-8")
    Path("comparing.py").write_text(COMPARING, encoding="utf-8")
    config = {"task": "statistics", "dump_path": "unused", "level": "mix", "rank": [], "step": []}
    Path("config.json").write_text(json.dumps(config), encoding="utf-8")
    run("--as", "msprobe", "train.py", "config.json", "npu", "0")
    run("--as", "msprobe", "train.py", "config.json", "gpu", "1")
    recorded = json.loads(next(Path("npu/step0").glob("*/dump.json")).read_text(encoding="utf-8"))["data"]
    assert {"Module.0.Linear.forward.0", "Functional.linear.0.forward"} <= recorded.keys()
    for side in ("npu", "gpu"):
        next(Path(side, "step0").iterdir()).rename(Path(side, "step0", "rank"))
    printed = run("--as", "msprobe", "comparing.py", "npu", "gpu")
    for folder in ("one", "two", "three"):
        assert list(Path(folder).glob("*.csv")), printed
    assert "refused: dumpscope could not compare nowhere" in printed


def test_what_is_not_replaced_says_so() -> None:
    Path("other.py").write_text("import msprobe.mindspore", encoding="utf-8")
    assert "only msprobe.pytorch is replaced" in run("--as", "msprobe", "other.py", status=1)


def test_the_real_package_is_left_unless_it_is_to_be_replaced() -> None:
    Path("msprobe").mkdir()
    Path("msprobe/__init__.py").write_text("REAL = True", encoding="utf-8")
    Path("own.py").write_text("import msprobe; print(getattr(msprobe, 'REAL', False))", encoding="utf-8")
    assert "the real msprobe is installed here" in run("--as", "msprobe", "own.py", status=2)
    assert run("--as", "msprobe", "--replace", "own.py").strip() == "False"
