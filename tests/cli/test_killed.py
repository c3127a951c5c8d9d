"""A server that is killed leaves files behind; the next one removes them, and nothing that is somebody else's."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path

from warm_python import COLD, SERVER, warm_python

from cli.test_serving import get, running

FILES = 4000

HOLDER = """
from dumpscope.pipeline.tasks.temporary_folder import TemporaryFolder
with TemporaryFolder() as room:
    (room.path / "half").write_bytes(b"1" * 100)
    print(room.path, flush=True)
    input()
"""


def until(holds: Callable[[], object], seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@contextmanager
def holder(place: Path) -> Iterator[tuple[Path, subprocess.Popen[str]]]:
    """A process with a room in `place`."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    try:
        assert process.stdout is not None
        yield Path(process.stdout.readline().strip()), process
    finally:
        process.kill()
        process.communicate()


def many_files(path: Path, dump: Path) -> Path:
    """An archive of a real dump behind many files."""
    with tarfile.open(path, "w") as archive:
        for number in range(FILES):
            info = tarfile.TarInfo(f"run/more/{number}.txt")
            info.size = 5
            archive.addfile(info, BytesIO(b"12345"))
        archive.add(dump, "run")
    return path


def send(server: str, file: Path) -> None:
    content = file.read_bytes()
    place = f"{server}api/uploads/u"
    begun = urllib.request.Request(
        place, b'{"files": 1, "bytes": %d}' % len(content), {"Content-Type": "application/json"}, method="PUT"
    )
    query = urllib.parse.urlencode({"path": file.name, "size": len(content)})
    written = urllib.request.Request(f"{place}/files?{query}", content, method="PUT")
    for request in (begun, written, urllib.request.Request(f"{place}/finish", b"", method="POST")):
        urllib.request.urlopen(request, timeout=60).close()


def test_an_archive_whose_unpacking_a_kill_cut_off_is_unpacked_once_and_nothing_stays(
    dumps: Path, tmp_path: Path
) -> None:
    data, temporary = tmp_path / "data", tmp_path / "tmp"
    temporary.mkdir()
    archive = many_files(tmp_path / "run.tar", dumps / "stat_fault")
    serve = ("serve", "--port", 0, "--data-dir", data)
    environment = {"TMPDIR": str(temporary), "DUMPSCOPE_EXECUTOR": "threads:1"}
    with running(*serve, python=COLD, **environment) as (server, process):
        send(server, archive)
        until(lambda: next(data.glob("unpacked/*/dump-*/run/more/1.txt"), None))
        process.kill()
        process.wait()
    (cut,) = data.glob("unpacked/*/dump-*")
    (data / "export-abcdefgh").mkdir()
    (data / "unpacked" / ".gone-0123").mkdir()
    with running(*serve, **environment) as (server, _):
        until(lambda: get(f"{server}api/dumps")["items"][0]["status"] == "ready")  # type: ignore[index]
        (folder,) = data.glob("unpacked/*/*")
        assert folder != cut
        assert len(list(folder.glob("run/more/*"))) == FILES
        assert [one.name for one in data.glob("unpacked/*")] == [folder.parent.name]
        assert list(data.glob("export-*")) == []
        assert list((data / "receiving").glob("*/parts/*")) == []
    assert list(temporary.iterdir()) == []


def test_temporary_folders_of_killed_processes_are_removed_but_no_others(dumps: Path, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    elsewhere = tmp_path / "dumpscope-room-elsewher"
    for folder in (elsewhere, place / "dumpscope-mine", place / "room-abcdefgh"):
        folder.mkdir(parents=True)
        (folder / "kept").touch()
    (place / "dumpscope-room-linklink").symlink_to(elsewhere)
    (place / "dumpscope-room-filefile").touch()
    with holder(place) as (dead, process), holder(place) as (alive, _):
        process.kill()
        process.wait()
        assert dead.is_dir()
        before = set(place.iterdir())
        with running("serve", "--port", 0, "--data-dir", tmp_path / "data", TMPDIR=str(place)) as (server, _):
            assert get(f"{server}api/health")["status"] == "ok"  # type: ignore[index]
            assert set(place.iterdir()) == before - {dead}
        assert (alive / "half").stat().st_size == 100
        assert (elsewhere / "kept").exists()


def test_the_copy_of_a_result_that_a_killed_server_showed_goes_at_the_next_start(dumps: Path, tmp_path: Path) -> None:
    place = tmp_path / "tmp"
    place.mkdir()
    compared = [str(dumps / name) for name in ("stat_fault", "stat_golden")]
    subprocess.run(
        [warm_python(SERVER), "-m", "dumpscope", "compare", *compared, "-o", tmp_path / "out"],
        check=False,
        capture_output=True,
    )
    result = tmp_path / "out" / "result.db"
    serve = ("serve", result, "--port", 0)
    with running(*serve, python=COLD, TMPDIR=str(place)) as (_, process):
        (copy,) = place.glob("dumpscope-result-room-*")
        process.kill()
        process.wait()
    assert (copy / "dumpscope.db").exists()
    with running(*serve, TMPDIR=str(place)) as (_, alive), running(*serve, TMPDIR=str(place)):
        assert alive.poll() is None
        until(lambda: len(list(place.iterdir())) == 2)
        assert not copy.exists()
