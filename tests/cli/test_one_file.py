"""`compare --format page`: the page of the web UI in one file, beside the other result files."""

from __future__ import annotations

from pathlib import Path

import pytest
from one_file import contents

from dumpscope.api.one_file import page
from dumpscope.cli.app import status

CAUSE = "Functional.softmax.1.forward"


def compare(dumps: Path, *options: str) -> int:
    return status(["compare", str(dumps / "stat_fault"), str(dumps / "stat_golden"), *options])


def test_it_is_written_beside_the_result_file_and_holds_the_answer(
    dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert compare(dumps, "-o", str(tmp_path / "out"), "--format", "page,json") == 1
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"page.html", "export.json", "result.db"}
    said = capsys.readouterr().out
    assert f"wrote {tmp_path / 'out' / 'page.html'}" in said
    text = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    assert f"<title>{dumps / 'stat_fault'} ⇄ {dumps / 'stat_golden'}</title>" in text
    held = contents(text)
    origins = held["replies"][f"/api/comparisons/{held['comparison']}/origins?"][1]["items"]
    assert [one["node"] for one in origins] == [CAUSE]


def test_it_is_in_all_languages_whatever_the_terminal_speaks(dumps: Path, tmp_path: Path) -> None:
    sides = [str(dumps / side) for side in ("dist2_stat_fault", "dist2_stat_golden")]
    assert status(["--lang", "zh", "compare", *sides, "-o", str(tmp_path), "--format", "page"]) == 1
    held = contents((tmp_path / "page.html").read_text(encoding="utf-8"))
    origins = held["replies"][f"/api/comparisons/{held['comparison']}/origins?"][1]["items"]
    assert origins
    assert all(one["evidence"].isascii() for one in origins)


def test_without_a_built_page_nothing_is_compared(
    dumps: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(page, "BUNDLE", tmp_path / "none")
    assert compare(dumps, "-o", str(tmp_path / "out"), "--format", "page") == 2
    assert "no page that could be put into a file" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
