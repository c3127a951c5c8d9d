"""The same call in other words: equal, or told as a difference of form, and never a cause."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import torch.nn.functional as F  # noqa: E402, N812
from pipeline.comparing import compare  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from dumpscope.domain.facts import Method  # noqa: E402
from healthy.recording import answer_of, recorded, verdicts  # noqa: E402

TASKS = ("statistics", "tensor")


def heads(dtype: Any = None) -> Any:
    return [torch.randn(2, 2, 6, 4, dtype=torch.float64).to(dtype or torch.float32) for _ in range(3)]


def four_heads() -> Any:
    return [torch.randn(2, 4, 6, 4) for _ in range(3)]


def kept() -> Any:
    return torch.ones(6, 6, dtype=torch.bool).tril()


def bare_attention() -> Any:
    return torch.relu(F.scaled_dot_product_attention(*heads()))


def explicit_attention() -> Any:
    made = F.scaled_dot_product_attention(
        *heads(), attn_mask=None, dropout_p=0.0, is_causal=False, scale=1 / math.sqrt(4), enable_gqa=False
    )
    return torch.relu(made)


def attention_by_name() -> Any:
    query, key, value = heads()
    return torch.relu(F.scaled_dot_product_attention(query=query, key=key, value=value, scale=None))


def truth_mask() -> Any:
    return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=kept()))


def added_mask() -> Any:
    mask = torch.zeros(6, 6).masked_fill(~kept(), torch.finfo(torch.float32).min)
    return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=mask))


def infinite_mask() -> Any:
    mask = torch.zeros(6, 6).masked_fill(~kept(), -math.inf)
    return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=mask))


def causal() -> Any:
    return torch.relu(F.scaled_dot_product_attention(*heads(), is_causal=True))


def linear_by_place() -> Any:
    return torch.relu(F.linear(torch.randn(3, 4), torch.ones(2, 4), torch.ones(2)))


def linear_by_name() -> Any:
    return torch.relu(F.linear(torch.randn(3, 4), weight=torch.ones(2, 4), bias=torch.ones(2)))


def norm_by_default() -> Any:
    return F.gelu(F.layer_norm(torch.randn(3, 8), (8,)))


def norm_in_full() -> Any:
    return F.gelu(F.layer_norm(torch.randn(3, 8), (8,), None, None, 1e-5), approximate="none")


def summed() -> Any:
    return torch.relu(torch.sum(torch.randn(3, 4), 1))


def summed_in_full() -> Any:
    return torch.relu(torch.sum(torch.randn(3, 4), dim=1, keepdim=False))


def without_ones() -> Any:
    return torch.relu(torch.exp(torch.randn(4, 3)))


def with_ones() -> Any:
    return torch.relu(torch.exp(torch.randn(4, 3)[None, :, None]))


def shared_heads() -> Any:
    query, key, value = four_heads()
    return torch.relu(F.scaled_dot_product_attention(query, key[:, :2], value[:, :2], is_causal=True, enable_gqa=True))


def repeated_heads() -> Any:
    query, key, value = four_heads()
    key, value = (one[:, :2].repeat_interleave(2, 1) for one in (key, value))
    return torch.relu(F.scaled_dot_product_attention(query, key, value, is_causal=True))


def residual_first() -> Any:
    x = torch.randn(3, 4)
    return torch.relu(x + torch.exp(x))


def residual_last() -> Any:
    x = torch.randn(3, 4)
    return torch.relu(torch.exp(x) + x)


def product_by_sign() -> Any:
    return torch.relu(torch.randn(3, 4) @ torch.randn(4, 2))


def product_by_name() -> Any:
    return torch.relu(torch.matmul(torch.randn(3, 4), torch.randn(4, 2)))


def without_dropout() -> Any:
    return torch.relu(torch.exp(torch.randn(3, 4)))


def idle_dropout() -> Any:
    return torch.relu(F.dropout(torch.exp(torch.randn(3, 4)), 0.5, training=False))


def table_as_product() -> Any:
    rates = torch.reciprocal(torch.arange(1.0, 5.0)) * 1.0
    return torch.cos(torch.outer(torch.arange(6.0), rates))


def positions() -> Any:
    grid = torch.stack([(torch.arange(6.0) + 0.5) / 6, (torch.arange(6.0) - 0.5) / 6])
    return 2.0 * grid - 1.0


POSITIONS = positions()


def positions_made_here() -> Any:
    return placed(positions)


def shared_positions() -> Any:
    """Made by an earlier run of the same process, and kept."""
    return placed(lambda: POSITIONS)


def placed(make: Callable[[], Any]) -> Any:
    rows = torch.exp(torch.randn(2, 6))
    rows = torch.relu(torch.cos(make() * 3.0) + rows)
    for _ in range(3):
        rows = torch.sigmoid(rows.exp() + rows.sin())
    return rows


ALIKE = [
    (bare_attention, explicit_attention), (bare_attention, attention_by_name), (truth_mask, added_mask),
    (truth_mask, infinite_mask), (added_mask, infinite_mask), (causal, truth_mask), (causal, added_mask),
    (causal, infinite_mask), (linear_by_place, linear_by_name),
    (norm_by_default, norm_in_full), (summed, summed_in_full), (without_ones, with_ones),
    (residual_first, residual_last), (product_by_sign, product_by_name), (shared_heads, repeated_heads),
    (positions_made_here, shared_positions),
]  # fmt: skip


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize(("one", "other"), ALIKE, ids=lambda run: run.__name__)
def test_other_words_for_the_same_call(
    tmp_path: Path, one: Callable[[], Any], other: Callable[[], Any], task: str
) -> None:
    for number, sides in enumerate([(one, other), (other, one)]):
        answer, unit = answer_of(tmp_path / str(number), *sides, task=task)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)
        masked = any(word in f"{one.__name__} {other.__name__}" for word in ("mask", "shared"))
        assert answer.counts.unmatched_target + answer.counts.unmatched_golden == 0 or masked


def test_what_is_equal_is_yes_and_another_form_is_a_warning(tmp_path: Path) -> None:
    _, unit = answer_of(tmp_path / "a", explicit_attention, bare_attention)
    name = "Functional.scaled_dot_product_attention.0.forward.input"
    assert {verdicts(unit)[f"{name}.{word}"] for word in ("attn_mask", "dropout_p", "is_causal", "scale")} == {"V-2"}
    _, unit = answer_of(tmp_path / "b", truth_mask, added_mask)
    assert verdicts(unit)[f"{name}.attn_mask"] == "F-1"


@pytest.mark.parametrize("task", TASKS)
def test_another_mask_is_named(tmp_path: Path, task: str) -> None:
    def wrong() -> Any:
        mask = torch.zeros(6, 6).masked_fill(~kept().tril(-1), torch.finfo(torch.float32).min)
        return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=mask))

    answer, unit = answer_of(tmp_path, wrong, infinite_mask if task == "tensor" else added_mask, task=task)
    assert answer.counts.no > 0, verdicts(unit)
    assert answer.origins


@pytest.mark.parametrize("task", TASKS)
def test_a_call_that_gives_back_what_it_took_is_no_cause(tmp_path: Path, task: str) -> None:
    for number, sides in enumerate([(idle_dropout, without_dropout), (without_dropout, idle_dropout)]):
        answer, unit = answer_of(tmp_path / str(number), *sides, task=task)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


@pytest.mark.parametrize("task", TASKS)
def test_a_product_with_a_number_is_no_product_of_tensors(tmp_path: Path, task: str) -> None:
    def golden() -> Any:
        rates = 1.0 / torch.arange(1.0, 5.0)
        return torch.cos(torch.arange(6.0)[:, None] * rates)

    answer, unit = answer_of(tmp_path, table_as_product, golden, task=task)
    assert answer.counts.no == 0, verdicts(unit)
    assert {one.kind for one in answer.origins} <= {"structure"}


def test_operands_that_differ_are_not_exchanged(tmp_path: Path) -> None:
    def doubled() -> Any:
        x = torch.randn(3, 4)
        return torch.relu(torch.exp(x) + 2 * x.detach())

    answer, _ = answer_of(tmp_path, doubled, residual_first)
    assert answer.origins


@pytest.mark.parametrize("task", TASKS)
def test_a_mask_that_is_not_the_causal_one_is_told(tmp_path: Path, task: str) -> None:
    def wrong() -> Any:
        mask = kept()
        mask[4, 1] = False  # statistics of truth values do not show it, those of the result do
        return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=mask))

    answer, _ = answer_of(tmp_path, wrong, causal, task=task)
    assert answer.origins[0].node == "Functional.scaled_dot_product_attention.0.forward"


def test_another_argument_is_named(tmp_path: Path) -> None:
    def scaled() -> Any:
        return torch.relu(F.scaled_dot_product_attention(*heads(), scale=0.25))

    answer, _ = answer_of(tmp_path, scaled, bare_attention)
    assert [one.kind for one in answer.origins] == ["configuration"]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("lowest", ["finfo", "-inf"])
def test_the_lowest_number_of_each_dtype(tmp_path: Path, task: str, lowest: str) -> None:
    """fp32 against fp64, as a mask is made of the lowest number of the dtype."""

    def run(dtype: Any, bottom: float) -> Any:
        mask = torch.where(kept(), torch.zeros((), dtype=dtype), bottom)
        query, key, _ = heads(dtype)
        scores = query @ key.transpose(-1, -2)
        return torch.softmax(scores + mask, dim=-1, dtype=dtype).exp()

    def golden() -> Any:
        return run(torch.float64, torch.finfo(torch.float64).min)

    def target() -> Any:
        return run(torch.float32, torch.finfo(torch.float32).min if lowest == "finfo" else -math.inf)

    answer, unit = answer_of(tmp_path, target, golden, task=task)
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


def test_a_call_inside_vmap_against_the_same_without(tmp_path: Path) -> None:
    rows, columns = torch.arange(16), torch.arange(16)

    def mapped() -> Any:
        inner = torch.vmap(torch.le, in_dims=(0, None))
        return torch.vmap(inner, in_dims=(None, 0))(columns, rows).float().exp()

    def whole() -> Any:
        return torch.le(columns[None, :], rows[:, None]).float().exp()

    for number, sides in enumerate([(mapped, whole), (whole, mapped)]):
        answer, unit = answer_of(tmp_path / str(number), *sides)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


def test_eager_attention_against_the_fused_call(tmp_path: Path) -> None:
    def eager() -> Any:
        query, key, value = heads()
        mask = torch.zeros(6, 6).masked_fill(~kept(), torch.finfo(torch.float32).min)
        weights = torch.matmul(query, key.transpose(2, 3)) * 4**-0.5
        weights = F.softmax(weights + mask, dim=-1, dtype=torch.float32)
        return torch.relu(torch.matmul(F.dropout(weights, p=0.0, training=False), value))

    def fused() -> Any:
        return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=kept(), dropout_p=0.0, scale=4**-0.5))

    golden = recorded(tmp_path / "golden", fused)
    answer, _ = compare(recorded(tmp_path / "target", eager), golden)
    assert [one.kind for one in answer.origins if one.kind != "structure"] == []


def by_scores(query: Any, key: Any, value: Any, by: float = 4**-0.5) -> Any:
    """Attention that scales its scores: another product with a number than that of the queries."""
    scores = torch.einsum("bhid,bhjd->bhij", query, key) * by
    scores = scores.masked_fill(~kept(), torch.finfo(scores.dtype).min)
    weights = F.dropout(F.softmax(scores, dim=-1, dtype=torch.float32), 0.0)
    return torch.einsum("bhij,bhjd->bhid", weights, value)


def by_queries(query: Any, key: Any, value: Any, by: float = 1.0) -> Any:
    return F.scaled_dot_product_attention(query * by, key, value, is_causal=True)


class Attention(torch.nn.Module):
    """The scores that it hands out beside the result have another shape than what a fused call has in their place."""

    def __init__(self, how: Callable[..., Any], **keys: float) -> None:
        super().__init__()
        self.how, self.keys, self.out = how, keys, torch.nn.Linear(4, 4)

    def forward(self, *rows: Any) -> tuple[Any, Any]:
        shown = torch.einsum("bhid,bhjd->bhij", *rows[:2]) if self.how is by_scores else rows[0].relu()
        return self.out(self.how(*rows, **self.keys)), shown


def attended(folder: Path, how: Callable[..., Any], task: str, **keys: float) -> Path:
    torch.manual_seed(5)
    net, rows = Attention(how, **keys), [one.requires_grad_() for one in heads()]
    return recorded(folder, lambda: net(*rows)[0].square().sum().backward(), model=net, task=task)


@pytest.mark.parametrize("task", TASKS)
def test_a_product_of_scores_is_not_that_of_queries(tmp_path: Path, task: str) -> None:
    golden = attended(tmp_path / "golden", by_scores, task)
    answer, unit = compare(attended(tmp_path / "target", by_queries, task), golden)
    assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit[0])
    answer, _ = compare(attended(tmp_path / "queries", by_queries, task, by=1.5), golden)
    assert answer.origins[0].node.split(".")[1] in (
        "__mul__",
        "einsum",
        "scaled_dot_product_attention",
    )
    answer, _ = compare(attended(tmp_path / "scores", by_scores, task, by=0.7), golden)
    assert [(one.node, one.kind) for one in answer.origins] == [("Tensor.__mul__.0.forward", "configuration")]


HIDDEN = torch.ones(6, 6, dtype=torch.bool).triu(1)
DISTANCES = -(torch.arange(6) - torch.arange(6)[:, None]).abs() * torch.tensor([0.5, 0.25])[:, None, None]


def by_biased_scores(query: Any, key: Any, value: Any, by: float = 10.0) -> Any:
    """Attention with a bias by distance, hidden by masked_fill: the operation by which `by_biased_mask` makes its mask."""
    scores = torch.einsum("bhid,bhjd->bhij", torch.tanh(query), key) * by + DISTANCES
    scores = scores.masked_fill(HIDDEN, -torch.finfo(scores.dtype).max)
    weights = F.dropout(F.softmax(scores, dim=-1, dtype=torch.float32), 0.0)
    return torch.einsum("bhij,bhjd->bhid", weights, value)


def by_biased_mask(query: Any, key: Any, value: Any, by: float = 20.0) -> Any:
    mask = DISTANCES.expand(2, 2, -1, -1).masked_fill(HIDDEN, -torch.finfo(query.dtype).max // 2)
    return F.scaled_dot_product_attention(torch.tanh(query) * by, key, value, attn_mask=mask)


@pytest.mark.parametrize("task", TASKS)
def test_a_mask_of_a_fused_attention_is_not_the_scores_hidden_by_the_same_call(tmp_path: Path, task: str) -> None:
    eager, fused = (attended(tmp_path / how.__name__, how, task) for how in (by_biased_scores, by_biased_mask))
    for sides in ((eager, fused), (fused, eager)):
        answer, (unit,) = compare(*sides)
        assert (answer.outcome, answer.origins, answer.counts.no) == ("agrees", [], 0), verdicts(unit)
    wrong = attended(tmp_path / "wrong", by_biased_mask, task, by=23.0)
    for sides in ((eager, wrong), (wrong, eager)):
        answer, _ = compare(*sides)
        assert answer.outcome == "diverged"
        assert answer.origins[0].node.split(".")[1] in ("einsum", "scaled_dot_product_attention", "__mul__")


@pytest.mark.parametrize("task", TASKS)
def test_an_average_of_weights_that_libraries_compute_by_dtype_is_no_cause(tmp_path: Path, task: str) -> None:
    def averaged(name: str, dtype: Any, by: float, together: bool) -> Path:
        torch.manual_seed(3)
        layer, rows = torch.nn.Linear(8, 4).to(dtype), torch.randn(6, 8).to(dtype)
        held = [one.detach() + 1 for one in layer.parameters()]

        def run() -> None:
            F.gelu(layer(rows)).square().sum().backward()
            if together:
                torch._foreach_lerp_(held, [one.detach() for one in layer.parameters()], by)
            else:
                for mine, own in zip(held, layer.parameters(), strict=True):
                    mine.mul_(1 - by).add_(own.detach(), alpha=by)
            F.gelu(F.linear(rows, *held))

        return recorded(tmp_path / name, run, model=layer, task=task)

    golden = averaged("golden", torch.float32, 0.5, together=True)
    answer, _ = compare(averaged("target", torch.bfloat16, 0.5, together=False), golden)
    assert (answer.origins, answer.counts.no) == ([], 0)
    answer, _ = compare(averaged("wrong", torch.bfloat16, 0.1, together=False), golden)
    assert (answer.origins[0].node, answer.origins[0].kind) == ("Functional.linear.1.forward", "weight")
    answer, _ = compare(averaged("same", torch.float32, 0.5, together=False), golden)
    assert [one.kind for one in answer.origins] == []


def single_heads() -> Any:
    torch.manual_seed(2)
    return [torch.randn(2, 8, 1, 32).requires_grad_() for _ in range(3)]


def written_out_for_one_position() -> None:
    query, key, value = single_heads()
    made = torch.matmul(F.softmax(torch.matmul(query * 1.5, key.transpose(2, 3)) * 32**-0.5, dim=-1), value)
    made.square().sum().backward()


def fused_for_one_position() -> None:
    query, key, value = single_heads()
    F.scaled_dot_product_attention(query * 1.5, key, value).square().sum().backward()


@pytest.mark.parametrize("task", TASKS)
def test_gradients_of_scores_that_change_nothing_are_rounding(tmp_path: Path, task: str) -> None:
    for number, sides in enumerate(
        [
            (fused_for_one_position, written_out_for_one_position),
            (written_out_for_one_position, fused_for_one_position),
        ]
    ):
        answer, unit = answer_of(tmp_path / str(number), *sides, task=task)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)


def biased_and_hidden() -> Any:
    query, key, value = heads()
    bias = torch.linspace(-1, 2, 72).reshape(1, 2, 6, 6)
    hidden = torch.zeros(6, 6).masked_fill(~kept(), torch.finfo(torch.float32).min)
    scores = torch.matmul(query, key.transpose(2, 3)) * 4**-0.5
    return torch.relu(torch.matmul(F.softmax(scores + bias + hidden, dim=-1), value))


def biased_mask() -> Any:
    query, key, value = heads()
    bias = torch.linspace(-1, 2, 72).reshape(1, 2, 6, 6)
    mask = torch.where(kept(), bias, torch.finfo(torch.float32).min)
    return torch.relu(F.scaled_dot_product_attention(query, key, value, attn_mask=mask))


def biased_and_wrong() -> Any:
    with WrongRow():
        return biased_mask()


@pytest.mark.parametrize("task", TASKS)
def test_a_mask_that_holds_the_bias_too_is_not_the_bias(tmp_path: Path, task: str) -> None:
    for number, sides in enumerate([(biased_and_hidden, biased_mask), (biased_mask, biased_and_hidden)]):
        answer, unit = answer_of(tmp_path / str(number), *sides, task=task)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(unit)
        assert (unit.pairs.method == Method.FUSED).any()
    wrong, golden = (recorded(tmp_path / how.__name__, how, task=task) for how in (biased_and_wrong, biased_and_hidden))
    answer, _ = compare(wrong, golden)
    assert [one.node for one in answer.origins] == ["Functional.scaled_dot_product_attention.0.forward"]


class Shares(torch.nn.Module):
    def __init__(self, shown: bool) -> None:
        super().__init__()
        self.shown = shown

    def forward(self, rows: Any) -> tuple[Any, Any]:
        shares = torch.softmax(rows, -1)
        return torch.exp(rows) * 2, shares if self.shown else None


def test_a_result_that_one_module_returns_and_nothing_takes_is_no_cause(tmp_path: Path) -> None:
    sides = []
    for shown in (True, False):
        torch.manual_seed(4)
        net, rows = torch.nn.Sequential(Shares(shown)), torch.randn(3, 4)
        sides.append(
            recorded(
                tmp_path / str(shown), lambda net=net, rows=rows: torch.relu(net[0](rows)[0]), model=net, level="mix"
            )
        )
    for target, golden in (sides, sides[::-1]):
        answer, units = compare(target, golden)
        assert (answer.origins, answer.counts.no) == ([], 0), verdicts(units[0])


class WrongQueries(TorchDispatchMode):
    """The kernel of attention makes the gradient of the queries too large."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if "scaled_dot_product" in (name := func.overloadpacket.__name__) and name.endswith("backward"):
            with torch._C.DisableTorchFunction():
                made[0].mul_(1.05)
        return made


