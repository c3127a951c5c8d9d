"""What run.json says of the program around a capture."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest
import torch

from dumpscope_capture.config import Config
from dumpscope_capture.device import environment
from dumpscope_capture.seeding import seed_all, switches, undo
from dumpscope_format.run import SETTINGS


def test_run_json_tells_what_changes_numbers(make: Any, read: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NCCL_ALGO", "Ring")
    monkeypatch.setenv("HF_TOKEN", "secret")
    seed_all(77, rm_dropout=True)
    try:
        torch.use_deterministic_algorithms(True, warn_only=True)
        with make(level="L1"):
            torch.relu(torch.ones(2))
    finally:
        undo()
        torch.use_deterministic_algorithms(False)
    run = read().run
    assert run["seeds"] == {"seed": 77, "rm_dropout": True, "is_enhanced": False}
    assert run["environment"]["NCCL_ALGO"] == "Ring"
    assert "secret" not in json.dumps(run)
    numerics = run["numerics"]
    assert numerics["deterministic_algorithms"] is True
    assert numerics["matmul_tf32"] is False
    assert numerics["default_dtype"] == "float32"
    assert numerics["threads"] == torch.get_num_threads()
    assert switches == {"rm_dropout": False, "is_enhanced": False}


def test_the_toolkit_of_an_ascend_machine_is_a_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "latest" / f"{platform.machine()}-linux"
    home.mkdir(parents=True)
    (home / "ascend_toolkit_install.info").write_text("package_name=Ascend-cann-toolkit\nversion=8.0.RC2\n")
    monkeypatch.setenv("ASCEND_HOME_PATH", str(tmp_path / "latest"))
    environment._cann.cache_clear()
    try:
        assert environment.describe_run(Config(), 0, 0)["versions"]["cann"] == "8.0.RC2"
    finally:
        environment._cann.cache_clear()


def test_settings_that_a_comparison_fills_in_are_the_defaults_of_the_configuration() -> None:
    blank = Config()
    for name, value in SETTINGS.items():
        own = getattr(blank, name)
        assert (list(own) if isinstance(own, tuple) else own) == value
