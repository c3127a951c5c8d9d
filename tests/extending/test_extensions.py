"""What an installed package brings is found by name, and what cannot be loaded is said."""

from __future__ import annotations

import subprocess
import sys
from importlib.machinery import PathFinder
from pathlib import Path

import pytest

from dumpscope import extensions
from dumpscope.errors import DumpscopeError


def test_an_installed_package_is_seen_by_a_process(extended: dict[str, str]) -> None:
    script = "import dumpscope_example; from importlib import metadata; print(metadata.version('dumpscope-example'))"
    ran = subprocess.run([sys.executable, "-c", script], env=extended, capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n"


def test_an_extension_that_cannot_be_imported_names_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = tmp_path / "lost-1.0.dist-info"
    lost.mkdir()
    (lost / "METADATA").write_text("Metadata-Version: 2.1\nName: lost\nVersion: 1.0\n")
    (lost / "entry_points.txt").write_text("[dumpscope.rules]\nlost = no_such_module:rule\n")
    monkeypatch.syspath_prepend(tmp_path)
    extensions.declared.cache_clear()
    extensions.load.cache_clear()
    with pytest.raises(DumpscopeError, match="the extension 'lost' of the package lost"):
        extensions.load(extensions.RULES)
    monkeypatch.undo()
    extensions.declared.cache_clear()
    extensions.load.cache_clear()
    assert extensions.load(extensions.RULES) == ()


@pytest.mark.parametrize("place", ["finder", "archive"])
def test_packages_that_are_no_folders_are_left_to_importlib(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        sys, "path", [str(tmp_path)]
    )  # other tests of this process may have brought packages and finders
    monkeypatch.setattr(sys, "meta_path", [PathFinder])
    assert not extensions.declared.__wrapped__()
    if place == "finder":
        finder = type("Finder", (), {"find_distributions": None, "find_spec": lambda *_: None})
        monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, finder])
    else:
        archive = tmp_path / "packages.zip"
        archive.write_bytes(b"")
        monkeypatch.setattr(sys, "path", [*sys.path, str(archive)])
    assert extensions.declared.__wrapped__()
