"""Backward records hold the gradient that each call itself contributes to each of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

Call = Callable[..., torch.Tensor]


def _norm(value: torch.Tensor | None) -> float | None:
    return None if value is None else float(value.norm())


def _capture(make: Any, read: Any, run: Callable[[], None], **keys: Any) -> dict[str, Any]:
    debugger = make(**{"level": "L1", "risk_level": "ALL", **keys})
    debugger.start()
    run()
    debugger.stop()
    debugger.step()
    assert not read().errors
    return dict(read().data)


CALLS: dict[str, tuple[Call, tuple[tuple[int, ...], ...]]] = {
    "matmul of 3-d and 2-d": (torch.matmul, ((2, 3, 4), (4, 5))),
    "matmul of 4-d": (torch.matmul, ((2, 2, 3, 4), (2, 2, 4, 3))),
    "linear without bias": (F.linear, ((2, 3, 4), (5, 4))),
    "linear of 2-d": (F.linear, ((3, 4), (5, 4), (5,))),
    "linear of 3-d": (F.linear, ((2, 3, 4), (5, 4), (5,))),
    "conv": (F.conv1d, ((2, 3, 6), (4, 3, 2), (4,))),
    "broadcast product": (torch.mul, ((3, 4), (4,))),
    "addmm": (torch.addmm, ((5,), (3, 4), (4, 5))),
    "attention": (F.scaled_dot_product_attention, ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
    "bilinear": (F.bilinear, ((3, 4), (3, 5), (2, 4, 5))),
    "einsum": (lambda a, b: torch.einsum("bij,jk->bik", a, b), ((2, 3, 4), (4, 5))),
    "layer norm": (lambda x, w, b: F.layer_norm(x, (4,), weight=w, bias=b), ((3, 4), (4,), (4,))),
    "stack": (lambda a, b: torch.stack([a, b]), ((3,), (3,))),
    "cosine similarity": (F.cosine_similarity, ((3, 4), (3, 4))),
}


@pytest.mark.parametrize("case", CALLS)
def test_every_argument_has_its_own_gradient(make: Any, read: Any, case: str) -> None:
    call, shapes = CALLS[case]
    torch.manual_seed(0)
    args = [torch.randn(shape, requires_grad=True) for shape in shapes]
    out = call(*args)
    upstream = torch.randn_like(out)
    expected = torch.autograd.grad(out, args, upstream)

    # each argument is used elsewhere as well: what others add to its gradient must not show
    def run() -> None:
        result = call(*args)
        other = sum((value * 7).sum() for value in args)
        torch.autograd.backward([result, other], [upstream, torch.tensor(1.0)])

    data = _capture(make, read, run)
    name = next(node for node in data if node.endswith(".backward") and "__" not in node and
    len(data[node]["output"]) >= len(args)
                and data[node]["input"][0]["shape"] == list(out.shape))  # fmt: skip
    record = data[name]
    assert record["input"][0]["Norm"] == pytest.approx(_norm(upstream), rel=1e-5)
    for found, value in zip(record["output"], expected, strict=False):
        assert found["shape"] == list(value.shape)
        assert found["Norm"] == pytest.approx(_norm(value), rel=1e-5)
        assert found["Max"] == pytest.approx(float(value.max()), rel=1e-5, abs=1e-7)


def test_a_value_given_twice_gets_both_parts_in_order(make: Any, read: Any) -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    data = _capture(make, read, lambda: torch.sub(x, x, alpha=3).sum().backward())
    first, second = data["Torch.sub.0.backward"]["output"]
    assert (first["Max"], second["Max"]) == (1.0, -3.0)


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fused = False
        self.q, self.k, self.v = (nn.Linear(4, 4) for _ in range(3))

    def forward(self, v: torch.Tensor, k: torch.Tensor, q: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
        query, key, value = self.q(q), self.k(k), self.v(v)
        if self.fused:
            return F.scaled_dot_product_attention(query, key, value), None
        shares = (query @ key.transpose(-1, -2) / 2).softmax(-1)
        return torch.matmul(shares, value), shares


def test_gradients_of_a_tensor_given_thrice_stand_in_the_order_of_its_use(make: Any, read: Any) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(_Attention())
    debugger = make(level="L0")
    for fused in (False, True):  # the graph behind the results has another order
        model[0].fused = fused
        debugger.start(model)
        x = torch.linspace(-1, 2, 24).reshape(2, 3, 4).requires_grad_()
        model[0](x, x, x)[0].sum().backward()
        debugger.stop()
        debugger.step()
    written, fused = (
        [one["Norm"] for one in read(step).data["Module.0._Attention.backward.0"]["output"]] for step in (0, 1)
    )
    assert len({round(norm, 3) for norm in written}) == 3
    assert fused == pytest.approx(written, rel=1e-4)


def test_arguments_without_gradient_are_null_and_integers_have_no_place(make: Any, read: Any) -> None:
    frozen, weight = torch.ones(2, 3), torch.ones(4, 3, requires_grad=True)
    table = torch.ones(5, 3, requires_grad=True)

    def run() -> None:
        (F.linear(frozen, weight).sum() + F.embedding(torch.tensor([0, 1]), table).sum()).backward()

    data = _capture(make, read, run)
    assert data["Functional.linear.0.backward"]["output"][0] is None
    assert data["Functional.linear.0.backward"]["output"][1]["shape"] == [4, 3]
    assert [part["shape"] for part in data["Functional.embedding.0.backward"]["output"]] == [[5, 3]]


def test_in_place_calls_keep_the_gradients_of_before_and_after_apart(make: Any, read: Any) -> None:
    x = torch.tensor([1.0, -2.0], requires_grad=True)

    def run() -> None:
        y = x * 2
        y.mul_(3)
        y[0].mul_(5)
        y.sum().backward()

    data = _capture(make, read, run)
    assert x.grad is not None
    assert x.grad.tolist() == [30.0, 6.0]
    product = data["Tensor.mul_.0.backward"]
    assert product["input"][0]["Max"] == 5.0
    assert product["output"][0]["Max"] == 15.0


def test_a_graph_used_twice_keeps_the_later_pass(make: Any, read: Any) -> None:
    x = torch.ones(3, requires_grad=True)

    def run() -> None:
        y = (x.view(3, 1) @ torch.ones(1, 2)).sum()
        y.backward(torch.tensor(1.0), retain_graph=True)
        y.backward(torch.tensor(10.0))

    data = _capture(make, read, run)
    assert data["Tensor.sum.0.backward"]["input"][0]["Max"] == 10.0
    assert data["Tensor.__matmul__.0.backward"]["input"][0]["Max"] == 10.0


def test_a_backward_of_some_inputs_only_leaves_the_others_null(make: Any, read: Any) -> None:
    x, w, b = (
        torch.ones(2, 2, 3, requires_grad=True),
        torch.ones(4, 3, requires_grad=True),
        torch.ones(4, requires_grad=True),
    )

    def run() -> None:
        torch.autograd.grad(F.linear(x, w, b).sum(), [w])

    record = _capture(make, read, run)["Functional.linear.0.backward"]
    assert record["output"][1]["shape"] == [4, 3]
    assert record["output"][0] is None


def test_msprobes_form_holds_all_gradients_of_the_last_node(make: Any, read: Any) -> None:
    x, w, b = (
        torch.ones(3, 4, requires_grad=True),
        torch.ones(5, 4, requires_grad=True),
        torch.ones(5, requires_grad=True),
    )
    data = _capture(make, read, lambda: F.linear(x, w, b).sum().backward(), backward="msprobe")
    assert [part["shape"] for part in data["Functional.linear.0.backward"]["output"]] == [[5], [3, 4], [4, 5]]


class Doubles(nn.Module):
    def forward(self, x: torch.Tensor, *, factor: torch.Tensor) -> dict[str, Any]:
        y = x * factor
        return {"y": y, "z": (y * 10).sum()}


def test_a_module_has_the_gradient_of_its_results_not_of_its_own_use_of_them(make: Any, read: Any) -> None:
    whole = nn.ModuleDict({"d": Doubles()})
    x, factor = torch.ones(3, requires_grad=True), torch.full((3,), 2.0, requires_grad=True)
    debugger = make(level="L0")
    debugger.start(whole)
    out = whole["d"](x, factor=factor)
    ((out["y"] * 5).sum() + out["z"] + (x * 100).sum()).backward()
    debugger.stop()
    debugger.step()
    record = read().data["Module.d.Doubles.backward.0"]
    assert record["input"][0]["Max"] == 5.0
    assert record["input"][1]["Max"] == 1.0
    assert record["output"][0]["Max"] == 30.0  # through the module only, not the 100 beside it
    assert record["output"][1]["Max"] == 15.0  # of the keyword argument


def test_parameter_gradients_count_firings(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    debugger = make(level="L0")
    debugger.start(model)
    losses = [model(torch.ones(1, 3)).sum(), model(torch.ones(1, 3)).sum()]
    for loss in losses:
        loss.backward()
    debugger.stop()
    debugger.step()
    data = read().data
    assert data["Module.0.Linear.parameters_grad.0"]["weight"][0]["Max"] == 1.0
    assert data["Module.0.Linear.parameters_grad.1"]["weight"][0]["Max"] == 2.0
    assert "Module.0.Linear.parameters_grad.0" not in read().construct


def test_megatrons_main_grad_is_read_where_it_stands(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 2, bias=False))
    weight = model[0].weight
    weight.main_grad = torch.full((2, 3), 9.0)  # type: ignore[attr-defined]
    debugger = make(level="L0")
    debugger.start(model)
    model(torch.ones(1, 3)).sum().backward()
    debugger.stop()
    debugger.step()
    assert read().data["Module.0.Linear.parameters_grad.0"]["weight"][0]["Max"] == 9.0


def test_hooks_of_an_earlier_step_do_not_fire_in_the_next(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(3, 2))
    debugger = make(level="L0")
    kept = []
    for _ in range(3):
        debugger.start(model)
        loss = model(torch.ones(1, 3)).sum()
        loss.backward()
        kept.append(loss)
        debugger.stop()
        debugger.step()
    for step in range(3):
        assert [node for node in read(step).data if "parameters_grad" in node] == ["Module.0.Linear.parameters_grad.0"]


def test_a_module_waits_for_the_gradients_of_all_its_results(make: Any, read: Any) -> None:
    """The module's input needs no gradient, and its results come out of nodes that run at different times."""
    model = nn.ModuleDict({"lstm": nn.LSTM(3, 4, bidirectional=True)})
    debugger = make(level="L0")
    debugger.start(model)
    out, (h, _) = model["lstm"](torch.randn(5, 2, 3))
    total = out.new_zeros(2, 8)
    for row in out:
        total = torch.tanh(total + row)
    (total.sum() * h.sum()).backward()
    debugger.stop()
    debugger.step()
    data = read().data
    first, second, never = data["Module.lstm.LSTM.backward.0"]["input"]
    assert first["shape"] == [5, 2, 8]
    assert second["shape"] == [2, 2, 4]
    assert never is None
    assert list(data)[-2:] == ["Module.lstm.LSTM.backward.0", "Module.lstm.LSTM.parameters_grad.0"]
    assert not read().errors


