#!/usr/bin/env python3
"""Quick checks of a change: lint, types, import contracts, the tests of what changed, and a core of every stage.

    .ci/check.py [BASE]    BASE: what the change is measured from (default: where this branch left main)

The checks run side by side; what fails is printed at the end. `make test` runs everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
CORE = ROOT / ".ci" / "core-tests"
MOST = 12
"""Test files of a change that are run; a larger change is for `make test`."""


def list_changed(base: str) -> list[str]:
    """Files that differ from BASE, and new ones that git does not know yet, as paths from the root."""
    lines: list[str] = []
    for command in (["diff", "--name-only", base], ["ls-files", "--others", "--exclude-standard"]):
        done = subprocess.run(["git", *command], cwd=ROOT, capture_output=True, text=True, check=False)
        lines += done.stdout.splitlines()
    return sorted({line for line in lines if (ROOT / line).is_file()})


def find_base() -> str:
    """The commit where this branch left main; on main itself the last commit."""
    done = subprocess.run(["git", "merge-base", "HEAD", "main"], cwd=ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "HEAD"


def tests_of(changed: list[str]) -> list[str]:
    """Changed test files, and those that carry the name of a changed module; without those that need a browser."""
    tests = [path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "tests").rglob("test_*.py"))]
    wanted = [name for name in changed if name in tests]
    for name in changed:
        stem = Path(name).stem
        if name.startswith(("backend/", "capture/")) and name.endswith(".py") and stem != "__init__":
            wanted += [test for test in tests if Path(test).stem == f"test_{stem}"]
    kept = list(dict.fromkeys(test for test in wanted if not test.startswith(("tests/ui/", "tests/wheel/"))))
    return kept[:MOST]


def run(name: str, command: list[str], folder: Path = ROOT) -> tuple[str, bool, float, str]:
    """Run one check: its name, whether it passed, seconds, output."""
    begun = time.monotonic()
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - begun
    print(f"{'ok    ' if done.returncode == 0 else 'FAILED'} {name} ({seconds:.0f} s)", flush=True)
    return name, done.returncode == 0, seconds, done.stdout


def main() -> int:
    """Run all checks, two at a time; 0 where all pass."""
    changed = list_changed(sys.argv[1] if len(sys.argv) > 1 else find_base())
    core = [line for line in CORE.read_text().splitlines() if line and not line.startswith("#")]
    tests = list(dict.fromkeys([*tests_of(changed), *core]))
    pages = any(name.startswith("frontend/") for name in changed)
    checks: list[tuple[str, list[str], Path]] = [
        ("tests", ["python", "-m", "pytest", "-q", "-x", *tests], ROOT),
        ("types", ["mypy"], ROOT),
        ("lint", ["ruff", "check", "-q", "."], ROOT),
        ("format", ["ruff", "format", "-q", "--check", "."], ROOT),
        ("imports", ["lint-imports"], ROOT),
        ("frontend lint", ["npm", "run", "--silent", "lint"], ROOT / "frontend"),
    ]
    if pages:
        checks[2:2] = [
            ("frontend types", ["npm", "run", "--silent", "types"], ROOT / "frontend"),
            ("frontend tests", ["npm", "run", "--silent", "test"], ROOT / "frontend"),
        ]
    begun = time.monotonic()
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(lambda check: run(*check), checks))
    failed = [(name, output) for name, passed, _, output in done if not passed]
    for name, output in failed:
        print(f"\n--- {name}\n{output[-6000:]}")
    print(f"{len(done) - len(failed)} of {len(done)} checks passed in {time.monotonic() - begun:.0f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
