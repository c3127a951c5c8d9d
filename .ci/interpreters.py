#!/usr/bin/env python3
"""The recorder under every Python that is found here: all of capture/ compiled, the tests that need no torch run. From 3.10 on,
which the server takes, backend/ is compiled too.

    .ci/interpreters.py [FOLDER]    FOLDER: keeps pytest and hypothesis for them (default: .interpreters)

A version that is missing is named; the exit status is 1 where something fails, not where something is missing. Interpreters are
looked for as `python3.8` on PATH and below ~/.pyenv/versions, or where DUMPSCOPE_PYTHONS names them (paths, separated by colons).
"""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSIONS = ("3.8", "3.9", "3.10", "3.11", "3.12", "3.13", "3.14")
TESTS = ("tests/format", "tests/pure")
WORKERS = 2
"""Interpreters that run beside each other."""
COMPILE = """
import pathlib, sys
for folder in ["capture", "backend"] if sys.version_info >= (3, 10) else ["capture"]:
    for path in sorted(pathlib.Path(folder).rglob("*.py")):
        compile(path.read_bytes(), str(path), "exec", dont_inherit=True)
"""


def find_interpreters() -> dict[str, str]:
    """Path of one working interpreter of each version that is here."""
    named = [path for path in os.environ.get("DUMPSCOPE_PYTHONS", "").split(":") if path]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    found: dict[str, str] = {}
    for path in [*named, *map(str, sorted(pyenv.glob("3.*/bin/python"))), *(f"python{one}" for one in VERSIONS)]:
        version = version_of(path)
        if version is not None:
            found.setdefault(version, path)
    return found


def version_of(path: str) -> str | None:
    """`3.8`; None where the path is no working interpreter, as a shim of pyenv may be."""
    ask = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    try:
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def bring_pytest(python: str, folder: Path) -> None:
    """Install pytest and hypothesis once, by the oldest interpreter: what it gets is pure Python that newer ones run too."""
    stamp = folder / ".made"
    if stamp.exists():
        return
    pip = [python, "-m", "pip", "-q", "--disable-pip-version-check", "install", "--target", str(folder)]
    subprocess.run([*pip, "--upgrade", "pytest", "pytest-timeout", "hypothesis"], check=True)
    stamp.touch()


def check(python: str, folder: Path) -> str:
    """Empty, or the output of what failed."""
    done = subprocess.run([python, "-B", "-c", COMPILE], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        return done.stdout + done.stderr
    paths = os.pathsep.join([str(folder), str(ROOT / "capture")])
    run = [python, "-B", "-m", "pytest", "-p", "no:cacheprovider", *TESTS]
    env = {**os.environ, "PYTHONPATH": paths, "HYPOTHESIS_STORAGE_DIRECTORY": str(folder / ".hypothesis")}
    done = subprocess.run(run, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def main(arguments: list[str]) -> int:
    folder = Path(arguments[0] if arguments else ROOT / ".interpreters").resolve()
    found = find_interpreters()
    there = [version for version in VERSIONS if version in found]
    if there:
        bring_pytest(found[there[0]], folder)
    failed = []
    with ThreadPoolExecutor(WORKERS) as pool:
        outputs = list(pool.map(lambda version: check(found[version], folder), there))
    for version, output in zip(there, outputs, strict=True):
        print(f"Python {version}: {'FAILED' if output else 'capture/ compiles, tests without torch pass'}", flush=True)
        if output:
            print(output)
            failed.append(version)
    missing = [version for version in VERSIONS if version not in found]
    if missing:
        print(f"Not checked, no interpreter here: Python {', '.join(missing)}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
