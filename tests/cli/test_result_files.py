"""`serve RESULT`: what a colleague sees of a result file, and that the file stays as it is."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import urllib.request
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from alembic import command

from cli.test_serving import get, running
from dumpscope.cli.app import status
from dumpscope.index.store.database import Database, sqlite_url
from dumpscope.index.store.upgrade import configuration, newest

CAUSE = "Functional.softmax.1.forward"


@pytest.fixture(scope="module")
def results(dumps: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Folders `fault` and `nan`, each with the result.db of a comparison, on a share that cannot be written."""
    share = tmp_path_factory.mktemp("share")
    for name in ("fault", "nan"):
        assert (
            status(["compare", *map(str, (dumps / f"target_{name}", dumps / "golden")), "-o", str(share / name)]) == 1
        )
        (share / name / "result.db").chmod(0o444)
        (share / name).chmod(0o555)
    yield share
    for folder in share.iterdir():
        folder.chmod(0o755)


def state(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    """All files with their content and times."""
    return {
        file.name: (file.read_bytes(), file.stat().st_mtime_ns, file.stat().st_mode)
        for file in sorted(folder.iterdir())
    }


def say(address: str, standing: str) -> None:
    request = urllib.request.Request(
        address,
        method="PUT",
        data=json.dumps({"standing": standing}).encode(),
        headers={"Content-Type": "application/json"},
    )
    urllib.request.urlopen(request, timeout=60).close()


def older(result: Path, folder: Path, revision: str) -> Path:
    """A copy of a result file as an older dumpscope wrote it."""
    file = folder / "old.db"
    shutil.copyfile(result, file)
    database = Database(sqlite_url(file))
    config = configuration()
    with database.write() as connection:
        config.attributes["connection"] = connection
        command.downgrade(config, revision)
    database.close()
    return file


def test_a_result_opens_on_its_comparison_and_stays_untouched(results: Path, tmp_path: Path) -> None:
    before = state(results / "fault")
    place = tmp_path / "tmp"
    place.mkdir()
    with running("serve", results / "fault", "--port", 0, TMPDIR=str(place)) as (address, process):
        server, comparison = address.split("/comparisons/")
        root = f"{server}/api/comparisons/{comparison}"
        assert get(f"{root}/origins")["items"][0]["node"] == CAUSE  # type: ignore[index]
        assert get(f"{server}/api/health")["results"] == [str(results / "fault")]  # type: ignore[index]
        say(f"{root}/notes/{CAUSE}", "known")
        assert get(f"{root}/notes")["items"][0]["standing"] == "known"  # type: ignore[index]
        assert [one.name.startswith("dumpscope-result-") for one in place.iterdir()] == [True]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert list(place.iterdir()) == []
    assert state(results / "fault") == before


def test_it_is_said_that_changes_are_lost(results: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from dumpscope.cli.commands.serve import _copy_results  # noqa: PLC0415

    page = _copy_results([results / "fault" / "result.db"], tmp_path / "dumpscope.db")
    assert page.startswith("/comparisons/")
    said = capsys.readouterr().out
    assert f"{results / 'fault' / 'result.db'}: a comparison, in a copy" in said
    assert "lost when the server ends" in said


def test_several_results_open_on_the_list_of_them(results: Path) -> None:
    with running("serve", results / "fault", results / "nan" / "result.db", "--port", 0) as (address, _):
        assert address.count("/") == 3
        listed = get(f"{address}api/comparisons")["items"]  # type: ignore[index]
        assert sorted(Path(one["target_name"]).name for one in listed) == ["target_fault", "target_nan"]


def test_a_server_that_loses_its_terminal_removes_the_copy(results: Path, tmp_path: Path) -> None:
    with running("serve", results / "nan", "--port", 0, TMPDIR=str(tmp_path)) as (_, process):
        assert len(list(tmp_path.iterdir())) == 1
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
    assert list(tmp_path.iterdir()) == []


def test_the_data_of_a_server_that_the_environment_names_stays_out_of_it(results: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    environment = {"DUMPSCOPE_DATA_DIR": str(own), "DUMPSCOPE_DATABASE_URL": f"sqlite:///{own}/mine.db"}
    with running("serve", results / "fault", "--port", 0, **environment):
        assert not own.exists()


@pytest.mark.parametrize("revision", ["0006", "0005", "0003"])
def test_a_result_of_an_older_dumpscope_is_brought_up_to_date_in_the_copy(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], revision: str
) -> None:
    from dumpscope.cli.commands.serve import _copy_results  # noqa: PLC0415

    file = older(results / "fault" / "result.db", tmp_path, revision)
    content = file.read_bytes()
    _copy_results([file], tmp_path / "copy.db")
    assert "made by an older dumpscope and upgraded, in a copy" in capsys.readouterr().out
    copied = Database(sqlite_url(tmp_path / "copy.db"))
    assert copied.version() == newest()
    copied.close()
    assert file.read_bytes() == content


def test_what_somebody_has_not_closed_is_copied_with_the_result(results: Path, tmp_path: Path) -> None:
    file = tmp_path / "open.db"
    shutil.copyfile(results / "fault" / "result.db", file)
    with closing(sqlite3.connect(file, isolation_level=None)) as held:
        held.execute("PRAGMA wal_autocheckpoint = 0")
        held.execute("UPDATE comparison SET name = 'from the log'")
        assert (tmp_path / "open.db-wal").stat().st_size > 0
        with running("serve", file, "--port", 0) as (address, _):
            server, comparison = address.split("/comparisons/")
            assert get(f"{server}/api/comparisons/{comparison}")["name"] == "from the log"  # type: ignore[index]


def newer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE alembic_version SET version_num = '9999'")
        database.commit()


def unfinished(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE comparison SET status = 'running'")
        database.commit()


def unknown_answer(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database:
        database.execute("UPDATE comparison SET answer = json_set(answer, '$.counts.sideways', 1)")
        database.commit()


def cut(file: Path) -> None:
    os.truncate(file, 6000)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (newer, "made by another version of dumpscope"),
        (unknown_answer, "was made by a newer dumpscope"),
        (unfinished, "holds no finished comparison"),
        (cut, "open.db: "),
        (lambda file: file.write_text("{}"), "is no result file"),
        (lambda file: file.unlink(), "nothing is there"),
    ],
)
def test_what_is_no_result_is_refused_in_one_line(  # type: ignore[no-untyped-def]
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], spoil, words: str
) -> None:
    file = tmp_path / "open.db"
    shutil.copyfile(results / "fault" / "result.db", file)
    spoil(file)
    assert status(["serve", str(file), "--port", "0"]) == 2
    complaint = capsys.readouterr().err
    assert words in complaint
    assert str(file) in complaint
    assert "internal" not in complaint
    assert complaint.count("\n") == 1


def test_a_folder_without_result_and_two_homes_at_once_are_refused(
    results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert status(["serve", str(tmp_path)]) == 2
    assert "holds no result.db" in capsys.readouterr().err
    assert status(["serve", str(results / "fault"), "--data-dir", str(tmp_path)]) == 2
    assert "--data-dir" in capsys.readouterr().err
