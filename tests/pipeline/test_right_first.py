"""The cause comes first: differences below rounding, masks that only their counts tell apart, tables of another dtype..."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dumpscope.domain.facts import Origin, Verdict
from dumpscope.domain.result import Answer
from dumpscope.export.stack_frames import describe_call, locate_call
from dumpscope.verdict.rules import CODES
from pipeline.comparing import compare
from pipeline.written_runs import Array, Recording, Typed, random

CAUSAL = np.triu(np.full((11, 11), -np.inf, np.float32), 1)


def erf_gelu(x: Array, by: float = 1.0) -> Array:
    made: Array = (0.5 * x * (1 + np.tanh(0.797885 * (x + 0.044715 * x**3))) * by).astype(np.float32)
    return made


def begin(run: Recording, calls: int = 4) -> Array:
    """Equal linear calls on both sides, so that the pair is known to be bit-equal; returns what the last one made."""
    x = random(0, 16, 32)
    for call in range(calls):
        weight = random(100 + call, 32, 32)
        y = (x @ weight / 6).astype(np.float32)
        run.call(f"Functional.linear.{call}.forward", [x, weight], [y])
        x = y
    return x


def ask(target: Path, golden: Path) -> Answer:
    return compare(target, golden)[0]


def only(target: Path, golden: Path) -> Origin:
    (origin,) = ask(target, golden).origins
    return origin


@pytest.mark.parametrize("later", ["gelu", "mul"])
def test_a_fault_of_five_per_cent_stands_before_a_last_digit_just_before_it(tmp_path: Path, later: str) -> None:
    def run(name: str, by: float, digit: float) -> Path:
        run = Recording(tmp_path / name)
        x = begin(run)
        seen = run.record(x)
        seen["Norm"] *= 1 + digit
        weight = random(7, 32, 32)
        run.call("Functional.linear.4.forward", [begun := random(8, 16, 32), weight], [seen])
        assert begun is not None
        call = f"Functional.{later}.0.forward" if later == "gelu" else f"Tensor.{later}.0.forward"
        run.call(call, [seen, *([2.0] if later == "mul" else [])], [y := erf_gelu(x, by)])
        run.call("Functional.linear.5.forward", [y, weight], [(y @ weight).astype(np.float32)])
        return run.done()

    origin = only(run("target", 1.05, 6e-9), run("golden", 1.0, 0.0))
    assert (origin.node.split(".")[1], origin.kind) == (later, "computation")


def masked(folder: Path, mask: Array, **kept: Any) -> Path:
    """Attention scores, a mask that no recorded call made, added and normalised."""
    run = Recording(folder, **kept)
    scores = (begin(run)[:11, :11]).astype(np.float32)
    added = scores + mask
    weights = np.exp(added - added.max(axis=1, keepdims=True))
    run.call("Tensor.__add__.0.forward", [scores, mask], [added])
    run.call(
        "Functional.softmax.0.forward", [added], [(weights / weights.sum(axis=1, keepdims=True)).astype(np.float32)]
    )
    return run.done()


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize("swapped", [False, True])
def test_a_wrong_mask_is_the_mask_s_fault_and_not_the_softmax_s(tmp_path: Path, tensors: bool, swapped: bool) -> None:
    wrong = np.triu(np.full((11, 11), -np.inf, np.float32), 0)
    wrong[:, 0] = 0
    sides = [masked(tmp_path / name, mask, tensors=tensors) for name, mask in (("t", wrong), ("g", CAUSAL))]
    origin = only(*(sides[::-1] if swapped else sides))
    assert (origin.node, origin.kind) == ("Tensor.__add__.0.forward", "input")
    if not tensors:
        assert "input.1: " in origin.evidence
        assert "-inf in " in origin.evidence


def test_a_mask_of_truth_values_is_told_apart_by_how_many_are_false(tmp_path: Path) -> None:
    def run(name: str, mask: Array) -> Path:
        run = Recording(tmp_path / name)
        scores = begin(run)[:11, :11]
        filled = np.where(mask, np.float32(-1e9), scores).astype(np.float32)
        seen = run.record(filled) | {"Norm": 1.0, "Mean": 0.5}
        run.call("Tensor.masked_fill.0.forward", [scores, mask, -1e9], [seen])
        spread = np.exp(filled - filled.max(axis=1, keepdims=True))
        run.call(
            "Functional.softmax.0.forward", [seen], [(spread / spread.sum(axis=1, keepdims=True)).astype(np.float32)]
        )
        return run.done()

    causal = np.isinf(CAUSAL)
    wrong = causal.copy()
    wrong[5, 6] = False
    origin = only(run("t", wrong), run("g", causal))
    assert (origin.node, origin.kind) == ("Tensor.masked_fill.0.forward", "input")
    assert "input.1: 0 in 67 elements against 66" in origin.evidence


def test_dumps_that_count_nothing_are_compared_by_their_statistics(tmp_path: Path) -> None:
    """msprobe's dumps have no counts; none beside ours says nothing."""
    sides = masked(tmp_path / "t", CAUSAL, counts=False), masked(tmp_path / "g", CAUSAL)
    assert ask(*sides).origins == []
    assert ask(*sides).counts.no == 0


