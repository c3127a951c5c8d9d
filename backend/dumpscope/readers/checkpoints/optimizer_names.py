"""Names for the parameters of an optimizer, which torch numbers: from the order and the shapes of the weights."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dumpscope.domain.checkpoints.tensors import Shape

Key = int | str | float | bool | None
_FLAT: Final = re.compile(
    r"^(?:.*\.)?optim(?:izer)?(?:_states?)?(?:\.\d+)?\.state\.(?P<parameter>.+)\.(?P<slot>[^.]+)$"
)
"""A flat name of what an optimizer keeps: "optimizer.state.layers.0.weight.exp_avg"."""
_SLOT_FIRST: Final = re.compile(
    r"^(?:.*\.)?optim(?:izer)?(?:\.\d+)?\.state\.(?P<slot>fp32_param|param|exp_avg|exp_avg_sq|momentum_buffer)\.(?P<parameter>.+)$"
)
"""Megatron's: "optimizer.state.exp_avg.decoder.layers.mlp.linear_fc1.weight"."""
_COPIES: Final = {"param": "fp32", "fp32_param": "fp32"}
_SLOTS: Final = (".exp_avg", ".exp_avg_sq", ".step", ".momentum_buffer")
_FLAT_SETTING: Final = re.compile(r"^(?:.*\.)?optim(?:izer)?(?:_states?)?\.")


def split_flat_name(name: str) -> tuple[str, str] | None:
    """Parameter and slot of a flat name of an optimizer's state ("" and "" for a setting of it); None for other names."""
    found = _SLOT_FIRST.match(name)
    if found and not name.endswith(_SLOTS):
        return found["parameter"], _COPIES.get(found["slot"], found["slot"])
    found = _FLAT.match(name)
    if found:
        return found["parameter"], found["slot"]
    return ("", "") if _FLAT_SETTING.match(name) else None


def name_parameters(groups: Sequence[Any], shapes: Mapping[Key, Shape], weights: Mapping[str, Shape]) -> dict[Key, str]:
    """Name of every number that a parameter has in an optimizer.

    groups: "param_groups" of its state; shapes: of what it keeps, by number, () where that has none
    weights: shapes of the weights in the order of the model, buffers among them
    torch numbers the parameters group by group, each in the order of the model. Numbers get names only if every parameter that
    has a shape finds its weight in that order; the names that newer versions of torch store are taken as they are.
    """
    found: dict[Key, str] = {}
    left = dict(weights)
    for group in groups:
        numbers = group.get("params") if type(group) is dict else None
        if type(numbers) is not list:
            continue
        stored = group.get("param_names")
        if type(stored) is list and len(stored) == len(numbers) and all(type(one) is str for one in stored):
            found.update(zip(numbers, stored, strict=True))
            continue
        named = _in_order([number for number in numbers if type(number) is int], shapes, left)
        if named is None:
            return {}
        found.update(named)
    return found


def _in_order(numbers: Sequence[int], shapes: Mapping[Key, Shape], left: dict[str, Shape]) -> dict[Key, str] | None:
    """Names of the numbers of one group, which are taken from `left`; None if one finds no weight behind those before it."""
    found: dict[Key, str] = {}
    names = iter(list(left.items()))
    for number in numbers:
        shape = shapes.get(number)
        if not shape:
            continue
        name = next((name for name, held in names if held == shape), None)
        if name is None:
            return None
        found[number] = name
        del left[name]
    return found
