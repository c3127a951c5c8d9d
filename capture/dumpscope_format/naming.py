"""Node and item names: build and parse.

    Functional.softmax.1.forward                  api       label "Functional.softmax", index 1
    Module.layers.0.attn.Attn.backward.2          module    label "layers.0.attn.Attn", index 2
    Module.layers.0.fc.Linear.parameters_grad.0   gradient  label "layers.0.fc.Linear", index 0 (or none)
    h_grad.3.debug                                debug     label "h_grad", index 3
    Functional_softmax_1_forward                  api       as the first: ptdbg before 6.0 wrote `_`
    Module_Linear_0_forward                       module    label "Linear", index 0 (ptdbg)
    Functional_softmax_1_forward#2                api       the second record of that name in one ptdbg file
    anything else                                 other     label is the whole name

Names are read from the right: a module may itself be called `forward`, `output` or `0`, a custom prefix may hold dots.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Final, Literal

from dumpscope_format.older_python import dataclass, without_suffix

NodeWord = Literal["api", "module", "gradient", "debug", "other"]
DirectionWord = Literal["forward", "backward", "none"]

API_PREFIXES: Final = (
    "Functional", "Tensor", "Torch", "VF", "NPU", "Aten", "Distributed", "MindSpeed", "Triton", "Jit", "Compiled",
    "Mint", "MintFunctional", "Primitive",
)  # fmt: skip
"""Prefixes of built-in API categories; a custom prefix is any other text, dots included."""

MODULE_PREFIXES: Final = ("Module", "Cell")
CATEGORIES: Final = ("input", "kwargs", "parameters", "output")
NO_INDEX: Final = -1
AGAIN: Final = 1_000_000
"""What the number of a call grows by each time that activation checkpointing makes it again."""

UNSEEN: Final = 500_000
"""First number of the calls that are made again and whose first time was not recorded."""

_UNDERSCORED_ENDS: Final = ("_forward", "_backward")

_NUMBER: Final = r"(0|[1-9][0-9]{0,8})"  # fits int32; a number with leading zeros would not survive the way back
_MODULE: Final = re.compile(rf"(Module|Cell)\.(.+)\.(forward|backward)\.{_NUMBER}", re.DOTALL)
_GRADIENT: Final = re.compile(rf"(Module|Cell)\.(.+)\.parameters_grad(?:\.{_NUMBER})?", re.DOTALL)
_API: Final = re.compile(rf"(.+\..+)\.{_NUMBER}\.(forward|backward)", re.DOTALL)
_DEBUG: Final = re.compile(rf"(.+)\.{_NUMBER}\.debug", re.DOTALL)
_PREFIXES: Final = "|".join(API_PREFIXES)
_UNDERSCORED: Final = re.compile(rf"(Module|{_PREFIXES})_(.+)_{_NUMBER}_(forward|backward)", re.DOTALL)
_REPEATED: Final = re.compile(r"(.+)#([2-9]|[1-9][0-9]{1,8})", re.DOTALL)
_ABNORMAL: Final = "abnormal"
_CALLED: Final = re.compile(rf"(.+)[._]{_NUMBER[:-1]}|{_ABNORMAL})[._](forward|backward)", re.DOTALL)
_ITEM: Final = re.compile(
    r"(.+[._](?:forward|backward))[._](input|output)(?:\.([0-9]{1,9}(?:\.[0-9]{1,9}){0,99}))?", re.DOTALL
)
_STACK: Final = re.compile(r"(.+[._](?:forward|backward))[._]stack_info", re.DOTALL)
_CATEGORY: Final = re.compile(r"\.(input|kwargs|parameters|output)(?=\.|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeName:
    """Parts of a node name. prefix: "Module" or "Cell" for modules and gradients, else "" (an API's is in its label).

    separator: `_` in names of ptdbg before 6.0; occurrence: 2 for the second record of a name in one ptdbg file, and so on
    """

    kind: NodeWord
    direction: DirectionWord
    label: str
    index: int = NO_INDEX
    prefix: str = ""
    separator: Literal[".", "_"] = "."
    occurrence: int = 1

    def __str__(self) -> str:
        return build(self)


def parse(name: str) -> NodeName:
    """Take a node name apart. Never fails: an unknown form is of kind "other"."""
    kind, direction, label, index, prefix = split(name)
    if kind not in ("api", "module"):
        return NodeName(kind=kind, direction=direction, label=label, index=index, prefix=prefix)
    once, occurrence = _once(name)
    mark: Literal[".", "_"] = "_" if once.endswith(_UNDERSCORED_ENDS) else "."
    return NodeName(
        kind=kind, direction=direction, label=label, index=index, prefix=prefix, separator=mark, occurrence=occurrence
    )


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
        found = _UNDERSCORED.fullmatch(name)
        if found:
            way, index = _word(found[4]), int(found[3])
            if found[1] == "Module":
                return "module", way, found[2], index, "Module"
            return "api", way, f"{found[1]}.{found[2]}", index, ""
    elif tail.isdigit():
        found = _MODULE.fullmatch(name)
        if found:
            return "module", _word(found[3]), found[2], int(found[4]), found[1]
        found = _GRADIENT.fullmatch(name)
        if found and found[3] is not None:
            return "gradient", "backward", found[2], int(found[3]), found[1]
        once, occurrence = _once(name)
        if occurrence > 1 and once[-1:] == "d" and (found_once := split(once))[0] in ("api", "module"):
            return found_once
    elif tail == "g":
        found = _DEBUG.fullmatch(name)
        if found:
            return "debug", "none", found[1], int(found[2]), ""
    return "other", "none", name, NO_INDEX, ""


def build(parts: NodeName) -> str:
    """Put a name together; the inverse of `parse`."""
    again = f"#{parts.occurrence}" if parts.occurrence > 1 else ""
    if parts.separator == "_":
        label = parts.label.replace(".", "_", 1) if parts.kind == "api" else f"{parts.prefix}_{parts.label}"
        return f"{label}_{parts.index}_{parts.direction}{again}"
    if parts.kind == "api":
        return f"{parts.label}.{parts.index}.{parts.direction}{again}"
    if parts.kind == "module":
        return f"{parts.prefix}.{parts.label}.{parts.direction}.{parts.index}"
    if parts.kind == "gradient":
        number = "" if parts.index == NO_INDEX else f".{parts.index}"
        return f"{parts.prefix}.{parts.label}.parameters_grad{number}"
    if parts.kind == "debug":
        return f"{parts.label}.{parts.index}.debug"
    return parts.label


def api_name(prefix: str, name: str, index: int, direction: DirectionWord) -> str:
    """`Functional.conv2d.3.forward`; a dotted API name collapses to its last segment, but an aten operator keeps its overload."""
    last = name if prefix == "Aten" else name.rsplit(".", 1)[-1]
    return f"{prefix}.{last}.{index}.{direction}"


def module_name(path: str, cls: str, direction: DirectionWord, index: int, *, model: int | None = None) -> str:
    """`Module.[model.]path.Class.forward.0`. model: place in the list given to `start`, None for a lone model."""
    head = "Module" if model is None else f"Module.{model}"
    return f"{head}.{path}.{cls}.{direction}.{index}"


def first_index(index: int) -> int:
    """Number that a call had the first time: 3 for 1000003, which activation checkpointing made again, and for 3."""
    return index % AGAIN if index >= AGAIN else index


def debug_name(name: str, index: int, *, gradient: bool = False) -> str:
    """`h.0.debug`, or `h_grad.0.debug` for what arrives in backward."""
    return f"{name}{'_grad' if gradient else ''}.{index}.debug"


def twin(name: str) -> str | None:
    """Name of the same call in the other direction, None where a name has none."""
    parts = parse(name)
    if parts.kind not in ("api", "module"):
        return None
    other: DirectionWord = "backward" if parts.direction == "forward" else "forward"
    return build(replace(parts, direction=other))


def separator(node: str) -> Literal[".", "_"]:
    """The separator between a node's name and its item's category: `_` after names that ptdbg wrote before 6.0."""
    if node.endswith(_UNDERSCORED_ENDS) or ("#" in node and _once(node)[0].endswith(_UNDERSCORED_ENDS)):
        return "_"
    return "."


def item_name(node: str, category: str, path: str) -> str:
    """`{node}.{category}.{path}` (`{node}_{category}.{path}`); category "" (gradients, debug) leaves it out, and so does an
    empty path."""
    if not category:
        return f"{node}.{path}" if path else node
    return f"{node}{separator(node)}{category}.{path}" if path else f"{node}{separator(node)}{category}"


def split_item(name: str) -> tuple[str, str, str] | None:
    """(node, category, path) of a forward or backward item name; None where no part of it is a node name.

    A module may be called `output`: the leftmost category whose left side is a whole node name counts.
    """
    for found in _CATEGORY.finditer(name):
        node = name[: found.start()]
        if parse(node).kind in ("api", "module"):
            return node, found[1], name[found.end() + 1 :]
    return None


def split_ptdbg(name: str) -> tuple[NodeWord, DirectionWord, str, int, str]:
    """`split` of a node name of a ptdbg dump, where a name of no built-in category is a module's.

    Functional_softmax_1_forward           api       label "Functional.softmax", index 1
    layers.0.attn.Attn.2.forward           module    label "layers.0.attn.Attn", index 2
    loss_fn_0_backward                     module    label "loss_fn", index 0
    fc.Linear.abnormal.backward            module    label "fc.Linear", no index: a backward call without its forward one
    """
    once, _ = _once(name)
    found = split(once)
    if found[0] == "module" or (found[0] == "api" and found[2].partition(".")[0] in API_PREFIXES):
        return found
    called = _CALLED.fullmatch(once)
    if called is None:
        return "other", "none", name, NO_INDEX, ""
    index = NO_INDEX if called[2] == _ABNORMAL else int(called[2])
    return "module", _word(called[3]), called[1], index, "Module"


def canonical(name: str) -> str:
    """The name that a node of a ptdbg dump has in msprobe's form, by which dumps of all forms match."""
    kind, direction, label, index, prefix = split_ptdbg(name)
    if kind == "other":
        return name
    parts = NodeName(kind=kind, direction=direction, label=label, index=index, prefix=prefix)
    occurrence = _once(name)[1]
    return f"{build(parts)}#{occurrence}" if occurrence > 1 else build(parts)


def split_ptdbg_item(name: str) -> tuple[str, str, str] | None:
    """(node, category, path) of an item name of a ptdbg dump, either separator; None where it is none.

    path: "" for a lone value; a call that a hook met before it ran (`pre_forward`) is the forward call
    """
    found = _ITEM.fullmatch(name)
    if found is None:
        return None
    node = found[1]
    for mark in ("_", "."):
        head = without_suffix(node, f"{mark}pre_forward")
        if head != node:
            node = f"{head}{mark}forward"
    return node, found[2], found[3] or ""


def split_ptdbg_stack(name: str) -> str | None:
    """The node that a stack of a ptdbg dump belongs to, None where it is no name of one."""
    found = _STACK.fullmatch(name)
    return found[1] if found else None


def _once(name: str) -> tuple[str, int]:
    """A name without the number of its occurrence, and that number."""
    found = _REPEATED.fullmatch(name) if "#" in name else None
    return (found[1], int(found[2])) if found else (name, 1)


def _word(direction: str) -> DirectionWord:
    return "forward" if direction == "forward" else "backward"
