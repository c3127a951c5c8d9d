"""run.json of our capture and config.json of msprobe, whole and damaged."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.domain.run import Run
from dumpscope.readers.msprobe.run_file import NAME_LIMIT, SIZE_LIMIT, TEXT_LIMIT, read_run

TOLD: dict[str, Any] = {
    "versions": {"torch": "2.5.1", "cann": "8.0.RC2"},
    "devices": ["cpu x64", "npu: Ascend910B"],
    "settings": {"task": "statistics", "precision": "high", "data_mode": ["forward", "input"], "dump_path": "/secret"},
    "numerics": {"deterministic_algorithms": True, "threads": 8},
    "seeds": {"seed": 6142048104111637206, "rm_dropout": False},
    "environment": {"HCCL_DETERMINISTIC": "True"},
    "unrecorded": {"torch.Tensor.copy_": 3, "x": "many", "y": True},
}


def read(folder: Path, name: str = "run.json", text: str | None = None) -> tuple[Run | None, list[str]]:
    if text is not None:
        (folder / name).write_text(text, encoding="utf-8")
    run, problems = read_run(str(folder), str(folder), "step0/rank0")
    return run, [f"{one.kind} {one.loc} {one.message}" for one in problems]


def test_every_group_is_read_as_text_and_missing_settings_are_the_defaults(tmp_path: Path) -> None:
    run, problems = read(tmp_path, text=json.dumps(TOLD))
    assert problems == []
    assert run is not None
    assert run.versions == {"torch": "2.5.1", "cann": "8.0.RC2"}
    assert run.unrecorded == {"torch.Tensor.copy_": 3}
    assert run.accelerators == ["npu: Ascend910B"]
    assert run.numerics == {"deterministic_algorithms": "true", "threads": "8"}
    assert run.seeds == {"seed": "6142048104111637206", "rm_dropout": "false"}
    assert run.settings == {
        "precision": "high", "risk_level": "FOCUS", "backward": "own", "data_mode": "forward, input", "scope": "", "list": "",
    }  # fmt: skip


def test_a_dump_without_either_file_tells_nothing(tmp_path: Path) -> None:
    assert read(tmp_path) == (None, [])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no JSON"),
        ("{", "is no JSON"),
        ("[1]", "holds a list, not an object"),
        ("[" * 5000, "is no JSON"),
        (" " * (SIZE_LIMIT + 1), "is larger than 4 MiB"),
    ],
)
def test_a_damaged_file_is_a_problem_that_says_what_is_lost(tmp_path: Path, text: str, why: str) -> None:
    run, problems = read(tmp_path, text=text)
    assert run is None
    assert len(problems) == 1
    assert problems[0].startswith("settings step0/rank0/run.json run.json")
    assert why in problems[0]
    assert problems[0].endswith("How the run was made is not known; nothing else is lost.")


def test_a_link_out_of_the_dump_and_a_pipe_are_refused(tmp_path: Path) -> None:
    inner = tmp_path / "dump"
    inner.mkdir()
    (tmp_path / "outside.json").write_text(json.dumps(TOLD))
    (inner / "run.json").symlink_to(tmp_path / "outside.json")
    assert "link out of the dump" in read(inner)[1][0]
    (inner / "run.json").unlink()
    os.mkfifo(inner / "run.json")
    assert "not a regular file" in read(inner)[1][0]


def test_groups_names_and_values_are_bounded(tmp_path: Path) -> None:
    wide = {f"name{number}": "x" * 1000 for number in range(1000)}
    run, _ = read(
        tmp_path, text=json.dumps({"versions": wide, "devices": ["y" * 1000] * 1000, "numerics": [1], "seeds": 3})
    )
    assert run is not None
    assert len(run.versions) == len(run.devices) == NAME_LIMIT
    assert {len(text) for text in [*run.versions.values(), *run.devices]} == {TEXT_LIMIT}
    assert run.numerics == run.seeds == {}


def test_what_the_capture_could_not_keep_is_a_problem(tmp_path: Path) -> None:
    told = {"counts": {"lost_records": 3, "late": 9, "failed_json": 0, "hook_error forward": 1}}
    assert read(tmp_path, text=json.dumps(told))[1] == [
        "capture_losses step0/rank0/run.json The capture counted records and files that it could not keep: "
        "hook_error forward 1, lost_records 3. "
        "They are missing here."
    ]


def test_a_configuration_beside_a_dump_of_msprobe_tells_its_settings(tmp_path: Path) -> None:
    config = {
        "task": "tensor", "risk_level": "ALL", "dump_path": "/x",
        "tensor": {"data_mode": ["backward"]}, "statistics": {"data_mode": ["forward"]},
    }  # fmt: skip
    run, problems = read(tmp_path, "config.json", json.dumps(config))
    assert problems == []
    assert run is not None
    assert [run.settings[name] for name in ("risk_level", "data_mode", "precision")] == ["ALL", "backward", "low"]
    assert run.versions == {}


def test_another_programs_configuration_tells_nothing(tmp_path: Path) -> None:
    assert read(tmp_path, "config.json", json.dumps({"hidden_size": 64})) == (None, [])


texts = st.text("ab.\0\ud800é", max_size=6)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    told=st.dictionaries(
        st.sampled_from([*TOLD, "counts"]), values | st.dictionaries(texts, values, max_size=4), max_size=5
    )
)
def test_whatever_a_file_holds_is_read_without_an_error_and_survives_being_stored(
    tmp_path_factory: pytest.TempPathFactory, told: dict[str, Any]
) -> None:
    folder = tmp_path_factory.mktemp("run")
    (folder / "run.json").write_text(json.dumps(told))
    run, problems = read_run(str(folder), str(folder), "")
    assert run is not None or problems
    if run is not None:
        assert Run.from_json(json.loads(json.dumps(asdict(run)))) == run