def test_calls_that_share_a_weight_under_autocast_have_a_gradient_each(make: Any, read: Any) -> None:
    """torch casts the weight once for all calls of an autocast region, so that behind the cast only their sum is seen."""
    torch.manual_seed(0)
    layer, kernel = nn.Linear(4, 4), torch.randn(2, 1, 3, requires_grad=True)
    inputs = [torch.randn(3, 4) for _ in range(3)]
    upstream = [torch.randn(3, 4).bfloat16() for _ in range(3)]

    def each() -> list[torch.Tensor]:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return [layer(one) for one in inputs] + [F.conv1d(one[:, None], kernel) for one in inputs[:2]]

    alone = [
        torch.autograd.grad(each()[place], (layer.weight, layer.bias), upstream[place]) for place in range(len(inputs))
    ]

    def run() -> None:
        *results, first, second = each()
        loss = torch.stack([(one * more).sum() for one, more in zip(results, upstream, strict=True)]).sum()
        (loss + first.sum() + second.mul(3.0).sum()).backward()

    data = _capture(make, read, run)
    for place, gradients in enumerate(alone):
        outputs = data[f"Functional.linear.{place}.backward"]["output"]
        records = [one for one in outputs if one is not None and one["shape"] != [3, 4]]
        found = {tuple(one["shape"]): one for one in records}
        for gradient in gradients:
            record = found[tuple(gradient.shape)]
            assert record["Norm"] == pytest.approx(_norm(gradient))
            assert record["dtype"] == "torch.float32"
    norms = [data[f"Functional.conv1d.{place}.backward"]["output"][1]["Norm"] for place in (0, 1)]
    for norm, scale, one in zip(norms, (1.0, 3.0), inputs, strict=False):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            (alone_too,) = torch.autograd.grad(F.conv1d(one[:, None], kernel).sum() * scale, kernel)
        assert norm == pytest.approx(_norm(alone_too), rel=1e-2)
