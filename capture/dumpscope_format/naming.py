"""Node and item names: build and parse.

    Functional.softmax.1.forward                  api       label "Functional.softmax", index 1
    Module.layers.0.attn.Attn.backward.2          module    label "layers.0.attn.Attn", index 2
    Module.layers.0.fc.Linear.parameters_grad.0   gradient  label "layers.0.fc.Linear", index 0 (or none)
    h_grad.3.debug                                debug     label "h_grad", index 3
    anything else                                 other     label is the whole name

Names are read from the right: a module may itself be called `forward`, `output` or `0`, a custom prefix may hold dots.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

NodeWord = Literal["api", "module", "gradient", "debug", "other"]
DirectionWord = Literal["forward", "backward", "none"]

API_PREFIXES: Final = (
    "Functional", "Tensor", "Torch", "VF", "NPU", "Aten", "Distributed", "MindSpeed", "Triton", "Jit",
    "Mint", "MintFunctional", "Primitive",
)  # fmt: skip
"""Prefixes of built-in API categories; a custom prefix is any other text, dots included."""

MODULE_PREFIXES: Final = ("Module", "Cell")
CATEGORIES: Final = ("input", "kwargs", "parameters", "output")
NO_INDEX: Final = -1

_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"  # fits int32; a number with leading zeros would not survive the way back
_MODULE: Final = re.compile(rf"(Module|Cell)\.(.+)\.(forward|backward)\.{_NUMBER}", re.DOTALL)
_GRADIENT: Final = re.compile(rf"(Module|Cell)\.(.+)\.parameters_grad(?:\.{_NUMBER})?", re.DOTALL)
_API: Final = re.compile(rf"(.+\..+)\.{_NUMBER}\.(forward|backward)", re.DOTALL)
_DEBUG: Final = re.compile(rf"(.+)\.{_NUMBER}\.debug", re.DOTALL)
_CATEGORY: Final = re.compile(r"\.(input|kwargs|parameters|output)(?=\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeName:
    """Parts of a node name. prefix: "Module" or "Cell" for modules and gradients, else "" (an API's is in its label)."""

    kind: NodeWord
    direction: DirectionWord
    label: str
    index: int = NO_INDEX
    prefix: str = ""

    def __str__(self) -> str:
        return build(self)


def parse(name: str) -> NodeName:
    """Take a node name apart. Never fails: an unknown form is of kind "other"."""
    kind, direction, label, index, prefix = split(name)
    return NodeName(kind=kind, direction=direction, label=label, index=index, prefix=prefix)


def split(name: str) -> tuple[NodeWord, DirectionWord, str, int, str]:
    """`parse` for readers of many names: (kind, direction, label, index, prefix) as a plain tuple."""
    tail = name[-1:]
    if tail == "d":  # forward, backward; parameters_grad without a number
        found = _API.fullmatch(name)
        if found and not name.startswith(("Module.", "Cell.")):
            return "api", _word(found[3]), found[1], int(found[2]), ""
        found = _GRADIENT.fullmatch(name)
        if found and found[3] is None:
            return "gradient", "backward", found[2], NO_INDEX, found[1]
    elif tail.isdigit():
        found = _MODULE.fullmatch(name)
        if found:
            return "module", _word(found[3]), found[2], int(found[4]), found[1]
        found = _GRADIENT.fullmatch(name)
        if found and found[3] is not None:
            return "gradient", "backward", found[2], int(found[3]), found[1]
    elif tail == "g":
        found = _DEBUG.fullmatch(name)
        if found:
            return "debug", "none", found[1], int(found[2]), ""
    return "other", "none", name, NO_INDEX, ""


def build(parts: NodeName) -> str:
    """Put a name together; the inverse of `parse`."""
    if parts.kind == "api":
        return f"{parts.label}.{parts.index}.{parts.direction}"
    if parts.kind == "module":
        return f"{parts.prefix}.{parts.label}.{parts.direction}.{parts.index}"
    if parts.kind == "gradient":
        number = "" if parts.index == NO_INDEX else f".{parts.index}"
        return f"{parts.prefix}.{parts.label}.parameters_grad{number}"
    if parts.kind == "debug":
        return f"{parts.label}.{parts.index}.debug"
    return parts.label


def api_name(prefix: str, name: str, index: int, direction: DirectionWord) -> str:
    """`Functional.conv2d.3.forward`; a dotted API name collapses to its last segment."""
    return f"{prefix}.{name.rsplit('.', 1)[-1]}.{index}.{direction}"


def module_name(path: str, cls: str, direction: DirectionWord, index: int, *, model: int | None = None) -> str:
    """`Module.[model.]path.Class.forward.0`. model: place in the list given to `start`, None for a lone model."""
    head = "Module" if model is None else f"Module.{model}"
    return f"{head}.{path}.{cls}.{direction}.{index}"


def gradient_name(path: str, cls: str, index: int, *, model: int | None = None) -> str:
    """`Module.[model.]path.Class.parameters_grad.0`; index counts firings, not calls."""
    head = "Module" if model is None else f"Module.{model}"
    return f"{head}.{path}.{cls}.parameters_grad.{index}"


def debug_name(name: str, index: int, *, gradient: bool = False) -> str:
    """`h.0.debug`, or `h_grad.0.debug` for what arrives in backward."""
    return f"{name}{'_grad' if gradient else ''}.{index}.debug"


def twin(name: str) -> str | None:
    """Name of the same call in the other direction, None where a name has none."""
    parts = parse(name)
    if parts.kind not in ("api", "module"):
        return None
    other: DirectionWord = "backward" if parts.direction == "forward" else "forward"
    return build(NodeName(kind=parts.kind, direction=other, label=parts.label, index=parts.index, prefix=parts.prefix))


def item_name(node: str, category: str, path: str) -> str:
    """`{node}.{category}.{path}`; category "" (gradients, debug) leaves it out, and so does an empty path."""
    return ".".join(part for part in (node, category, path) if part)


def split_item(name: str) -> tuple[str, str, str] | None:
    """(node, category, path) of a forward or backward item name; None where no part of it is a node name.

    A module may be called `output`: the leftmost category whose left side is a whole node name counts.
    """
    for found in _CATEGORY.finditer(name):
        node = name[: found.start()]
        if parse(node).kind in ("api", "module"):
            return node, found[1], name[found.end() + 1 :]
    return None


def _word(direction: str) -> DirectionWord:
    return "forward" if direction == "forward" else "backward"
