"""The table of aten operators says what torch itself runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from dumpscope.match.align import align_by_weight
from dumpscope.match.operators.aten import names
from dumpscope.match.operators.operations import moves_data, operation

X = torch.rand(2, 3, 8, 8)
Y = torch.rand(2, 3, 8, 8)
W, W8, KERNEL, WORDS = torch.rand(5, 8), torch.rand(8, 8), torch.rand(4, 3, 3, 3), torch.arange(8)
MOMENTS = torch.zeros(3), torch.ones(3)
LINEAR, CONV = torch.nn.Linear(8, 5), torch.nn.Conv2d(3, 4, 3)
CASES: list[tuple[str, Callable[[], Any]]] = [
    ("Functional.linear", lambda: functional.linear(X, W, W[:, 0])),
    ("Functional.linear", lambda: functional.linear(X, W)),
    ("Module.head.Linear", lambda: LINEAR(X)),
    ("Functional.conv2d", lambda: functional.conv2d(X, KERNEL)),
    ("Module.conv.Conv2d", lambda: CONV(X)),
    ("Functional.softmax", lambda: functional.softmax(X, -1)),
    ("Torch.matmul", lambda: torch.matmul(X, X)),
    ("Tensor.__matmul__", lambda: X @ X),
    ("Functional.layer_norm", lambda: functional.layer_norm(X, (8,))),
    ("Functional.batch_norm", lambda: functional.batch_norm(X, *MOMENTS, training=True)),
    ("Functional.max_pool2d", lambda: functional.max_pool2d(X, 2)),
    ("Functional.adaptive_avg_pool2d", lambda: functional.adaptive_avg_pool2d(X, 1)),
    ("Functional.dropout", lambda: functional.dropout(X, 0.5, True)),
    ("Functional.cross_entropy", lambda: functional.cross_entropy(X[0, 0], WORDS)),
    ("Functional.scaled_dot_product_attention", lambda: functional.scaled_dot_product_attention(X, X, X)),
    ("Functional.embedding", lambda: functional.embedding(WORDS, W8)),
    ("Functional.gelu", lambda: functional.gelu(X)),
    ("Tensor.add_", lambda: Y.add_(1)),
    ("Tensor.__truediv__", lambda: X / 3),
    ("Functional.group_norm", lambda: functional.group_norm(X, 3)),
    ("Functional.interpolate", lambda: functional.interpolate(X, scale_factor=2.0)),
    ("Functional.mse_loss", lambda: functional.mse_loss(X, Y)),
]


class Ran(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(f"Aten.{func._schema.name.partition('::')[2]}")
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(("label", "run"), CASES)
def test_a_function_belongs_to_the_last_operator_that_computes_and_the_others_are_inside(
    label: str, run: Callable[[], Any]
) -> None:
    with Ran() as ran:
        run()
    operators = [name for name in ran.names if not moves_data(name)]
    word = operation(label)
    assert names().belongs(operation(operators[-1]), word)
    assert {operation(name) for name in operators[:-1]} <= names().inside.get(word, frozenset())


@pytest.mark.parametrize(
    ("operator", "label"),
    [
        ("Aten.convolution.default", "Module.Conv2d"),
        ("Aten._softmax.default", "Functional.softmax"),
        ("Aten.cudnn_convolution.default", "Functional.conv2d"),
        ("Aten.cudnn_batch_norm.default", "Module.BatchNorm2d"),
        ("Aten._scaled_dot_product_efficient_attention.default", "Functional.scaled_dot_product_attention"),
        ("Aten.native_dropout.default", "Functional.dropout"),
    ],
)
def test_operators_of_other_devices_and_modules_are_known(operator: str, label: str) -> None:
    assert names().belongs(operation(operator), operation(label))
    assert not names().belongs(operation(operator), "relu")


def test_weights_alone_tell_what_pairs_and_in_which_order() -> None:
    weights = {(0, 1): 1.0, (1, 0): 5.0, (2, 2): 1.0, (3, 3): 0.0}
    assert align_by_weight(4, 4, lambda i, j: weights.get((i, j), 0.0)) == [(1, 0), (2, 2)]
    assert align_by_weight(3, 0, lambda i, j: 1.0) == []
