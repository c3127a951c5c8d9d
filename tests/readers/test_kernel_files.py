"""Listing what an Ascend device dumped of its kernels. The files are made by the names CANN gives; none comes from a device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dumpscope.cli import main
from dumpscope.readers.kernel_files import kernel_folders


def status(words: list[str]) -> int:
    with pytest.raises(SystemExit) as end:
        main(words)
    return int(end.value.code or 0)


@pytest.fixture
def acl(tmp_path: Path) -> Path:
    for device, model, names in (
        (
            "0",
            "net/1",
            ["Add.Add.45.0.1675157077183551", "Add.Add.46.0.1675157077183651", "MatMul.a.b_c.47.3.1675157077183751"],
        ),
        ("10", "net", ["RealDiv.x.1.2.1675157077183551", "dump.json"]),
    ):
        folder = tmp_path / "acl" / "20230131162437" / device / model
        folder.mkdir(parents=True)
        for name in names:
            (folder / name).write_bytes(b"1234")
    return tmp_path / "acl"


def test_folders_say_time_device_model_and_what_ran(acl: Path) -> None:
    first, second = kernel_folders(acl)
    assert (first.time, first.device, first.model) == ("20230131162437", "0", "net")
    assert (first.files, first.nbytes, first.microseconds) == (3, 12, 200)
    assert first.operators == {"Add": 2, "MatMul": 1}
    assert (second.device, second.files) == ("10", 1)


@pytest.mark.parametrize("below", ["20230131162437", "20230131162437/0", "20230131162437/0/net/1"])
def test_a_path_may_begin_at_any_of_its_folders(acl: Path, below: str) -> None:
    assert kernel_folders(acl / below)[0].operators == {"Add": 2, "MatMul": 1}


def test_a_folder_without_kernel_files_has_none(tmp_path: Path) -> None:
    (tmp_path / "a.b.c").write_text("")
    (tmp_path / "Add.Add.45.0.167").write_text("")
    assert kernel_folders(tmp_path) == []


def test_info_lists_them(acl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert status(["info", str(acl)]) == 0
    told = capsys.readouterr().out
    assert "kernels of an Ascend device, 4 files" in told
    assert "20230131162437: device 0, model net: 3 files, 12 bytes" in told
    assert "Add 2, MatMul 1" in told
    assert status(["info", str(acl), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["layout"] == "kernels"
    assert [unit["device"] for unit in document["units"]] == ["0", "10"]


def test_info_of_a_folder_with_nothing_in_it_is_still_an_error(tmp_path: Path) -> None:
    assert status(["info", str(tmp_path)]) == 2