def test_a_wrong_gradient_of_fused_attention_is_named_among_small_ones(tmp_path: Path) -> None:
    """Other gradients differ by less than a score counts, as gradients of a mean over many words do."""

    def run(fused: bool, mode: Any = nullcontext) -> None:
        query, key, value = (torch.randn(2, 4, 16, 32).requires_grad_() for _ in range(3))
        query, key, value = query * 1.5, key * 1.5, value * 1.5
        if fused:
            made = F.scaled_dot_product_attention(query, key, value)
        else:
            made = torch.matmul(F.softmax(torch.matmul(query, key.transpose(2, 3)) * 32**-0.5, dim=-1), value)
        with mode():
            (torch.sigmoid(made).sum() * 1e-7).backward()

    golden = recorded(tmp_path / "golden", lambda: run(False), task="tensor")
    answer, _ = compare(recorded(tmp_path / "target", lambda: run(True), task="tensor"), golden)
    assert answer.origins == []
    answer, _ = compare(recorded(tmp_path / "wrong", lambda: run(True, WrongQueries), task="tensor"), golden)
    assert [one.node for one in answer.origins] == ["Functional.scaled_dot_product_attention.0.backward"]


def test_a_mask_that_one_side_makes_is_not_the_cause_of_other_data(tmp_path: Path) -> None:
    table = torch.linspace(0.5, 2, 6)

    def run(fused: bool, by: float) -> Any:
        rows = torch.randn(6, 4).exp()
        if not fused:
            torch.where(kept(), torch.zeros(()), torch.finfo(torch.float32).min)
        with torch._C.DisableTorchFunction():
            known = table * by  # nothing recorded makes it
        rows = rows * known[:, None]
        for _ in range(3):
            rows = torch.sigmoid(rows.sin())
        return rows

    golden = recorded(tmp_path / "golden", lambda: run(False, 1.0))
    answer, _ = compare(recorded(tmp_path / "target", lambda: run(True, 1.05)), golden)
    assert [one.node for one in answer.origins] == ["Tensor.__mul__.0.forward"]
    assert answer.origins[0].kind != "structure"