def test_a_result_that_lost_infinities_did_not_overflow(tmp_path: Path) -> None:
    """The sentence follows what the target holds, not only that something is not finite."""

    def run(name: str, bad: bool) -> Path:
        run = Recording(tmp_path / name)
        x = begin(run)
        made = np.log(np.abs(x) + 1).astype(np.float32)
        if bad:
            made[0, 0] = np.nan
        run.call("Torch.log.0.forward", [x], [made])
        return run.done()

    sides = run("t", False), run("g", True)
    assert "the golden's output holds NaN or infinity that the target's does not" in only(*sides).evidence
    assert "holds NaN or infinity that the golden" in only(*sides[::-1]).evidence


ROUTER = np.array([[0.1, 0.4, 0.3, 0.2], [0.25, 0.25, 0.3, 0.2], [0.2491, 0.2400, 0.2578, 0.2531]], np.float32)


def routed(folder: Path, indices: list[list[int]], *, reaching: float = 1.0, least: float = 0.1, **kept: Any) -> Path:
    """Two experts are picked for each row of ROUTER, with the values that belong there, and what follows. least: its smallest"""
    run = Recording(folder, **kept)
    begin(run)
    router = np.where(ROUTER.min() == ROUTER, np.float32(least), ROUTER)
    values = -np.sort(-router, axis=1)[:, :2]
    run.call("Torch.topk.0.forward", [router, 2], [values, np.array(indices)], given={"dim": -1})
    x, weight = random(3, 3, 32), random(4, 32, 32)
    run.call("Functional.linear.9.forward", [x, weight], [(x @ weight * reaching).astype(np.float32)])
    return run.done()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ([[1, 2], [2, 0], [3, 3]], "index 3 at [2, 1] stands twice in its row"),
        ([[1, 2], [2, 0], [2, 0]], "index 0 at [2, 1] points to 0.2491, where 0.2531 belongs"),
        ([[1, 2], [2, 0], [2, 4]], "index 4 at [2, 1] is outside of its row"),
        ([[2, 1], [2, 0], [2, 3]], "index 2 at [0, 0] points to 0.3, and the value put out with it is 0.4"),
    ],
)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_pick_that_the_values_disprove_is_a_wrong_kernel(
    tmp_path: Path, wrong: list[list[int]], said: str, swapped: bool
) -> None:
    right = [[1, 2], [2, 0], [2, 3]]
    sides = [routed(tmp_path / name, some, tensors=True) for name, some in (("t", wrong), ("g", right))]
    origin = only(*(sides[::-1] if swapped else sides))
    assert (origin.node, origin.kind) == ("Torch.topk.0.forward", "computation")
    assert f"In the {'golden' if swapped else 'target'}, {said}" in origin.evidence


def test_equal_elements_in_another_order_are_ties(tmp_path: Path) -> None:
    right, other = [[1, 2], [2, 0], [2, 3]], [[1, 2], [2, 1], [2, 3]]
    sides = (routed(tmp_path / "t", other, tensors=True, reaching=1.5), routed(tmp_path / "g", right, tensors=True))
    first = ask(*sides).origins[0]
    assert (first.node, first.kind) == ("Torch.topk.0.forward", "configuration")
    assert "they point to the right values" in first.evidence


