"""Fixtures that every stage shares."""

from __future__ import annotations

import gc
import hashlib
import multiprocessing.spawn
import os
import resource
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings
from warm_python import DUMPSCOPE, warm_python

settings.register_profile("untimed", settings(), deadline=None)  # a slow machine fails no test
settings.load_profile("untimed")

# Also where the environment forbids it: each process that a test starts would compile the whole program again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# A thread of torch that has nothing to do waits asleep: with two processes on two cores it would turn in a loop for nothing.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
# Inductor asks no compiler what vectors the processor has and compiles in the process that needs it: no test is about its speed.
os.environ.setdefault("TORCHINDUCTOR_VEC_ISA_OK", "0")
os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "1")

ARCHIVE = Path(__file__).parent / "data" / "dumps.tar.xz"
FILES = 8192
"""Files that the whole run may hold open at once; many systems allow 1024."""


LONGEST = (
    "capture/test_conformance.py",
    "planted/test_planted_faults.py",
    "properties/test_comparisons.py",
    "cli/test_ending.py",
    "reproduce/test_precheck_compare.py",
    "wheel/test_wheel.py",
    "wheel/test_install.py",
    "capture/proof/test_note.py",
    "capture/proof/test_recipe.py",
)
"""Files that take long with few tests. They come first: while one that came last ran, the other processes would have no work."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    tests = Path(__file__).parent
    place = {tests / name: number for number, name in enumerate(LONGEST)}
    items.sort(key=lambda item: place.get(item.path, len(place)))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: the collector need not look at it again and again, nor once (it finds nothing)."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_configure() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if hard == resource.RLIM_INFINITY else min(FILES, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


@pytest.fixture(scope="session")
def dumps(pytestconfig: pytest.Config) -> Path:
    """Folder of real dumps made with the real msprobe; its README holds the truth about each (read-only: never write there)."""
    named = os.environ.get("DUMPSCOPE_TEST_DUMPS")
    if named:
        return Path(named)
    digest = hashlib.sha256(ARCHIVE.read_bytes()).hexdigest()[:12]
    folder = pytestconfig.rootpath / ".pytest_cache" / f"dumps-{digest}"
    if not folder.is_dir():
        fresh = folder.with_name(f"{folder.name}.{os.getpid()}")
        with tarfile.open(ARCHIVE) as tar:
            tar.extractall(fresh)  # our own archive; `filter` came only with 3.11.4, and Debian 12 has 3.11.2
        try:
            fresh.rename(folder)
        except OSError:  # another process was first
            shutil.rmtree(fresh)
    return folder


@pytest.fixture(scope="module")
def warm() -> Iterator[None]:
    """`sys.executable` is a Python whose processes have torch already, for the tests of a module and for what they call."""
    pytest.importorskip("torch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "executable", warm_python())
        yield


@pytest.fixture
def warm_workers() -> Iterator[None]:
    """Worker processes of a pool have the server's modules already."""
    before = multiprocessing.spawn.get_executable()
    multiprocessing.spawn.set_executable(warm_python(DUMPSCOPE))
    yield
    multiprocessing.spawn.set_executable(before)


@pytest.fixture(scope="session")
def own_dumps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of two dumps that our own capture makes now (see pipeline/producer_run.py): `good`, and `fault`."""
    pytest.importorskip("torch")
    folder = tmp_path_factory.mktemp("own")
    script = Path(__file__).parent / "pipeline" / "producer_run.py"
    for name, more in (("good", []), ("fault", ["--fault"])):
        subprocess.run([warm_python(), script, folder / name, *more], check=True, timeout=300, capture_output=True)
    return folder
