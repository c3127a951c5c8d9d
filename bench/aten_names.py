"""Write backend/dumpscope/match/operators/aten_names.json: which functions and modules of torch end in which aten operator.

    pip install expecttest && python bench/aten_names.py

Every function and module of which the installed torch holds sample inputs is run under a dispatch mode. The operator
that made the memory of its result, views aside, is its end; all others are inside it. Operators that the samples do
not reach here (those of other devices) get what the operator gets that their name says they stand for. Takes a minute
of one core.
"""

from __future__ import annotations

import argparse
import itertools
import json
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import torch
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from dumpscope.match.operators.operations import moves_data, operation

OUT: Final = Path(__file__).parents[1] / "backend/dumpscope/match/operators/aten_names.json"
SAMPLES: Final = 40
_BEFORE: Final = ("cudnn_", "miopen_", "mkldnn_", "mps_", "native_", "thnn_fused_", "fused_", "weight_norm_", "thnn_")
_BEHIND: Final = (
    "_legit",
    "_no_training",
    "_forward",
    "_for_cpu",
    "_overrideable",
    "_with_update",
    "_interface",
    "_impl_index",
)
_DEVICES: Final = ("flash", "efficient", "cudnn", "fused", "overrideable", "math")
_NOT_RESULTS: Final = {
    "item",
    "allclose",
    "equal",
    "is_nonzero",
    "broadcast_shapes",
    "_local_scalar_dense",
    "result_type",
}
_DRAWN: Final = frozenset(
    {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize"}
)

_WEIGHT: Final = torch.rand(3, 4)
_LINEAR: Final = torch.nn.Linear(4, 3)


def _with_stride(x: torch.Tensor) -> torch.Tensor:
    """A module whose bias is a view, which has no operator of its own."""
    return torch.func.functional_call(_LINEAR, {"bias": _WEIGHT[:, 0]}, (x,))


_MORE: Final[tuple[tuple[str, Callable[[torch.Tensor], Any]], ...]] = (
    ("adaptive_avg_pool2d", lambda x: torch.nn.functional.adaptive_avg_pool2d(x, 1)),
    ("adaptive_avg_pool3d", lambda x: torch.nn.functional.adaptive_avg_pool3d(x, 1)),
    ("AdaptiveAvgPool2d", torch.nn.AdaptiveAvgPool2d(1)),
    ("AdaptiveAvgPool3d", torch.nn.AdaptiveAvgPool3d(1)),
    ("linear", lambda x: torch.nn.functional.linear(x, _WEIGHT)),
    ("linear", lambda x: torch.nn.functional.linear(x, _WEIGHT, _WEIGHT[:, 0])),
    ("Linear", torch.nn.Linear(4, 3, bias=False)),
    ("Linear", _with_stride),
)
"""Forms that no sample has, of a tensor with four dimensions."""

Relations = dict[str, set[str]]


class Trace(TorchDispatchMode):
    """The operators that ran, each with the memory of what it made; everything made is kept, so that no memory is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.ran: list[tuple[str, frozenset[int]]] = []
        self._kept: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.namespace == "aten":
            self._kept.append(result)
            self.ran.append((func._schema.name.partition("::")[2], frozenset(map(memory, tensors(result)))))
        return result


def tensors(value: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(value) if isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided]


def memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def follow(word: str, run: Callable[[], Any], ends: Relations, inside: Relations) -> None:
    """Run once and note its operators. What cannot run here is left out."""
    try:
        with Trace() as trace:
            result = tensors(run())
    except Exception:
        return
    made = {memory(tensor) for tensor in result[:1]}
    ran = [(name, found) for name, found in trace.ran if operation(name) not in _DRAWN]
    if not made or not ran:
        return
    computed = [name for name, found in ran if found & made and not moves_data(name)]
    last = computed[-1] if computed else next((name for name, found in reversed(ran) if found & made), None)
    if last is None:
        return
    ends.setdefault(operation(last), set()).add(word)
    inside.setdefault(word, set()).update(operation(name) for name, _ in ran)


def functions(ends: Relations, inside: Relations) -> None:
    for info in op_db:
        names = {info.name.rpartition(".")[2], *(alias.name.rpartition(".")[2] for alias in info.aliases)}
        if info.name in _NOT_RESULTS or "jiterator" in info.name or torch.float32 not in info.dtypes:
            continue
        print(info.name, flush=True)
        for grad in (False, True):
            if grad and not info.supports_autograd:
                continue
            for sample in samples(lambda: info.sample_inputs("cpu", torch.float32, requires_grad=grad)):  # noqa: B023
                for name in names:
                    follow(word_of(name), lambda: info.op(sample.input, *sample.args, **sample.kwargs), ends, inside)  # noqa: B023


def modules(ends: Relations, inside: Relations) -> None:
    for info in module_db:
        kind = info.module_cls
        if kind.__module__.startswith("torch.ao"):
            continue
        print(kind.__name__, flush=True)
        for training, grad in itertools.product((False, True), repeat=2):
            found = samples(
                lambda: info.module_inputs_func(info, "cpu", torch.float32, requires_grad=grad, training=training)  # noqa: B023
            )
            for sample in found:
                try:
                    module = kind(*sample.constructor_input.args, **sample.constructor_input.kwargs).train(training)
                except Exception:
                    continue
                given = sample.forward_input
                with torch.set_grad_enabled(grad):
                    follow(kind.__name__, lambda: module(*given.args, **given.kwargs), ends, inside)  # noqa: B023


def samples(make: Callable[[], Any]) -> Iterator[Any]:
    try:
        yield from itertools.islice(make(), SAMPLES)
    except Exception:
        return


def word_of(name: str) -> str:
    return operation(f"Torch.{name}")


def kin(ends: Relations) -> None:
    """Operators of other devices and forms: `cudnn_convolution` ends what `convolution` ends."""
    known = dict(ends)
    for schema in torch._C._jit_get_all_schemas():
        space, _, name = schema.name.partition("::")
        name = operation(f"Aten.{name}")
        if space != "aten" or name in known or "backward" in name:
            continue
        plain = bare(name)
        found = known.get(plain) or next((end for other, end in known.items() if bare(other) == plain), set())
        if plain != name and (found or hasattr(torch.nn.functional, plain) or hasattr(torch, plain)):
            ends[name] = found | {word_of(plain)}


def bare(name: str) -> str:
    """A name without what only says by which means."""
    for start in _BEFORE:
        name = name.removeprefix(start)
    for end in _BEHIND * 2:
        name = name.removesuffix(end)
    return "_".join(part for part in name.split("_") if part not in _DEVICES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-o", "--out", type=Path, default=OUT)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.manual_seed(0)
    ends: Relations = {}
    inside: Relations = {}
    functions(ends, inside)
    modules(ends, inside)
    for word, run in _MORE:
        for grad in (False, True):
            follow(word, lambda: run(torch.rand(2, 3, 4, 4, requires_grad=grad)), ends, inside)  # noqa: B023
    kin(ends)
    others = {name: sorted(words - {name}) for name, words in sorted(ends.items()) if words - {name}}
    runs = {word: sorted(names - {word}) for word, names in sorted(inside.items()) if names - {word}}
    parts = (("ends", others), ("inside", runs))
    body = ",\n".join(
        f'"{key}": {{\n'
        + ",\n".join(f" {json.dumps(name)}: {json.dumps(words)}" for name, words in table.items())
        + "\n}"
        for key, table in parts
    )
    args.out.write_text(f'{{\n"torch": "{torch.__version__.partition("+")[0]}",\n{body}\n}}\n', encoding="utf-8")
    print(f"{len(others)} operators, {len(runs)} functions and modules")


if __name__ == "__main__":
    main()