def chosen(folder: Path, indices: list[list[int]], *, tensors: bool, bad: bool = False) -> Path:
    """Experts are picked, and each is counted, which no value shows. bad: a count of its own is wrong"""
    run = Recording(folder, tensors=tensors)
    begin(run)
    picked = np.array(indices)
    run.call("Torch.topk.0.forward", [ROUTER, 2], [-np.sort(-ROUTER, axis=1)[:, :2], picked], given={"dim": -1})
    hot = np.eye(4, dtype=np.int64)[picked]
    run.call("Functional.one_hot.0.forward", [picked], [hot], given={"num_classes": 4})
    run.call("Tensor.sum.0.forward", [hot], [hot.sum((0, 1))])
    far = np.arange(16) // 4
    run.call("Tensor.__floordiv__.0.forward", [np.arange(16), 4], [far + bad])
    return run.done()


@pytest.mark.parametrize("other", [[[1, 2], [2, 1], [2, 3]], [[2, 1], [2, 0], [2, 3]]])
def test_a_tie_that_the_tensors_show_and_no_value_follows_from_is_no_divergence(
    tmp_path: Path, other: list[list[int]]
) -> None:
    """Another one of equal elements, and what is counted of it: a warning at each of them."""
    right, tied = [[1, 2], [2, 0], [2, 3]], other == [[1, 2], [2, 1], [2, 3]]
    answer, (unit,) = compare(chosen(tmp_path / "t", other, tensors=True), chosen(tmp_path / "g", right, tensors=True))
    assert answer.outcome == ("agrees" if tied else "diverged")
    verdicts = set(unit.item_opinions.verdict[unit.item_opinions.rule == CODES["C-3"]].tolist())
    assert verdicts == ({Verdict.WARNING} if tied else set())
    assert bool(answer.origins) == (not tied), "indices that the values disprove are a wrong pick"


def test_integers_that_do_not_follow_from_a_tie_stay_no(tmp_path: Path) -> None:
    right, other = [[1, 2], [2, 0], [2, 3]], [[1, 2], [2, 1], [2, 3]]
    sides = chosen(tmp_path / "t", other, tensors=True, bad=True), chosen(tmp_path / "g", right, tensors=True)
    answer, _ = compare(*sides)
    assert answer.first_no is not None
    assert answer.first_no.node == "Tensor.__floordiv__.0.forward"
    unseen, _ = compare(chosen(tmp_path / "a", other, tensors=False), chosen(tmp_path / "b", right, tensors=False))
    assert unseen.outcome == "diverged", "statistics do not show that the pick was right"


def test_without_tensors_nobody_claims_that_a_pick_was_right(tmp_path: Path) -> None:
    """Zeros may be equal at the border of what is picked."""
    sides = (
        routed(tmp_path / "t", [[1, 2], [2, 0], [3, 3]], reaching=1.5, least=0.0),
        routed(tmp_path / "g", [[1, 2], [2, 0], [2, 3]], least=0.0),
    )
    first = ask(*sides).origins[0]
    assert (first.node, first.kind) == ("Torch.topk.0.forward", "configuration")
    assert "or wrong ones were picked" in first.evidence
    assert '"list": ["Torch.topk.0"]' in first.advice


def test_another_pick_from_equal_data_is_most_likely_wrong_and_says_what_else_it_may_be(tmp_path: Path) -> None:
    right = [[1, 2], [2, 0], [2, 3]]
    sides = (
        routed(tmp_path / "t", [[1, 2], [2, 0], [3, 3]], reaching=1.5),
        routed(tmp_path / "g", right),
    )
    first = ask(*sides).origins[0]
    assert (first.node, first.kind) == ("Torch.topk.0.forward", "computation")
    assert "unless two elements at the border of what is picked are exactly equal" in first.evidence
    assert first.confidence < 0.6
    assert '"list": ["Torch.topk.0"]' in first.advice
    assert ask(routed(tmp_path / "u", [[1, 2], [2, 0], [3, 3]]), sides[1]).origins == [], "no value follows from it"


