"""Where NaN and infinity were born in one rank of one dump, from the recorded extrema alone.

Walks the nodes in completion order, so that a call comes before the module that holds it. A non-finite output of finite
inputs is an origin; what later calls do with it is propagation. Infinities that were asked for (the -inf handed to
masked_fill as an argument) are normal, and so is the softmax that turns them into zeros. A number at the limit of its dtype
is treated likewise: hardware that clips instead of overflowing leaves it there, and masks are filled with it.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from enum import IntFlag
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dumpscope.analysis.unit.calls import forward_of
from dumpscope.domain.limits import SCALED, at_limit, is_limit, limits
from dumpscope.domain.records import Direction, Items, Kind, NodeKind, RankDump, Role, State, item_name
from dumpscope.domain.unread.memory import unread
from dumpscope.texts import Phrase, english, phrase

GROWTH: Final = 100.0
"""Output norm over input norm from which a call counts as growing (msprobe's limit)."""

CLIPPED: Final = 1.0715
"""Largest input over the limit of an fp8 output from which the output was clipped: below, rounding alone takes it there."""


Part = Literal["origin", "input", "propagated", "contains", "absorbed", "intended", "saturated", "growth"]
PARTS: Final[tuple[Part, ...]] = get_args(Part)
Level = Literal["medium", "high", "critical"]


class Contents(IntFlag):
    """What a value or a side of a node holds."""

    NAN = 1
    POS_INF = 2
    NEG_INF = 4
    LIMIT = 8
    NEG_LIMIT = 16


NONFINITE: Final = Contents.NAN | Contents.POS_INF | Contents.NEG_INF


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeOverflow:
    """One node that saw a non-finite number. ordinal: its place in completion order

    inputs, outputs: what was found on each side ("nan", "inf", "-inf", "limit", "-limit"); items: names of the items that hold it
    forward: the call whose backward this is, "" for others and where it was not dumped
    said, advised: evidence and advice as sentences of `dumpscope.texts`; advised may be empty
    level: medium (inputs only), high (both sides, or the norm grew a hundredfold), critical (outputs only)
    """

    ordinal: int
    node: str
    part: Part
    level: Level
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    items: tuple[str, ...]
    said: tuple[Phrase, ...]
    advised: tuple[Phrase, ...]
    stack: tuple[str, ...]
    forward: str = ""

    @property
    def evidence(self) -> str:
        return english(self.said)

    @property
    def advice(self) -> str:
        return english(self.advised)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """Findings of one rank of one step, in completion order.

    checked: nodes with extrema; unknown: nodes with tensors but no extrema (hash dumps, fp8), about which nothing is said
    """

    step: int
    rank: int
    findings: list[NodeOverflow]
    checked: int
    unknown: int

    @property
    def causes(self) -> list[NodeOverflow]:
        return [finding for finding in self.findings if finding.part in ("origin", "input")]

    @property
    def first(self) -> NodeOverflow | None:
        """The first NaN, infinity or clipped number that no argument asked for."""
        return next(iter(self.causes), None)

    @property
    def parts(self) -> dict[Part, int]:
        return dict(Counter(finding.part for finding in self.findings))


def find_overflow(dump: RankDump) -> Overflow:
    """Find and classify every node of `dump` that has an extremum that is not finite, or as large as its dtype goes."""
    seen = _Walk(dump)
    for node in np.flatnonzero(seen.notable).tolist():
        seen.visit(node)
    rank = dump.ref.rank if dump.ref.rank is not None else 0
    return Overflow(step=dump.ref.step, rank=rank, findings=seen.findings, checked=seen.checked, unknown=seen.unknown)


class _Walk:
    """Flags per node, computed at once, and the findings so far."""

    def __init__(self, dump: RankDump) -> None:
        self.dump = dump
        items, count = dump.items, len(dump.nodes)
        self.flags = _item_flags(items)
        apis = np.asarray([label.rpartition(".")[2] for label in dump.nodes.labels] or [""])
        ignored = unread(dump)
        self.flags[ignored] = 0
        _clear_masked(dump, self.flags, apis)
        role = items.role
        out = (role == Role.OUTPUT) | (role == Role.GRADIENT) | (role == Role.DEBUG)
        tensor = (items.kind == Kind.TENSOR) & ~ignored
        self.inputs = _fold_to_nodes(items, self.flags, ~out & tensor, count)
        self.arguments = _fold_to_nodes(items, self.flags, ~out & ~tensor, count)
        self.weights = _fold_to_nodes(items, self.flags, role == Role.PARAMETER, count)
        self.outputs = _fold_to_nodes(items, self.flags, out, count)
        known = tensor & (items.stat_state[:, :2] != State.ABSENT).any(axis=1) if len(items) else np.zeros(0, bool)
        has, says = np.zeros(count, bool), np.zeros(count, bool)
        has[items.node[tensor]] = True
        says[items.node[known]] = True
        self.checked = int(np.count_nonzero(says))
        self.unknown = int(np.count_nonzero(has & ~says))
        self.growing = _find_growing(items, out & tensor, ~out & tensor, count)
        self.clipped = _find_clipped(items, out & tensor, ~out & tensor, count)
        self.notable = (self.inputs | self.outputs | self.arguments).astype(bool) | self.growing | self.clipped
        self.findings: list[NodeOverflow] = []
        self.around: set[int] = set()  # tree entries that hold a cause
        self.first_cause: str | None = None
        self.last_intended: str | None = None

    def visit(self, node: int) -> None:
        inputs, outputs, arguments = (Contents(int(side[node])) for side in (self.inputs, self.outputs, self.arguments))
        if not inputs and not outputs and not self.growing[node] and not self.clipped[node]:
            return  # an infinite argument without any effect
        part, said, advice = self._classify(node, inputs, outputs, arguments)
        forward = forward_of(self.dump.nodes, node)
        if part == "origin" and forward >= 0 and not self.outputs[forward]:
            name = self.dump.nodes.names[forward]
            said, advice = phrase("overflow.born_backward", what=[said], node=name), "born_backward"
        level: Level = "critical" if outputs and not inputs else "medium" if inputs and not outputs else "high"
        if part in ("intended", "saturated"):
            level = "medium"
            self.last_intended = self.dump.nodes.names[node] if outputs else self.last_intended
        if part in ("origin", "input"):
            self.first_cause = self.first_cause or self.dump.nodes.names[node]
            self._mark_around(node)
        self.findings.append(
            NodeOverflow(
                ordinal=node,
                node=self.dump.nodes.names[node],
                part=part,
                level=level,
                inputs=_words_of(inputs),
                outputs=_words_of(outputs),
                items=self._name_items(node),
                said=(said,),
                advised=(phrase(f"overflow.advice.{advice}"),) if advice else (),
                stack=self._stack(node, forward),
                forward=self.dump.nodes.names[forward] if forward >= 0 else "",
            )
        )

    def _classify(
        self, node: int, inputs: Contents, outputs: Contents, arguments: Contents
    ) -> tuple[Part, Phrase, str]:
        """What the node is, why, and which advice it gets, "" for none."""
        came, went = _name_contents(inputs), _name_contents(outputs)
        if not inputs and not outputs and self.clipped[node]:
            return "saturated", phrase("overflow.saturated"), "scale"
        if not inputs and not outputs:
            return "growth", phrase("overflow.growth", factor=f"{GROWTH:.0f}"), ""
        if not outputs:
            if inputs & Contents.NAN and self.first_cause is None:
                return self._classify_outside(node, came)
            return "absorbed", phrase("overflow.absorbed", came=came), ""
        if node in self.around:
            return "contains", phrase("overflow.contains", went=went), ""
        if not inputs and _is_asked_for(arguments, outputs):
            return "intended", phrase("overflow.intended", given=_name_contents(arguments), went=went), ""
        if self.dump.nodes.kind[node] in (NodeKind.GRADIENT, NodeKind.DEBUG):  # no call, so no inputs
            if self.first_cause is not None:
                return "propagated", phrase("overflow.after", went=went, node=self.first_cause), ""
            return "origin", phrase("overflow.alone", went=went), "value"
        if not inputs:
            return "origin", phrase("overflow.born", went=went), _origin_advice(outputs)
        if inputs & NONFINITE and not outputs & NONFINITE:
            return "absorbed", phrase("overflow.absorbed_partly", came=came, went=went), ""
        if self.first_cause is not None:
            return "propagated", phrase("overflow.propagated", came=came, node=self.first_cause), ""
        if inputs & (Contents.NAN | Contents.POS_INF):
            return self._classify_outside(node, came)
        if not inputs & NONFINITE and outputs & (Contents.NAN | Contents.POS_INF):
            return "origin", phrase("overflow.came_up", came=came, went=went), _origin_advice(outputs)
        if outputs & Contents.NAN:
            return "origin", self._describe_mask_birth(came), "mask"
        return "intended", phrase("overflow.mask", came=came), ""

    def _describe_mask_birth(self, came: list[Phrase]) -> Phrase:
        if self.last_intended:
            return phrase("overflow.masked_from", came=came, node=self.last_intended)
        return phrase("overflow.masked", came=came)

    def _classify_outside(self, node: int, came: list[Phrase]) -> tuple[Part, Phrase, str]:
        if self.weights[node]:
            return "input", phrase("overflow.from_weight", came=came), "weight"
        return "input", phrase("overflow.from_data", came=came), "data"

    def _mark_around(self, node: int) -> None:
        parents = self.dump.tree.parent
        above = int(parents[node]) if node < len(parents) else -1
        while above >= 0 and above not in self.around:
            self.around.add(above)
            above = int(parents[above])

    def _name_items(self, node: int) -> tuple[str, ...]:
        owners = self.dump.items.node
        start, stop = np.searchsorted(owners, [node, node + 1]).tolist()
        return tuple(item_name(self.dump, item) for item in range(start, stop) if self.flags[item])

    def _stack(self, node: int, forward: int) -> tuple[str, ...]:
        """Call stack; for a backward call, which has none in dumps, that of its forward call."""
        nodes = self.dump.nodes
        code = int(nodes.stack[node])
        if code < 0 and forward >= 0:
            code = int(nodes.stack[forward])
        return nodes.stacks[code] if code >= 0 else ()


def _item_flags(items: Items) -> NDArray[np.uint8]:
    """Contents of each item, from Max and Min (Norm and Mean overflow on finite bf16 data) and from non-tensor values."""
    flags = np.zeros(len(items), np.uint8)
    if not len(items):
        return flags
    extrema = items.stat_state[:, :2]
    for state, found in (
        (State.NAN, Contents.NAN),
        (State.POS_INF, Contents.POS_INF),
        (State.NEG_INF, Contents.NEG_INF),
    ):
        flags[(extrema == state).any(axis=1)] |= np.uint8(found)
    usual = limits(["" if name in SCALED else name for name in items.dtypes])
    high, low = at_limit(items.stats, items.stat_state, usual[items.dtype])
    flags[high] |= np.uint8(Contents.LIMIT)
    flags[low] |= np.uint8(Contents.NEG_LIMIT)
    special = np.asarray([_read_special(text) for text in items.values] + [0], dtype=np.uint8)
    texts = np.asarray([kind in ("str", "torch.device", "torch.dtype") for kind in items.types] + [False])
    scalar = (items.kind == Kind.SCALAR) & ~texts[items.type]
    flags[scalar] |= special[items.value[scalar]]
    made = scalar & (items.role == Role.OUTPUT)
    flags[made] &= np.uint8(NONFINITE)
    return flags


def _read_special(text: str) -> int:
    """Contents of an argument given as text, 0 for none."""
    try:
        value = float(text.strip('"'))
    except ValueError:
        return 0
    if math.isnan(value):
        return int(Contents.NAN)
    if math.isinf(value):
        return int(Contents.POS_INF if value > 0 else Contents.NEG_INF)
    if is_limit(value):
        return int(Contents.LIMIT if value > 0 else Contents.NEG_LIMIT)
    return 0


def _is_asked_for(arguments: Contents, outputs: Contents) -> bool:
    """An argument explains what the output holds: an infinity explains anything, the limit of a dtype itself and the infinity
    that it becomes as a mask or in a smaller dtype."""
    if arguments & NONFINITE:
        return True
    explained = Contents(0)
    if arguments & Contents.LIMIT:
        explained |= Contents.LIMIT | Contents.NEG_LIMIT
    if arguments & Contents.NEG_LIMIT:
        explained |= Contents.LIMIT | Contents.NEG_LIMIT | Contents.NEG_INF
    return bool(outputs) and not outputs & ~explained


def _clear_masked(dump: RankDump, flags: NDArray[np.uint8], apis: NDArray[np.str_]) -> None:
    """Clear flags of what masked_fill_ is called on."""
    items, nodes = dump.items, dump.nodes
    for item in np.flatnonzero(flags).tolist():
        node = items.node[item]
        if nodes.direction[node] == Direction.BACKWARD:
            continue
        label = nodes.label[node]
        api = str(apis[label]) if label >= 0 else ""
        path = items.paths[items.path[item]] if items.path[item] >= 0 else ""
        role = items.role[item]
        if api == "masked_fill_" and role == Role.INPUT and path.split(".")[0] == "0":
            flags[item] = 0


def _fold_to_nodes(items: Items, flags: NDArray[np.uint8], where: NDArray[np.bool_], count: int) -> NDArray[np.uint8]:
    found = np.zeros(count, np.uint8)
    np.bitwise_or.at(found, items.node[where], flags[where])
    return found


def _find_growing(items: Items, out: NDArray[np.bool_], into: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    largest = [np.zeros(count), np.zeros(count)]
    for place, where in enumerate((out, into)):
        norm = where & (items.stat_state[:, 3] == State.FINITE) if len(items) else where
        np.maximum.at(largest[place], items.node[norm], np.abs(items.stats[norm, 3]))
    has_input = np.zeros(count, bool)
    has_input[items.node[into]] = True
    return has_input & (largest[0] > GROWTH * np.where(largest[1] > 0, largest[1], 1.0))


def _find_clipped(items: Items, out: NDArray[np.bool_], into: NDArray[np.bool_], count: int) -> NDArray[np.bool_]:
    """Nodes with an fp8 output at its limit and an input well beyond it."""
    found, largest = np.zeros(count, bool), np.zeros(count)
    scaled = limits([name if name in SCALED else "" for name in items.dtypes])[items.dtype]
    if not len(items) or np.isnan(scaled).all():
        return found
    finite = into & (items.stat_state[:, :2] == State.FINITE).all(axis=1)
    np.maximum.at(largest, items.node[finite], np.abs(items.stats[finite, :2]).max(axis=1))
    high, low = at_limit(items.stats, items.stat_state, scaled)
    with np.errstate(invalid="ignore"):
        full = out & (high | low) & (largest[items.node] > CLIPPED * scaled)
    found[items.node[full]] = True
    return found


def _words_of(found: Contents) -> tuple[str, ...]:
    named = ((Contents.NAN, "nan"), (Contents.POS_INF, "inf"), (Contents.NEG_INF, "-inf"),
             (Contents.LIMIT, "limit"), (Contents.NEG_LIMIT, "-limit"))  # fmt: skip
    return tuple(word for flag, word in named if found & flag)


def _name_contents(found: Contents) -> list[Phrase]:
    return [phrase(f"overflow.word.{word}") for word in _words_of(found)]


def _origin_advice(outputs: Contents) -> str:
    if not outputs & NONFINITE:
        return "clipped"
    return "invalid" if outputs & Contents.NAN else "range"
