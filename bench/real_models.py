"""Models of real libraries, run bare and recorded: what the recorder changes, and what it does not see.

    python bench/real_models.py [--folder .real_models] [--torch-of PYTHON] [--only llama] [--docs]

Needs Python 3.11. An environment is made in FOLDER/env and reused. It has the torch of the interpreter that `--torch-of` names
(this one), if that has one, and the libraries below. Each case (model_cases/cases.py) is a tiny model with random weights;
nothing is downloaded for it.

Each run of a case is a process of its own: two bare ones, one for each of L0, L1 and mix with statistics and with tensors, and
one at L1 with risk level ALL. After each step these must be equal, by bytes: the loss (or the tokens and scores made), every
gradient, parameter and buffer with its strides, and the random states of torch, Python and numpy. `counts` of run.json must be
empty.

Calls are counted by a bare run with a dispatch mode (model_cases/census.py says what is a call): each must have a node at its
line, at risk level ALL, or make, move or view data only and be counted by name in run.json (`unrecorded`); one that computes must
have a node at the default level. Modules are counted by a hook, and each but FSDP's wrapper must be a node at L0 and mix.
Compiled regions are counted by torch's profiler.

--docs writes the table into docs/real_models.md. The exit code is 1 if anything differs or is missing.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

ROOT = Path(__file__).resolve().parents[1]
WORKER = ROOT / "bench" / "model_cases" / "worker.py"
DOCS = ROOT / "docs" / "real_models.md"
BEGIN, END = "<!-- real_models: begin -->", "<!-- real_models: end -->"
LIBRARIES = ("torchvision", "timm", "transformers", "diffusers", "peft", "accelerate", "lightning")
LIMIT_S = 1800
HEAD = ("case", "equal", "values", "L0", "L1", "mix", "modules", "calls", "nodes", "only at ALL", "by name", "missing")


def purelib(python: Path) -> str:
    ask = "import sysconfig; print(sysconfig.get_path('purelib'))"
    return subprocess.run([python, "-c", ask], check=True, capture_output=True, text=True).stdout.strip()


def make(folder: Path, torch_of: str) -> Path:
    """The environment's interpreter; the environment is made where it is not there yet. A library that does not work with this
    torch is taken out again, so that the others do not find it."""
    python = folder / "bin" / "python"
    if (folder / ".made").exists():
        return python
    print(f"making {folder} ...", flush=True)
    subprocess.run([torch_of, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check"]
    wanted = ["torch"]
    found = subprocess.run(
        [torch_of, "-c", "import os, torch; print(torch.__version__); print(os.path.dirname(os.path.dirname(torch.__file__)))"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if found.returncode == 0:
        version, place = found.stdout.split()
        Path(purelib(python), "shared.pth").write_text(f"{place}\n", encoding="utf-8")
        wanted = [f"torch=={version.partition('+')[0]}"]
    subprocess.run([*pip, "install", *wanted, *LIBRARIES], check=True)
    loads = subprocess.run([python, "-c", "import torchvision"], capture_output=True, check=False)
    if loads.returncode:
        print("torchvision does not load with this torch: its cases and timm's cannot be made", flush=True)
        subprocess.run([*pip, "uninstall", "-y", "torchvision", "timm"], check=True)
    (folder / ".made").touch()
    return python


def run(python: Path, folder: Path, case: str) -> dict[str, Any]:
    """Run a case; its result."""
    path = folder / f"{case}.json"
    path.unlink(missing_ok=True)
    env = {
        **os.environ, "PYTHONPATH": str(ROOT / "capture"), "OMP_NUM_THREADS": "1", "PYTHONWARNINGS": "ignore",
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "inductor"), "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "CUDA_VISIBLE_DEVICES": "", "TRANSFORMERS_VERBOSITY": "error",
    }  # fmt: skip
    began = time.monotonic()
    with open(folder / f"{case}.log", "w", encoding="utf-8") as log:
        command = [python, WORKER, case, folder]
        worker = subprocess.Popen(command, env=env, stdout=log, stderr=log, start_new_session=True)
        try:
            worker.wait(LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
    if not path.exists():
        reason = f"no result after {time.monotonic() - began:.0f} s, see {folder / f'{case}.log'}"
        print(f"{case}: {reason}", flush=True)
        return {"title": case, "wrong": [reason]}
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    print(f"{case}: {summary(found)}, {time.monotonic() - began:.0f} s", flush=True)
    for text in found["wrong"]:
        print(f"    {text}", flush=True)
    return found


def summary(found: dict[str, Any]) -> str:
    if "not made" in found:
        return f"not made here: {found['not made']}"
    return f"{len(found['wrong'])} faults" if found["wrong"] else f"equal in {len(found['equal'])} runs"


def cells(found: dict[str, Any]) -> list[str]:
    """A row of the table."""
    if "not made" in found or "nodes" not in found:
        return [found["title"], "not made here" if "not made" in found else "failed", *([""] * (len(HEAD) - 2))]
    nodes = found["nodes"]
    levels = [str(nodes.get(f"{level} statistics", "")) for level in ("L0", "L1", "mix")]
    runs = len(found["equal"])
    if "calls" in found:
        only = sum(found["only at ALL"].values())
        calls = [found["calls"], found["calls at default"], only, sum(found["left out"].values()), found["missing"]]
    else:
        calls = [
            f"{found.get('regions', '')} compiled regions",
            found.get("region nodes", ""),
            "",
            "",
            found.get("missing", ""),
        ]
    return [
        found["title"],
        f"{runs} of {found['runs']}",
        str(found["kept"]),
        *levels,
        str(found["modules"]),
        *map(str, calls),
    ]


def table(results: list[dict[str, Any]]) -> str:
    rows = [HEAD, ["---"] * len(HEAD), *map(cells, results)]
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def versions(python: Path) -> str:
    def say(*command: str) -> str:
        return subprocess.run([python, *command], check=True, capture_output=True, text=True).stdout

    known = {one["name"]: one["version"] for one in json.loads(say("-m", "pip", "list", "--format", "json"))}
    number = say("-c", "import platform; print(platform.python_version())").strip()
    return ", ".join(
        [f"Python {number}", *(f"{name} {known[name]}" for name in ("torch", *LIBRARIES) if name in known)]
    )


def names_left(results: list[dict[str, Any]]) -> str:
    """Which calls are nodes at risk level ALL only, and which are only counted by name."""
    texts = []
    for key in ("only at ALL", "left out"):
        total: dict[str, int] = {}
        for found in results:
            for name, number in found.get(key, {}).items():
                total[name] = total.get(name, 0) + number
        ordered = sorted(total.items(), key=lambda one: (-one[1], one[0]))
        texts.append(f"{key}: " + ", ".join(f"{name} {number}" for name, number in ordered))
    return "\n".join(texts)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=ROOT / ".real_models")
    parser.add_argument(
        "--torch-of", default=sys.executable, metavar="PYTHON", help="interpreter to use, with its torch if it has one"
    )
    parser.add_argument("--only", action="append", default=[], help="name of a case; may be repeated")
    parser.add_argument("--jobs", type=int, default=2, help="cases that run at once")
    parser.add_argument("--last", action="store_true", help="run nothing: the results that are in the folder")
    parser.add_argument("--docs", action="store_true", help="write the table into docs/real_models.md")
    given = parser.parse_args()
    folder = given.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    python = make(folder / "env", given.torch_of)
    results_of = folder / "results"
    results_of.mkdir(exist_ok=True)
    listed = subprocess.run([python, WORKER, "--list"], check=True, capture_output=True, text=True).stdout.split()
    unknown = set(given.only) - set(listed)
    if unknown:
        parser.error(f"no case {', '.join(sorted(unknown))}; there are {', '.join(listed)}")
    if given.last:
        results = [
            json.loads(path.read_text(encoding="utf-8"))
            for path in (results_of / f"{name}.json" for name in listed)
            if path.exists()
        ]
    else:
        with ThreadPoolExecutor(given.jobs) as pool:
            found = dict(
                zip(given.only or listed, pool.map(partial(run, python, results_of), given.only or listed), strict=True)
            )
        results = [found[name] for name in listed if name in found]
    text = f"{versions(python)}.\n\n{table(results)}"
    print(f"{text}\n{names_left(results)}")
    if given.docs:
        head, rest = DOCS.read_text(encoding="utf-8").split(BEGIN)
        DOCS.write_text(f"{head}{BEGIN}\n{text}\n{END}{rest.split(END)[1]}", encoding="utf-8")
    return int(any(found["wrong"] for found in results))


if __name__ == "__main__":
    sys.exit(main())
