"""The operator is blamed only where substitution helps and no control does."""

from __future__ import annotations

import itertools

import pytest

from dumpscope_format.proof_runs import Outcome, Trial, controls, judge

TRIALS = controls("Functional.group_norm.3", neighbours=["Functional.silu.3"], scalars={"eps": 1e-3})
KINDS = [trial.kind for trial in TRIALS]


def _outcomes(healed: set[str], without: set[str] = frozenset(), touched: int = 1) -> list[Outcome]:
    return [
        Outcome(trial=trial, healed=trial.kind in healed, touched=0 if trial.kind == "baseline" else touched)
        for trial in TRIALS
        if trial.kind not in without
    ]


def test_the_controls_are_those_of_the_field_note() -> None:
    assert set(KINDS) == {"baseline", "substitute", "neighbour", "roundtrip", "contiguous", "format", "scalar"}
    by_kind = {trial.kind: trial.interventions for trial in TRIALS}
    assert by_kind["substitute"] == {"Functional.group_norm.3": "cpu"}
    assert by_kind["neighbour"] == {"Functional.silu.3": "cpu"}
    assert by_kind["scalar"] == {"Functional.group_norm.3": {"eps": 1e-3}}
    assert not by_kind["baseline"]


def test_the_operator_is_to_blame_where_only_substitution_helps() -> None:
    judgement = judge(_outcomes({"substitute"}))
    assert (judgement.word, judgement.blamed) == ("confirmed", True)


@pytest.mark.parametrize("control", ["neighbour", "roundtrip", "contiguous", "format", "scalar"])
def test_a_control_that_helps_as_well_clears_the_operator(control: str) -> None:
    judgement = judge(_outcomes({"substitute", control}))
    assert judgement.word == "confounded"
    assert judgement.helped == tuple(kind for kind in KINDS if kind in ("substitute", control))


@pytest.mark.parametrize("missing", ["neighbour", "roundtrip", "contiguous", "substitute", "baseline"])
def test_nothing_is_proven_while_a_run_is_missing(missing: str) -> None:
    judgement = judge(_outcomes({"substitute"}, without={missing}))
    assert judgement.word == "unproven"
    assert missing in judgement.reason


def test_runs_that_touched_no_call_count_as_not_made() -> None:
    assert judge(_outcomes({"substitute"}, touched=0)).word == "unproven"


def test_inputs_that_lay_contiguous_without_it_rule_the_layout_out() -> None:
    others = _outcomes({"substitute"}, without={"contiguous", "roundtrip"})
    by_kind = {trial.kind: trial for trial in TRIALS}
    layout, copy = (Outcome(trial=by_kind[kind], healed=False, already=4) for kind in ("contiguous", "roundtrip"))
    made = Outcome(trial=by_kind["roundtrip"], healed=False, touched=4)
    assert judge([*others, layout, made]).word == "confirmed"
    assert judge([*others, layout, copy]).word == "unproven"


def test_a_run_that_could_not_be_judged_counts_as_not_made() -> None:
    trial = Trial(kind="roundtrip", interventions={}, about="")
    outcomes = [*_outcomes({"substitute"}, without={"roundtrip"}), Outcome(trial=trial, healed=None, touched=1)]
    assert judge(outcomes).word == "unproven"


def test_no_set_of_outcomes_blames_the_operator_but_the_one_that_proves_it() -> None:
    for count in range(len(KINDS) + 1):
        for healed in itertools.combinations(sorted(set(KINDS)), count):
            assert judge(_outcomes(set(healed))).blamed == (set(healed) == {"substitute"})


def test_a_fault_that_does_not_show_and_one_that_stays_are_told_apart() -> None:
    assert judge(_outcomes({"baseline", "substitute"})).word == "not reproduced"
    assert judge(_outcomes(set())).word == "refuted"
    assert judge(_outcomes({"roundtrip"})).word == "refuted"
