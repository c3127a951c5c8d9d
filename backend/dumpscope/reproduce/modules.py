"""Modules that a function with their recorded parameters stands for; of any other the dump does not hold how it was built."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from dumpscope.errors import UsageError
from dumpscope.reproduce.values import Reader
from dumpscope.texts import say
from dumpscope_format.naming import NodeName

Made = tuple[str, list[Any], list[str], list[str]]


def stand_in(name: NodeName, forward: dict[str, Any], reader: Reader) -> Made:
    """(target, arguments, their names, what was assumed). Raises UsageError for a module that cannot be rebuilt."""
    cls = name.label.rpartition(".")[2]
    make = _MAKERS.get(cls)
    if make is None:
        raise UsageError(say("reproduce.dump_does_not_hold_how_built", cls=cls, name=name))
    records = forward.get("input_args")
    given = [reader.value(record, f"input.{place}") for place, record in enumerate(records or [])]
    stored = forward.get("parameters")
    parameters = {
        key: reader.value(record[0] if isinstance(record, list) and len(record) == 1 else record, f"parameters.{key}")
        for key, record in (stored.items() if isinstance(stored, dict) else ())
    }
    if not given or forward.get("input_kwargs"):
        raise UsageError(say("reproduce.called_keyword_arguments_which_function_place", name=name))
    return make(given[0], parameters)


def _linear(given: Any, parameters: dict[str, Any]) -> Made:
    return (
        "Functional.linear",
        [given, _weight(parameters), parameters.get("bias")],
        ["input", "weight", "bias"],
        [say("reproduce.linear_stands")],
    )


def _layer_norm(given: Any, parameters: dict[str, Any]) -> Made:
    weight = _weight(parameters)
    return (
        "Functional.layer_norm",
        [given, weight["shape"], weight, parameters.get("bias"), 1e-5],
        ["input", "normalized_shape", "weight", "bias", "eps"],
        [say("reproduce.layer_norm_stands")],
    )


def _embedding(given: Any, parameters: dict[str, Any]) -> Made:
    return (
        "Functional.embedding",
        [given, _weight(parameters)],
        ["input", "weight"],
        [say("reproduce.embedding_stands")],
    )


def _plain(function: str) -> Callable[[Any, dict[str, Any]], Made]:
    def make(given: Any, parameters: dict[str, Any]) -> Made:
        return (
            f"Functional.{function}",
            [given],
            ["input"],
            [say("reproduce.function_stands", function=function)],
        )

    return make


def _weight(parameters: dict[str, Any]) -> Any:
    if not isinstance(parameters.get("weight"), dict):
        raise UsageError(say("reproduce.dump_holds_no_weight_module"))
    return parameters["weight"]


_MAKERS: Final[dict[str, Callable[[Any, dict[str, Any]], Made]]] = {
    "Linear": _linear,
    "LayerNorm": _layer_norm,
    "Embedding": _embedding,
    **{
        cls: _plain(function)
        for cls, function in {
            "ReLU": "relu", "ReLU6": "relu6", "SiLU": "silu", "Mish": "mish", "GELU": "gelu", "Hardswish": "hardswish",
            "LogSigmoid": "logsigmoid", "Sigmoid": "sigmoid", "Tanh": "tanh", "Softsign": "softsign",
        }.items()
    },
}  # fmt: skip