@pytest.mark.parametrize("tensors", [False, True])
def test_the_lesser_of_two_integers_is_no_index(tmp_path: Path, tensors: bool) -> None:
    """Buckets of relative positions: torch.min of two tensors picks nothing that could be a tie."""

    def run(name: str, bad: bool) -> Path:
        run = Recording(tmp_path / name, tensors=tensors)
        x = begin(run)
        far, most = np.arange(16) * 2, np.full(16, 15)
        bucket = np.minimum(far, most)
        if bad:
            bucket[12] -= 3
        run.call("Torch.min.0.forward", [far, most], [bucket])
        bias = random(4, 16)[bucket][:, None]
        run.call("Tensor.__add__.0.forward", [x, bias], [(x + bias).astype(np.float32)])
        return run.done()

    origin = only(run("t", True), run("g", False))
    assert (origin.node, origin.kind) == ("Torch.min.0.forward", "computation")


def test_a_sort_whose_indices_are_no_permutation_is_wrong_also_by_statistics(tmp_path: Path) -> None:
    def run(name: str, order: list[int]) -> Path:
        run = Recording(tmp_path / name)
        begin(run)
        x = random(9, 8)
        run.call("Torch.sort.0.forward", [x], [np.sort(x), np.array(order)])
        return run.done()

    right = np.argsort(random(9, 8)).tolist()
    wrong = [right[0], right[0], *right[2:]]
    origin = only(run("t", wrong), run("g", right))
    assert (origin.node, origin.kind) == ("Torch.sort.0.forward", "computation")
    assert "stands twice" in origin.evidence


