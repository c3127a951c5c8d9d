"""The recorder alone, the whole of dumpscope, and both: what pip does with an environment in which somebody trains."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest

from wheel.conftest import PIP, ROOT

PREFIX = "dumpscope/bundled/"
RUNNER = Path(sysconfig.get_path("purelib")) / "pip" / "__pip-runner__.py"
"""What `pip --python` starts in turn. Importing pip to ask for its place would make setuptools fail in this process."""


def contents(wheel: Path, prefix: str = "") -> dict[str, bytes]:
    """Files of the two packages of the recorder by path."""
    with zipfile.ZipFile(wheel) as archive:
        return {
            name.removeprefix(prefix): archive.read(name)
            for name in archive.namelist()
            if name.startswith((f"{prefix}dumpscope_capture/", f"{prefix}dumpscope_format/"))
        }


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def environment(folder: Path, packages: dict[str, str]) -> Path:
    """A virtual environment in which pip finds packages of these versions, but nothing of their code. Its interpreter."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for name, version in packages.items():
        info = site / f"{name}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "INSTALLER").write_text("pip\n")
        (info / "RECORD").write_text("".join(f"{info.name}/{file},,\n" for file in ("METADATA", "INSTALLER", "RECORD")))
    return folder / "bin" / "python"


def planned(python: Path, *arguments: str | Path) -> dict[str, str]:
    """Versions that pip would install, by name."""
    command = [python, RUNNER, *PIP[3:], "install", "--dry-run", "--quiet", "--report", "-", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return {part["metadata"]["name"].lower(): part["metadata"]["version"] for part in report["install"]}


def pip(python: Path, *arguments: str | Path) -> None:
    """Our own pip, run by that interpreter."""
    done = subprocess.run([python, RUNNER, *PIP[3:], "-q", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def finds(python: Path, folder: Path) -> str:
    """Where the recorder's packages come from: the path of dumpscope_capture below site-packages; empty if it is not there."""
    code = (
        "import importlib.util as u\n"
        "found = [u.find_spec(name) for name in ('dumpscope_capture', 'dumpscope_format')]\n"
        "print(found[0].origin if all(found) else '')"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=folder)
    return done.stdout.strip().partition("site-packages/")[2]


def test_both_wheels_hold_the_same_recorder(wheel: Path, recorder_wheel: Path) -> None:
    alone = contents(recorder_wheel)
    assert contents(wheel, PREFIX) == alone
    assert not contents(wheel), "at the top, one of two distributions would own the files of the other"
    assert "dumpscope_capture/calls/support_wrap_ops.yaml" in alone
    sources = {
        path.relative_to(ROOT / "capture").as_posix()
        for package in ("dumpscope_capture", "dumpscope_format")
        for path in (ROOT / "capture" / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert set(alone) == sources


def test_the_recorder_asks_for_torch_of_any_version_and_for_nothing_else(wheel: Path, recorder_wheel: Path) -> None:
    told = metadata(recorder_wheel)
    assert told["Name"] == "dumpscope-capture"
    assert told["Requires-Python"] == ">=3.8"
    assert told.get_all("Requires-Dist") == ["torch"]
    assert told["Version"] == metadata(wheel)["Version"]


@pytest.mark.parametrize("torch", ["2.1.0", "2.1.0a0+git1234567", "2.1.0.post3", "1.11.0"])
def test_the_recorder_changes_nothing_that_is_there(recorder_wheel: Path, tmp_path: Path, torch: str) -> None:
    python = environment(tmp_path / "venv", {"torch": torch, "numpy": "1.26.4"})
    assert planned(python, "--no-index", recorder_wheel) == {"dumpscope-capture": "0.1.0"}


def test_the_whole_of_dumpscope_changes_neither_numpy_nor_torch(wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", {"torch": "2.1.0", "numpy": "1.26.4"})
    plan = planned(python, wheel)
    assert plan["dumpscope"] == "0.1.0"
    assert not {name for name in plan if name.startswith(("torch", "numpy", "nvidia"))}


@pytest.mark.parametrize("order", [("wheel", "recorder_wheel"), ("recorder_wheel", "wheel")])
@pytest.mark.parametrize("first_out", ["dumpscope", "dumpscope-capture"])
def test_both_come_and_go_in_any_order(
    request: pytest.FixtureRequest, tmp_path: Path, order: tuple[str, str], first_out: str
) -> None:
    python = environment(tmp_path / "venv", {"torch": "2.1.0"})
    compiled = order[0] == "wheel" and first_out == "dumpscope"  # that compiled files go as well is seen once
    for name in order:
        wheel = request.getfixturevalue(name)
        pip(python, "install", "--compile" if compiled else "--no-compile", "--no-deps", "--no-index", wheel)
        assert finds(python, tmp_path)
    assert finds(python, tmp_path) == "dumpscope_capture/__init__.py"
    pip(python, "uninstall", "-y", first_out)
    left = {"dumpscope": "dumpscope_capture/__init__.py", "dumpscope-capture": f"{PREFIX}dumpscope_capture/__init__.py"}
    assert finds(python, tmp_path) == left[first_out]
    pip(python, "uninstall", "-y", *({"dumpscope", "dumpscope-capture"} - {first_out}))
    assert finds(python, tmp_path) == ""
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    assert not [path.name for path in site.iterdir() if "dumpscope" in path.name]


def test_a_folder_without_path_files_works_too(wheel: Path, tmp_path: Path) -> None:
    options = ["--no-compile", "--no-deps", "--no-index", "--target", tmp_path / "target"]
    pip(Path(sys.executable), "install", *options, wheel)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import dumpscope, dumpscope_format; print(dumpscope_format.__file__)"],
        env={"PYTHONPATH": str(tmp_path / "target")},
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    assert done.stdout.strip() == str(tmp_path / "target" / PREFIX / "dumpscope_format" / "__init__.py")


def test_an_environment_without_torch_hears_what_is_missing(recorder_wheel: Path, tmp_path: Path) -> None:
    python = environment(tmp_path / "venv", {"torch": "1.11.0"})
    pip(python, "install", "--no-compile", "--no-deps", "--no-index", recorder_wheel)
    (site,) = (tmp_path / "venv").glob("lib/python*/site-packages")
    run = [python, "-c", "import dumpscope_capture"]
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'torch'"
    (site / "torch").mkdir()
    (site / "torch" / "__init__.py").write_text("__version__ = '1.11.0'\n")
    done = subprocess.run(run, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (
        done.stderr.splitlines()[-1] == "ImportError: dumpscope_capture needs torch 2.1 or later, this is torch 1.11.0"
    )
