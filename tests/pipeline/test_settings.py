"""Runs that were set up differently: said beside the answer, never an origin."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.cli.commands.info import info
from dumpscope.readers import discover, read_rank
from pipeline.comparing import compare
from pipeline.written_runs import Recording, random


def told(source: Path, made: Path, **changes: Any) -> Path:
    """A copy of a dump with a run.json in each rank."""
    shutil.copytree(source, made)
    run = {
        "versions": {"torch": "2.5.1"},
        "devices": ["cpu x8"],
        "seeds": {"seed": 1},
        "numerics": {"default_dtype": "float32"},
    }
    for ref in discover(made).ranks:
        (Path(ref.folder) / "run.json").write_text(json.dumps({**run, **changes}))
    return made


def test_settings_that_differ_are_told_and_are_no_origin(dumps: Path, tmp_path: Path) -> None:
    golden = told(dumps / "stat_golden", tmp_path / "golden")
    target = told(
        dumps / "stat_golden", tmp_path / "target",
        versions={"torch": "2.4.0"}, seeds={"seed": 2}, numerics={"default_dtype": "float64"}, settings={"precision": "high"},
    )  # fmt: skip
    answer, _ = compare(target, golden)
    assert [one["id"] for one in answer.settings_said] == [
        "setting.versions", "setting.seed", "setting.numerics", "setting.precision",
    ]  # fmt: skip
    assert answer.origins == []
    assert answer.first_no is None
    assert answer.counts.no == 0


def test_runs_set_up_alike_have_no_word_on_it_and_the_origin_stays(dumps: Path, tmp_path: Path) -> None:
    golden = told(dumps / "stat_golden", tmp_path / "golden")
    target = told(dumps / "stat_fault", tmp_path / "target")
    plain, _ = compare(dumps / "stat_fault", dumps / "stat_golden")
    answer, _ = compare(target, golden)
    assert answer.settings == []
    assert [origin.node for origin in answer.origins] == [origin.node for origin in plain.origins] != []


RUN: dict[str, Any] = {"versions": {"torch": "2.5.1", "python": "3.11"}, "devices": ["cpu x8"], "seeds": {"seed": 1}}


@pytest.mark.parametrize(
    ("call", "changes", "confidence", "word"),
    [
        (0, {}, 0.85, ""),
        (0, {"versions": {"torch": "2.5.1", "python": "3.9"}, "seeds": {"seed": 2}}, 0.85, ""),
        (2, {"versions": {"torch": "2.4.0", "python": "3.11"}}, 0.34, "other versions, devices or switches"),
        (2, {"devices": ["npu x8"]}, 0.34, "other versions, devices or switches"),
        (0, None, 0.59, "no other call of its kind gave the same bits"),
        (2, None, 0.85, ""),
    ],
    ids=["the same", "another seed", "another torch", "another device", "nothing known", "its kind was equal"],
)
def test_differing_hashes_prove_as_much_as_equal_bits_were_due(
    tmp_path: Path, call: int, changes: dict[str, Any] | None, confidence: float, word: str
) -> None:
    def written(name: str, ulp: bool, more: dict[str, Any]) -> Path:
        run = Recording(tmp_path / name, hashes=True)
        for number in range(3):
            y = np.tanh(x := random(number, 16, 32))
            if ulp and number == call:
                y[3, 4] = np.nextafter(y[3, 4], np.float32(2))
            run.call(f"Functional.tanh.{number}.forward", [x], [y])
        if changes is not None:
            (run.folder / "run.json").write_text(json.dumps({**RUN, **more}))
        return run.done()

    (origin,) = compare(written("t", True, changes or {}), written("g", False, {}))[0].origins
    assert (origin.node, origin.confidence) == (f"Functional.tanh.{call}.forward", confidence)
    assert word in origin.evidence
    assert ("Only hashes are stored" in origin.evidence) == bool(word)


def test_a_damaged_run_json_costs_nothing_but_itself(dumps: Path, tmp_path: Path) -> None:
    golden = told(dumps / "stat_golden", tmp_path / "golden")
    for ref in discover(golden).ranks:
        (Path(ref.folder) / "run.json").write_text("{ torn")
        dump = read_rank(ref)
        assert dump.header.run is None
        assert [problem.kind for problem in dump.problems] == ["settings"]
    answer, _ = compare(golden, dumps / "stat_golden")
    assert answer.settings == []
    assert answer.counts.no == 0


def test_a_dump_of_one_direction_only_is_said_to_be_so(dumps: Path) -> None:
    answer, _ = compare(dumps / "cfg_data_mode_bwd", dumps / "cfg_risk_core")
    assert any("holds no forward calls" in sentence for sentence in answer.settings), answer.settings


def test_what_a_capture_notes_is_said_in_comparisons_and_by_info(
    dumps: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    notes = {"compiled": ["Module.0.Block", "script.loss"], "traced": ["torch.jit.trace"], "of a later version": ["x"]}
    golden = told(dumps / "stat_golden", tmp_path / "golden")
    target = told(dumps / "stat_golden", tmp_path / "target", compiled="eager", notes=notes)
    answer, _ = compare(target, golden)
    assert [one["id"] for one in answer.settings_said] == ["setting.note.compiled", "setting.note.traced"]
    assert "In the target torch.compile was off" in answer.settings[0]
    assert "Module.0.Block, script.loss ran as eager code" in answer.settings[0]
    assert answer.counts.no == 0
    info(target)
    assert (
        "In the dump torch.compile was off while data was recorded: Module.0.Block, script.loss"
        in capsys.readouterr().out
    )