def halved(array: Array) -> Array:
    """Rounded to the 8 bits of a bfloat16."""
    bits = array.astype(np.float32).view(np.uint32)
    kept: Array = ((bits + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)
    return kept


@pytest.mark.parametrize("tensors", [False, True])
@pytest.mark.parametrize(("off", "named"), [(3e-5, True), (5e-4, True), (1e-7, False)])
def test_a_call_in_32_bits_of_a_16_bit_run_is_judged_as_such(
    tmp_path: Path, tensors: bool, off: float, named: bool
) -> None:
    """A loss in float32, of equal float32 logits, that only a rounding to 16 bits inside of it can make so wrong."""

    def run(name: str, by: float) -> Path:
        run = Recording(tmp_path / name, tensors=tensors)
        x = halved(random(0, 16, 32))
        for call in range(4):
            weight = halved(random(100 + call, 32, 32))
            y = halved((x @ weight / 6).astype(np.float32))
            run.call(f"Functional.linear.{call}.forward", [Typed(x, "torch.bfloat16"), Typed(weight, "torch.bfloat16")],
                     [Typed(y, "torch.bfloat16")])  # fmt: skip
            x = y
        made = np.array(np.square(x).mean() * (1 + by), np.float32)
        run.call("Functional.cross_entropy.0.forward", [x, np.arange(16)], [made])
        return run.done()

    answer = ask(run("t", off), run("g", 0.0))
    assert [(one.node, one.kind) for one in answer.origins] == (
        [("Functional.cross_entropy.0.forward", "computation")] if named else []
    )


@pytest.mark.parametrize("kept", [("outer", "cat", "cos"), ("cat", "cos"), ("outer", "cos"), ("cos",)])
@pytest.mark.parametrize("swapped", [False, True])
def test_tables_of_another_dtype_are_named_where_the_dtype_first_differs(
    tmp_path: Path, kept: tuple[str, ...], swapped: bool
) -> None:
    """Rotary tables whose frequencies were cast on one side: cos is right on both, and the angles agree within rounding."""

    def run(name: str, half: bool) -> Path:
        run = Recording(tmp_path / name, tensors=True)
        x = begin(run, 12)

        def seen(array: Array) -> Array | Typed:
            return Typed(halved(array), "torch.bfloat16") if half else array

        inverse = (1 / 10000 ** (np.arange(16) / 16)).astype(np.float32)
        time = np.arange(512).astype(np.float32)
        inverse, time = (halved(one) if half else one for one in (inverse, time))
        angle = np.outer(time, inverse).astype(np.float32)
        angle = halved(angle) if half else angle
        both = np.concatenate([angle, angle], 1)
        calls = {
            "outer": ("Torch.outer.0.forward", [seen(time), seen(inverse)], [seen(angle)]),
            "cat": ("Torch.cat.0.forward", [seen(angle), seen(angle)], [seen(both)]),
            "cos": ("Tensor.cos.0.forward", [seen(both)], [table := seen(np.cos(both))]),
        }
        for word in kept:
            run.call(*calls[word])
        y = (x @ random(55, 32, 32)).astype(np.float32)
        run.call("Functional.linear.9.forward", [x, random(55, 32, 32)], [y])
        run.call("Tensor.__mul__.0.forward", [y, table], [(y * np.cos(both)[:16]).astype(np.float32)])
        return run.done()

    sides = run("t", True), run("g", False)
    first = ask(*(sides[::-1] if swapped else sides)).origins[0]
    word = {"outer": "Torch.outer", "cat": "Torch.cat", "cos": "Tensor.cos"}[kept[0]]
    assert (first.node, first.kind) == (f"{word}.0.forward", "configuration")
    dtypes = ("torch.bfloat16", "torch.float32")[:: -1 if swapped else 1]
    assert "arrives as {} in the target and as {} in the golden".format(*dtypes) in first.evidence
    assert "kernel" in first.advice
    assert "cast" in first.advice


def test_a_module_is_not_blamed_for_another_dtype_of_a_call_in_it(tmp_path: Path) -> None:
    """The tables come out in float32 on both sides, so what is rounding inside the module is much behind it."""

    def run(name: str, half: bool) -> Path:
        run = Recording(tmp_path / name, level="mix")
        x = begin(run, 24)
        table = "Module.rope.Rotary.forward.0"

        def seen(array: Array) -> Array | Typed:
            return Typed(halved(array), "torch.bfloat16") if half else array

        angle = np.outer(np.arange(16), 1 / 10000 ** (np.arange(32) / 32)).astype(np.float32)
        given = halved(angle) if half else angle
        made = halved(np.cos(given).astype(np.float32)) if half else np.cos(given).astype(np.float32)
        run.call("Tensor.__mul__.0.forward", [np.arange(16).astype(np.float32)], [seen(angle)], within=table)
        run.call("Tensor.cos.0.forward", [seen(angle)], [seen(made)], within=table)
        run.call(table, [x], [made])
        run.call("Tensor.__mul__.1.forward", [x, made], [(x * made).astype(np.float32)])
        return run.done()

    origin = only(run("t", True), run("g", False))
    assert (origin.node, origin.kind) == ("Tensor.__mul__.0.forward", "configuration")
    assert "Module.rope.Rotary.forward.0" in origin.evidence


def normed(folder: Path, *, wrong: bool, written: bool) -> Path:
    """Three steps in training of a batch norm. wrong: its running variance is computed with n in place of n - 1"""
    mean, variance = np.zeros(8, np.float32), np.ones(8, np.float32)
    for step in range(3):
        run = Recording(folder, step=step)
        begin(run)
        x, weight = random(60 + step, 64, 8), random(5, 8)
        own_mean, own_variance = x.mean(axis=0), x.var(axis=0)
        y = ((x - own_mean) / np.sqrt(own_variance + 1e-5) * weight).astype(np.float32)
        taken = [x, mean, variance, weight]
        mean = (0.9 * mean + 0.1 * own_mean).astype(np.float32)
        variance = (0.9 * variance + 0.1 * own_variance * (1.0 if wrong else 64 / 63)).astype(np.float32)
        after = {"input.1": mean, "input.2": variance} if written else {}
        run.call("Functional.batch_norm.0.forward", taken, [y], written=after)
        run.done()
    return folder


def test_running_statistics_are_named_in_the_step_that_wrote_them(tmp_path: Path) -> None:
    sides = (normed(tmp_path / name, wrong=name == "t", written=True) for name in ("t", "g"))
    first, *more = ask(*sides).origins
    assert (first.step, first.node, first.kind) == (0, "Functional.batch_norm.0.forward", "computation")
    assert "written.input.2" in first.evidence
    assert more == []


def test_running_statistics_that_were_not_recorded_after_the_call_are_laid_to_the_norm_of_the_step_before(
    tmp_path: Path,
) -> None:
    """Their own norm writes them; no optimizer and nothing outside of the record does."""
    sides = (normed(tmp_path / name, wrong=name == "t", written=False) for name in ("t", "g"))
    first = ask(*sides).origins[0]
    assert (first.step, first.node, first.kind) == (1, "Functional.batch_norm.0.forward", "weight")
    assert "running statistics that this norm wrote in step 0" in first.evidence
    assert "outside" not in first.evidence


@pytest.mark.parametrize("level", ["equal before", "first of its kind"])
def test_a_call_that_is_not_reproducible_to_the_bit_is_named_by_hashes(tmp_path: Path, level: str) -> None:
    def run(name: str, ulp: bool) -> Path:
        run = Recording(tmp_path / name, level="L1")
        x = begin(run)

        def hashed(array: Array) -> dict[str, Any]:
            return run.record(array) | {"md5": f"{hash(array.tobytes()) & 0xFFFFFFFF:08x}"}

        for call in range(3):
            y = (x / np.abs(x).max(axis=1, keepdims=True)).astype(np.float32)
            if call == (2 if level == "equal before" else 0) and ulp:
                y[3, 4] = np.nextafter(y[3, 4], np.float32(2))
            run.call(f"Functional.layer_norm.{call}.forward", [hashed(x)], [hashed(y)])
            x = y * 3
        return run.done()

    answer = ask(run("t", True), run("g", False))
    if level == "equal before":
        (origin,) = answer.origins
        assert (origin.node, origin.kind) == ("Functional.layer_norm.2.forward", "computation")
        assert "not reproducible to the bit" in origin.evidence
    else:  # another device rounds in another way
        assert answer.origins == []


def test_a_call_of_a_library_s_model_is_placed_there_and_in_its_module(tmp_path: Path) -> None:
    torch = (
        "File /venv/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1773, in _wrapped_call_impl, \n f()"
    )
    library = (
        "File /venv/lib/python3.11/site-packages/transformers/llama.py, line 66, in forward, \n x * torch.rsqrt(v)"
    )
    script = "File /home/user/train.py, line 18, in main, \n loss = m(ids)"

    def run(name: str, by: float) -> Path:
        run = Recording(tmp_path / name, level="mix")
        x = begin(run)
        module = "Module.layers.0.norm.RMSNorm.forward.0"
        run.call(
            "Torch.rsqrt.0.forward", [x], [y := erf_gelu(x, by)], stack=[torch, library, torch, script], within=module
        )
        run.call(module, [x], [y])
        return run.done()

    origin = only(run("t", 1.05), run("g", 1.0))
    assert (origin.node, origin.module) == ("Torch.rsqrt.0.forward", "layers.0.norm.RMSNorm")
    assert describe_call(origin.stack) == (
        "/venv/lib/python3.11/site-packages/transformers/llama.py:66 in forward: x * torch.rsqrt(v) (from /home/user/train.py:18)"
    )
    assert locate_call(origin.stack).startswith(
        "/venv/lib/python3.11/site-packages/transformers/llama.py:66 in forward"
    )
    assert locate_call([torch, script]) == "/home/user/train.py:18 in main: loss = m(ids)"


def test_the_advice_needs_no_tensor_that_nobody_dumped(tmp_path: Path) -> None:
    def run(name: str, by: float, tensors: bool) -> Path:
        run = Recording(tmp_path / f"{name}{tensors}", tensors=tensors)
        x = begin(run)
        run.call("Functional.gelu.0.forward", [x], [erf_gelu(x, by)])
        return run.done()

    without, having = (only(run("t", 1.05, tensors), run("g", 1.0, tensors)) for tensors in (False, True))
    assert '"task": "tensor", "list": ["Functional.gelu.0.forward"]' in without.advice
    assert without.evidence.startswith("The statistics of the input are equal; the output differs.")
    assert having.advice.startswith("Run this operator alone")
    assert having.evidence.startswith("The input is equal; the output differs.")