class WrongRow(TorchDispatchMode):
    """The kernel of attention makes the fifth row of its result too large."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if "scaled_dot_product" in func.overloadpacket.__name__:
            made[0][..., 4, :] *= 1.05
        return made


def padded(added: bool, mode: Any = nullcontext) -> Callable[[], Any]:
    """Attention with a mask that hides all positions from the first two rows, as padding on the left does."""

    def run() -> Any:
        mask = kept()
        mask[:2] = False
        form = torch.zeros(6, 6).masked_fill(~mask, torch.finfo(torch.float32).min) if added else mask
        with mode():
            return torch.relu(F.scaled_dot_product_attention(*heads(), attn_mask=form))

    return run


@pytest.mark.parametrize("task", TASKS)
def test_rows_of_padding_under_a_mask_in_another_form_are_no_wrong_kernel(tmp_path: Path, task: str) -> None:
    for number, sides in enumerate([(padded(True), padded(False)), (padded(False), padded(True))]):
        answer, _ = answer_of(tmp_path / str(number), *sides, task=task)
        (origin,) = answer.origins
        assert (origin.node, origin.kind) == ("Functional.scaled_dot_product_attention.0.forward", "configuration")
        said = {one["id"]: one["values"] for one in origin.evidence_said}
        if task == "tensor":
            assert said["origin.masked_rows"] == {"hidden": 8, "count": 24}
            assert origin.confidence >= 0.9
        else:
            assert "origin.masked_rows_unseen" in said
            assert origin.confidence < 0.9


def test_a_wrong_row_beside_those_of_padding_is_a_wrong_kernel(tmp_path: Path) -> None:
    answer, _ = answer_of(tmp_path, padded(True, WrongRow), padded(False), task="tensor")
    assert [one.kind for one in answer.origins] == ["computation"]
