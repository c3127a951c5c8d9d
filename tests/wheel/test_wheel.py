"""The wheel as a stranger gets it: built here, installed beside nothing else, run where there is no Node."""

from __future__ import annotations

import json
import re
import socket
import subprocess
import sys
import tarfile
import time
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from wheel.conftest import PIP, ROOT, build, without_node


@pytest.fixture(scope="session")
def clean(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """bin folder of a virtual environment that holds the wheel and what it asks for, nothing else."""
    folder = tmp_path_factory.mktemp("clean") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    done = subprocess.run(
        [*PIP, "--python", str(folder / "bin" / "python"), "-q", "install", "--no-compile", str(wheel)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return folder / "bin"


@pytest.fixture(scope="module")
def server(clean: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """URL of `dumpscope serve` of the clean environment."""
    data = tmp_path_factory.mktemp("data")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log = data / "log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [clean / "dumpscope", "serve", "--port", str(port), "--data-dir", data / "state"],
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            env=without_node(clean),
            cwd=data,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while True:
            try:
                urllib.request.urlopen(f"{url}/api/health", timeout=5).close()
                break
            except urllib.error.URLError:
                assert process.poll() is None, log.read_text()
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.2)
        yield url
    finally:
        process.terminate()
        process.wait(timeout=20)


def get(url: str) -> tuple[str, bytes]:
    with urllib.request.urlopen(url, timeout=20) as reply:
        return reply.headers.get_content_type(), reply.read()


def test_the_wheel_holds_the_page_the_format_and_the_demo_and_no_loose_top_level_names(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {"dumpscope/static/index.html", "dumpscope/static/file/page.js", "dumpscope/static/file/page.css"} <= set(
        names
    )
    assert any(re.fullmatch(r"dumpscope/static/assets/.*\.js", name) for name in names)
    assert "dumpscope/demo/dumps.tar.xz" in names
    assert {"dumpscope/bundled/dumpscope_format/__init__.py", "dumpscope/bundled/dumpscope_capture/run.py"} <= set(
        names
    )
    tops = {name.split("/")[0] for name in names if ".dist-info/" not in name}
    assert tops <= {"dumpscope", "dumpscope_bundled.pth"}


def test_the_wheel_asks_for_torch_only_as_an_extra(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        lines = archive.read(metadata).decode().splitlines()
    wanted = [line for line in lines if line.startswith("Requires-Dist:")]
    assert any("torch" in line and "extra ==" in line for line in wanted)
    assert not [line for line in wanted if "torch" in line and "extra ==" not in line]


def test_installing_the_wheel_brings_no_torch(clean: Path) -> None:
    done = subprocess.run(
        [*PIP, "--python", str(clean / "python"), "list", "--format", "json"],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {row["name"].lower() for row in json.loads(done.stdout)}
    assert "dumpscope" in names
    assert not {name for name in names if "torch" in name or name.startswith("nvidia")}


def test_an_sdist_carries_the_bundle_so_that_its_wheel_needs_no_node(tmp_path: Path, wheel: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (sdist,) = tmp_path.glob("dumpscope-*.tar.gz")
    with tarfile.open(sdist) as tar:
        names = [name.split("/", 1)[1] for name in tar.getnames() if "/" in name]
    assert "frontend/package-lock.json" in names
    assert "backend/dumpscope/static/index.html" in names
    assert not [name for name in names if "node_modules" in name]
    again = build(sdist, tmp_path / "wheel", without_node(tmp_path))
    assert sorted(zipfile.ZipFile(again).namelist()) == sorted(zipfile.ZipFile(wheel).namelist())


def test_the_command_starts_and_says_what_it_can_do(clean: Path) -> None:
    done = subprocess.run(
        [clean / "dumpscope", "--help"], capture_output=True, text=True, check=True, env=without_node(clean)
    )
    for command in ("demo", "serve", "info", "compare", "overflow", "parse"):
        assert command in done.stdout


def test_the_installed_command_names_the_known_fault_of_the_bundled_dumps(clean: Path, tmp_path: Path) -> None:
    script = (
        "import sys, pathlib; from dumpscope.demo import unpack; print(*unpack(pathlib.Path(sys.argv[1])), sep='\\n')"
    )
    done = subprocess.run([clean / "python", "-c", script, tmp_path], capture_output=True, text=True, check=True)
    target, golden = done.stdout.splitlines()
    done = subprocess.run(
        [clean / "dumpscope", "compare", target, golden, "--json"],
        capture_output=True,
        text=True,
        check=False,
        env=without_node(clean),
        cwd=tmp_path,
    )
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    assert [(origin["node"], origin["kind"]) for origin in answer["origins"]] == [
        ("Functional.softmax.1.forward", "computation")
    ]


def test_the_installed_server_serves_the_page_and_its_scripts(server: str) -> None:
    kind, page = get(f"{server}/")
    assert kind == "text/html"
    scripts = re.findall(rb'(?:src|href)="\.?/?(assets/[^"]+\.js)"', page)
    assert scripts, page
    size = 0
    for name in scripts:
        kind, script = get(f"{server}/{name.decode()}")
        assert kind in ("text/javascript", "application/javascript")
        size += len(script)
    assert size > 100_000


def test_the_installed_server_answers_a_deep_link_with_the_page(server: str) -> None:
    kind, page = get(f"{server}/comparisons/1")
    assert kind == "text/html"
    assert b'<base href="../">' in page, "assets are found from the mount point, whatever the depth of the address"
    assert page.replace(b'<base href="../">', b'<base href="./">') == get(f"{server}/")[1]
