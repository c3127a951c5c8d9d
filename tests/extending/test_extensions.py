"""What an installed package brings is found by name, and what cannot be loaded is said."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dumpscope import extensions
from dumpscope.errors import DumpscopeError


def test_an_installed_package_is_seen_by_a_process(extended: dict[str, str]) -> None:
    script = "import dumpscope_example; from importlib import metadata; print(metadata.version('dumpscope-example'))"
    ran = subprocess.run([sys.executable, "-c", script], env=extended, capture_output=True, text=True, check=True)
    assert ran.stdout == "1.0\n"


def test_an_extension_that_cannot_be_imported_names_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = extensions.metadata.EntryPoint(name="lost", value="no_such_module:rule", group=extensions.RULES)
    monkeypatch.setattr(extensions.metadata, "entry_points", lambda group: [entry])
    extensions.load.cache_clear()
    with pytest.raises(DumpscopeError, match="the extension 'lost'"):
        extensions.load(extensions.RULES)
    extensions.load.cache_clear()
