"""What two runs say of themselves, compared."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dumpscope.analysis.setting_differences import describe_notes, find_run_differences
from dumpscope.domain.run import Run
from dumpscope.texts import english

RUN = Run(
    versions={"python": "3.11", "torch": "2.5.1", "torch_npu": "2.5.1"},
    devices=["cpu x64", "npu: Ascend910B"],
    settings={"precision": "low", "risk_level": "FOCUS", "data_mode": "all", "scope": ""},
    numerics={"deterministic_algorithms": "true", "matmul_tf32": "false", "threads": "8"},
    seeds={"seed": "1234", "rm_dropout": "false"},
    environment={"HCCL_DETERMINISTIC": "True"},
)


def said(other: Run) -> str:
    return english(find_run_differences(other, RUN))


def test_two_runs_alike_have_nothing_to_say() -> None:
    assert find_run_differences(RUN, replace(RUN)) == []


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (replace(RUN, versions={"torch": "2.4.0", "numpy": "2"}), "Versions differ: torch 2.4.0 against 2.5.1."),
        (replace(RUN, devices=["cpu x8", "cuda: H100"]), "ran on cuda: H100, the golden on npu: Ascend910B."),
        (replace(RUN, devices=["cpu x8"]), "The target ran on cpu, the golden on npu"),
        (replace(RUN, seeds={"seed": "1", "rm_dropout": "true"}), "seed 1 against 1234, rm_dropout true against false"),
        (replace(RUN, numerics={"matmul_tf32": "true"}), "matmul_tf32 true against false. TF32"),
        (replace(RUN, environment={}), "HCCL_DETERMINISTIC not set against True"),
        (replace(RUN, settings={"precision": "high"}), "dump both with the same precision"),
        (replace(RUN, settings={"risk_level": "ALL"}), "target ALL, golden FOCUS"),
        (replace(RUN, settings={"data_mode": "forward"}), "dump both with the same data_mode"),
        (replace(RUN, settings={"scope": "a, b"}), "selected different calls: scope a, b against not set"),
    ],
)
def test_each_group_that_differs_is_one_sentence_with_advice(other: Run, words: str) -> None:
    assert words in said(other)
    assert len(find_run_differences(other, RUN)) == 1
    assert said(other).count(". ") >= 1


def test_what_a_capture_says_of_its_own_dump_is_said_for_each_side() -> None:
    eager = replace(RUN, notes={"compiled": "Module.1.GELU", "fast_path": "Module.0.TransformerEncoderLayer"})
    other = replace(RUN, notes={"compiled": "script.loss"})
    assert describe_notes({"target": RUN, "golden": None}) == []
    words = english(describe_notes({"target": eager, "golden": other}))
    assert "In the target torch.compile was off while data was recorded: Module.1.GELU ran as eager code." in words
    assert "In the golden torch.compile was off while data was recorded: script.loss ran as eager code." in words
    assert "In the target torch ran Module.0.TransformerEncoderLayer as one fused kernel" in words
    words = english(describe_notes({"target": eager, "golden": replace(eager)}))
    assert words.startswith("In the target and the golden torch.compile was off")
    assert words.count("Module.1.GELU") == 1


def test_what_only_processors_feel_is_not_said_of_accelerators_and_the_other_way_round() -> None:
    other = replace(RUN, numerics={"deterministic_algorithms": "false", "matmul_tf32": "true", "threads": "64"})
    assert "deterministic_algorithms false against true, matmul_tf32 true against false. " in said(other)
    on_cpu = [replace(one, devices=["cpu x64"]) for one in (other, RUN)]
    assert "deterministic_algorithms false against true, threads 64 against 8. " in english(
        find_run_differences(*on_cpu)
    )


def test_python_alone_explains_nothing() -> None:
    assert find_run_differences(replace(RUN, versions={**RUN.versions, "python": "3.12"}), RUN) == []


def test_a_side_that_tells_nothing_is_not_held_against_the_other() -> None:
    assert find_run_differences(None, RUN) == find_run_differences(RUN, None) == []
    older = replace(RUN, numerics={}, seeds={}, environment={})
    assert find_run_differences(older, RUN) == []
