"""Each rule says Yes or No where its documentation says so, at the edges too."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.context import Context
from dumpscope.domain.facts import TENSOR_METRICS, VERDICT_WORDS, Facts, Outcome
from dumpscope.domain.records import Kind, Role, State
from dumpscope.errors import LimitError, UsageError
from dumpscope.metrics import compare_statistics
from dumpscope.verdict.judge import judge
from dumpscope.verdict.policy import FLOORS, Policy, load_policy
from dumpscope.verdict.rules import VERDICT_RULES
from dumpscope.verdict.score import factors
from dumpscope.verdict.sentences import sentence

Stats = tuple[float | None, float | None, float | None, float | None]


def stats(values: Stats) -> tuple[Any, Any]:
    numbers = np.array([[math.nan if v is None else v for v in values]])
    states = []
    for value in values:
        if value is None:
            states.append(State.ABSENT)
        elif math.isnan(value):
            states.append(State.NAN)
        elif math.isinf(value):
            states.append(State.POS_INF if value > 0 else State.NEG_INF)
        else:
            states.append(State.FINITE)
    return numbers, np.array([states], np.uint8)


def one(
    target: Stats, golden: Stats, *, dtypes: tuple[str, str] = ("torch.float32", "torch.float32"), elements: int = 100
) -> tuple[Context, Facts]:
    """An item pair with these statistics and no tensors."""
    t, t_state = stats(target)
    g, g_state = stats(golden)
    diff, diff_state, rel, rel_state = compare_statistics(t, t_state, g, g_state)
    codes = list(dict.fromkeys(dtypes))
    same = bool(((t_state == g_state) & ((t == g) | (t_state != State.FINITE))).all())
    context = Context(
        pair=np.zeros(1, np.int32), target=np.zeros(1, np.int32), golden=np.zeros(1, np.int32), both=np.ones(1, bool),
        role=np.array([Role.OUTPUT], np.int8), kind=np.array([Kind.TENSOR], np.int8), kind_differs=np.zeros(1, bool),
        dtypes=codes, t_dtype=np.array([codes.index(dtypes[0])]), g_dtype=np.array([codes.index(dtypes[1])]),
        shape_differs=np.zeros(1, bool), reshaped=np.zeros(1, bool), moved=np.zeros(1, bool), other_shape=np.zeros(1, bool),
        requires_grad_differs=np.zeros(1, bool),
        elements=np.array([elements]),
        t_stats=t, t_state=t_state, g_stats=g, g_state=g_state, apis=["softmax"], api=np.zeros(1, np.int64), nodes=1,
        end=1,
        unread=np.zeros(1, bool),
        unrecorded=np.zeros(1, bool),
        same_hash=np.zeros(1, bool),
    )  # fmt: skip
    facts = Facts(
        outcome=np.array([Outcome.COMPARED], np.int8), equal=np.array([same], np.int8),
        dtype_differs=np.array([dtypes[0] != dtypes[1]], np.int8), diff=diff, diff_state=diff_state, rel=rel,
        rel_state=rel_state, tensor=np.full((1, len(TENSOR_METRICS)), math.nan),
        tensor_state=np.zeros((1, len(TENSOR_METRICS)), np.uint8), elements=np.array([elements]),
        unequal=np.array([-1]), nonfinite_target=np.array([-1]), nonfinite_golden=np.array([-1]),
        nonfinite_disagree=np.array([-1]),
    )  # fmt: skip
    return context, facts


def with_tensor(context: Context, facts: Facts, *, disagree: int = 0, **metrics: float) -> tuple[Context, Facts]:
    tensor, state = facts.tensor.copy(), facts.tensor_state.copy()
    for name, value in metrics.items():
        tensor[0, TENSOR_METRICS.index(name)] = value
        state[0, TENSOR_METRICS.index(name)] = State.FINITE
    return context, replace(
        facts, tensor=tensor, tensor_state=state, unequal=np.array([1]), equal=np.array([0], np.int8),
        nonfinite_disagree=np.array([disagree]), nonfinite_target=np.array([disagree]), nonfinite_golden=np.array([0]),
    )  # fmt: skip


def say(context: Context, facts: Facts, policy: Policy | None = None, mode: str = "statistics") -> tuple[str, str, str]:
    """(verdict, rule, sentence)"""
    opinions = judge(context, facts, ["Functional.softmax.0.forward"], policy or Policy(), mode)
    return (
        VERDICT_WORDS[opinions.verdict[0]],
        VERDICT_RULES[opinions.rule[0]],
        sentence(context, facts, opinions, 0),
    )


BASE: Stats = (3.0, -3.0, 0.5, 10.0)


def test_equal_statistics_are_yes() -> None:
    assert say(*one(BASE, BASE))[:2] == ("yes", "E-1")


def test_a_difference_within_the_floor_is_yes_and_tells_its_numbers() -> None:
    verdict, rule, text = say(*one((3.0, -3.0, 0.5, 10.0005), BASE))
    assert (verdict, rule) == ("yes", "M-1")
    assert "10.0005 against 10" in text
    assert "times the floor" in text


def test_a_difference_above_the_floor_is_a_warning_then_no() -> None:
    assert say(*one((3.0, -3.0, 0.5, 10.002), BASE))[:2] == ("warning", "M-2")
    assert say(*one((3.0, -3.0, 0.5, 10.01), BASE))[:2] == ("no", "M-2")


def test_a_mean_near_zero_is_measured_against_the_size_of_the_elements() -> None:
    healthy = one((3.0, -3.0, 3.2e-9, 10.0), (3.0, -3.0, 1e-9, 10.0))
    assert say(*healthy)[:2] == ("yes", "M-1")
    assert say(*one((3.0, -3.0, 3e-3, 10.0), (3.0, -3.0, 1e-9, 10.0)))[0] == "no"


def test_zero_vectors_that_differ_by_rounding_agree() -> None:
    assert say(*one((1e-14, 0.0, 1e-15, 1e-14), (0.0, 0.0, 0.0, 0.0)))[0] == "yes"


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_new_non_finite_value_is_no(bad: float) -> None:
    assert say(*one((bad, -3.0, bad, bad), BASE))[:2] == ("no", "N-1")
    assert say(*one(BASE, (bad, -3.0, bad, bad)))[:2] == ("no", "N-1")
    assert f"Max {'NaN' if math.isnan(bad) else f'{bad:+}'} against" in say(*one((bad, -3.0, bad, bad), BASE))[2]


def test_the_same_mask_of_minus_infinity_on_both_sides_agrees() -> None:
    masked: Stats = (3.0, -math.inf, -math.inf, math.inf)
    assert say(*one(masked, masked))[0] == "yes"


def test_a_norm_that_overflowed_in_its_own_dtype_is_no_non_finite_value() -> None:
    dtypes = ("torch.float16", "torch.float16")
    assert say(*one((3.0, -3.0, 0.5, math.inf), BASE, dtypes=dtypes))[0] == "yes"


def test_plus_infinity_against_minus_infinity_is_no() -> None:
    assert say(*one((math.inf, 0.0, 0.0, 1.0), (-math.inf, 0.0, 0.0, 1.0)))[:2] == ("no", "N-1")


def test_integers_must_be_equal() -> None:
    dtypes = ("torch.int64", "torch.int64")
    assert say(*one((7, 0, None, None), (7, 0, None, None), dtypes=dtypes))[0] == "yes"
    assert say(*one((8, 0, None, None), (7, 0, None, None), dtypes=dtypes))[:2] == ("no", "I-1")


def test_two_dtypes_meet_at_the_coarser_floor_with_a_warning() -> None:
    dtypes = ("torch.bfloat16", "torch.float32")
    assert say(*one((3.01, -3.0, 0.5, 10.02), BASE, dtypes=dtypes))[:2] == ("warning", "D-1")
    assert say(*one((3.9, -3.0, 0.5, 12.0), BASE, dtypes=dtypes))[0] == "no"


def test_shape_comes_before_anything_else() -> None:
    context, facts = one(BASE, BASE)
    context = replace(context, shape_differs=np.ones(1, bool), other_shape=np.ones(1, bool))
    facts = replace(facts, outcome=np.array([Outcome.SHAPE], np.int8), equal=np.array([-1], np.int8))
    assert say(context, facts)[:2] == ("no", "S-1")
    assert say(context, facts, load_policy("ptdbg"), "tensor")[:2] == ("no", "S-1")
    assert say(context, facts, load_policy("msprobe"))[:2] == ("no", "Q-1")


@pytest.mark.parametrize(
    ("cosine", "largest", "word"),
    [
        (0.99, 0.002, "yes"),
        (math.nextafter(0.99, 0), 0.001, "yes"),
        (math.nextafter(0.99, 0), math.nextafter(0.001, 1), "no"),
        (0.9, 0.0005, "yes"),
        (math.nextafter(0.9, 0), 0.0005, "no"),
        (1.0, 1.0, "yes"),
        (1.0, math.nextafter(1.0, 2), "no"),
    ],
)
def test_the_guides_thresholds_are_strict(cosine: float, largest: float, word: str) -> None:
    pair = with_tensor(*one(BASE, BASE), cosine=cosine, max_abs=largest)
    assert say(*pair, load_policy("ptdbg"), "tensor")[0] == word


def test_the_guide_gives_no_label_without_a_cosine() -> None:
    pair = with_tensor(*one(BASE, BASE), max_abs=0.5)
    verdict, rule, text = say(*pair, load_policy("ptdbg"), "tensor")
    assert (verdict, rule) == ("n/a", "P-4")
    assert "largest error 0.5" in text


def test_statistics_under_the_guide_warn_above_one_half() -> None:
    policy = load_policy("ptdbg")
    assert say(*one((3.0, -3.0, 0.5, 20.0), BASE), policy)[:2] == ("yes", "P-2")
    assert say(*one((3.0, -3.0, 0.5, 20.5), BASE), policy)[:2] == ("warning", "P-3")


def test_one_outlier_in_a_large_tensor_is_no_though_the_norm_hides_it() -> None:
    pair = with_tensor(*one(BASE, BASE, elements=10**6), cosine=1.0, max_abs=0.05, euclidean=0.05, rel_l2=5e-6)
    assert say(*pair, mode="tensor")[:2] == ("no", "T-2")


def test_differing_non_finite_positions_are_no_whatever_the_numbers() -> None:
    pair = with_tensor(*one(BASE, BASE), disagree=2, cosine=1.0, max_abs=0.0, euclidean=0.0, rel_l2=0.0)
    verdict, rule, text = say(*pair, mode="tensor")
    assert (verdict, rule) == ("no", "N-1")
    assert "disagrees at 2 of the positions" in text


def test_hashes_decide_alone_where_nothing_else_is_stored() -> None:
    nothing: Stats = (None, None, None, None)
    context, facts = one(nothing, nothing)
    facts = replace(facts, equal=np.array([0], np.int8))
    assert say(context, facts, mode="md5")[:2] == ("no", "H-1")


def test_uninitialised_memory_is_never_judged() -> None:
    context, facts = one((9.0, -3.0, 0.5, 10.0), BASE)
    context = replace(context, apis=["empty_like"])
    assert say(context, facts)[:2] == ("n/a", "X-5")


def test_a_policy_file_widens_ignores_and_renames_floors() -> None:
    pair = one((3.0, -3.0, 0.5, 10.01), BASE)
    assert say(*pair, load_policy("floors: {float32: {bulk: 0.01}}"))[0] == "yes"
    assert say(*pair, load_policy("scale: {'softmax': 100}"))[0] == "yes"
    assert say(*pair, load_policy("scale: {'linear': 100}"))[0] == "no"
    assert say(*pair, load_policy("ignore: ['softmax']"))[:2] == ("n/a", "X-5")
    assert say(*pair, load_policy("warn: 1000"))[0] == "warning"


@pytest.mark.parametrize("written", ["1e-3", "1E-3", "1.e-3", "1.0e-3", "0.001"])
def test_a_number_may_be_written_as_yaml_would_take_for_text(written: str) -> None:
    policy = load_policy(f"floors: {{float32: {{bulk: {written}}}}}\nscale: {{linear: {written}}}\n")
    assert policy.floors["torch.float32"].bulk == 1e-3
    assert policy.scale == (("linear", 1e-3),)


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a|a?)+b$", "(.*a){25}$", "((a*)*)*b$", "a{1000}a{1000}$"])
def test_no_pattern_of_a_policy_runs_for_long(pattern: str) -> None:
    """Backtracking needs more steps for these than there are atoms; the suite's timeout would end it."""
    policy = load_policy(f"ignore: ['{pattern}']\nscale: {{'{pattern}': 2}}")
    assert factors(["a" * 3000 + "!", "a\udcff"], policy).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("strict", "unknown policy 'strict'"),
        ("floor: {}", "unknown key 'floor'"),
        ("base: loose", "base is 'loose'"),
        ("floors: {float32: {bulk: -1}}", "floors.float32.bulk"),
        ("floors: {float32: 3}", "floors.float32"),
        ("warn: yes", "warn is True"),
        ("ignore: ['[']", "ignore holds '[', which cannot be used as a regular expression"),
        ("scale: {'(a)\\1': 2}", "scale holds"),
        ('ignore: ["\\ud800"]', "not valid yaml"),
        ("ignore: abc", "ignore is a str"),
        ("ignore: [3]", "ignore holds 3"),
        ("floors: 3", "floors is a int"),
        ("scale: [a]", "scale is a list"),
        ("base: {a: 1}", "base is a dict"),
        ("warn: [1]", "warn is a list"),
        ("warn: 2001-99-99", "not valid yaml"),
    ],
)
def test_a_wrong_policy_is_told_by_key_and_value(text: str, words: str) -> None:
    with pytest.raises(UsageError) as raised:
        load_policy(text)
    assert words in raised.value.detail
    assert raised.value.hint


@pytest.mark.parametrize("text", ["{a: " * 5000, "[" * 60 + "]" * 60, "a: 1\n" * 300_000])
def test_a_policy_that_would_take_long_is_refused(text: str) -> None:
    with pytest.raises(LimitError, match="yaml text has more than"):
        load_policy(text)


def test_floors_grow_with_coarser_dtypes() -> None:
    order = ["torch.float64", "torch.float32", "torch.float16", "torch.bfloat16", "torch.float8_e4m3fn"]
    assert all(FLOORS[a].bulk < FLOORS[b].bulk for a, b in pairwise(order))
