"""The example notebook runs as its text says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from client.conftest import TOKEN

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_notebook_of_a_server_gets_its_answer(
    dumps: Path, tmp_path: Path, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("SERVER", address), ("TOKEN", TOKEN)):
        monkeypatch.setenv(f"DUMPSCOPE_{name}", value)
    monkeypatch.setenv("TARGET", str(dumps / "target_fault"))
    monkeypatch.setenv("GOLDEN", str(dumps / "golden"))
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads((EXAMPLES / "use_server.ipynb").read_text())["cells"]:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "clear the outputs before a notebook is committed"
            exec("".join(cell["source"]), names)
    assert [origin.node for origin in names["origins"]] == ["Functional.softmax.1.forward"]
    assert names["result"].outcome == "diverged"
    assert len(names["wrong"]) > 20
    assert names["progress"][-1] == 1.0
    assert (tmp_path / "result.db").stat().st_size > 10_000
