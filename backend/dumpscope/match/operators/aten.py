"""Matches the operators of a graph with the calls of an eager run: `Functional.linear` or `Linear` ends in `Aten.addmm`.

aten_names.json says which operator each function ends in (bench/aten_names.py makes it from torch
itself). The operators between two ends belong to the function that ends there if they only move data or if the table
lists them for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Final

from dumpscope.domain.records import Direction, NodeKind, Role
from dumpscope.match.align import align_by_weight
from dumpscope.match.gaps import Gap, computing, find_gaps
from dumpscope.match.matching import Matching
from dumpscope.match.operators.boundary import Found, Value, fits, note, pair_values, received_by, same_numbers, values
from dumpscope.match.operators.fusion import fuse_backward
from dumpscope.match.operators.operations import moves_data, operation
from dumpscope.match.sides import Side

PREFIX: Final = "Aten."
CONFIDENCE: Final = 0.8
_NAMED: Final = 1.0
"""Weight of a pair whose names belong together; agreeing contents add to it."""
_AFTER_FORWARD: Final = ("torch/autograd/__init__.py", "in _engine_run_backward", "torch/optim/")
"""Words found in the call stacks of a backward pass or an optimizer step."""
_SHAPE, _NUMBERS, _GIVEN = 2.0, 4.0, 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Names:
    """ends: operation of an operator -> the functions and modules it is the end of; inside: function -> operations it runs"""

    ends: dict[str, frozenset[str]]
    inside: dict[str, frozenset[str]]

    def belongs(self, operator: str, function: str) -> bool:
        return operator == function or function in self.ends.get(operator, ())


@cache
def names() -> Names:
    found = json.loads((resources.files(__package__) / "aten_names.json").read_text("utf-8"))
    return Names(
        ends={word: frozenset(others) for word, others in found["ends"].items()},
        inside={word: frozenset(others) for word, others in found["inside"].items()},
    )


def is_operator(side: Side, entry: int) -> bool:
    return side.label[entry].startswith(PREFIX)


def find_operators(matching: Matching) -> None:
    """Pair functions and modules of one side with the operators of the other, and the backward of both if it is recorded."""
    for gap in list(find_gaps(matching)):
        for on_target in (False, True):
            _in_gap(matching, gap, on_target=on_target)


def _in_gap(matching: Matching, gap: Gap, *, on_target: bool) -> None:
    """on_target: the operators are the target's."""
    eager, graph = (matching.golden, matching.target) if on_target else (matching.target, matching.golden)
    calls, operators = (gap.golden, gap.target) if on_target else (gap.target, gap.golden)
    free_call, free_operator = (
        (matching.free_golden, matching.free_target) if on_target else (matching.free_target, matching.free_golden)
    )
    operators = [entry for entry in operators if is_operator(graph, entry) and free_operator(entry)]
    if not operators:
        return
    singles = [x for x in computing(eager, calls) if not is_operator(eager, x) and free_call(x) and x < eager.dumped]
    cores = [entry for entry in computing(graph, operators) if entry < graph.dumped]
    weigh = _Weights(eager, graph, singles, cores)
    pairs = align_by_weight(len(singles), len(cores), weigh)
    if not pairs:
        return
    beyond = matching.beyond_target if on_target else matching.beyond_golden
    places = {entry: place for place, entry in enumerate(operators)}
    begin = 0
    for i, j in pairs:
        single, end = singles[i], cores[j]
        place = places[end]
        behind = place + 1
        while behind < len(operators) and moves_data(graph.label[operators[behind]]):
            behind += 1
        found = _join(eager, graph, single, operators[begin:behind], place - begin)
        begin = places[found.inner[-1]] + 1
        note(matching, found, CONFIDENCE, on_target=on_target, holders=True)
        fuse_backward(matching, found, CONFIDENCE, on_target=on_target)
    candidates = _find_after_forward(
        eager, [singles[i] for i, _ in pairs], operators, [places[cores[j]] for _, j in pairs]
    )
    beyond.update(entry for entry in candidates if not is_forward(graph, entry))


class _Weights:
    """How likely a function and an operator are the same call: 0 if their names do not belong together."""

    def __init__(self, eager: Side, graph: Side, singles: Sequence[int], cores: Sequence[int]) -> None:
        self._eager, self._graph = eager, graph
        self._singles, self._cores = singles, cores
        self._words = [operation(eager.label[entry]) for entry in singles]
        self._operations = [operation(graph.label[entry]) for entry in cores]
        self._given: dict[tuple[int, bool], tuple[list[Value], list[Value]]] = {}
        self._known: dict[tuple[int, int], float] = {}
        self._names = names()

    def __call__(self, i: int, j: int) -> float:
        if not self._names.belongs(self._operations[j], self._words[i]):
            return 0.0
        weight = self._known.get((i, j))
        if weight is None:
            weight = self._known[i, j] = self._weigh(i, j)
        return weight

    def _weigh(self, i: int, j: int) -> float:
        given, made = self._values(i, graph=False)
        taken, result = self._values(j, graph=True)
        weight = _NAMED
        if made and result:
            weight += _SHAPE * (made[0].size == result[0].size) + _NUMBERS * holds_same_numbers(made[0], result[0])
        if given and taken:
            agreeing = sum(any(holds_same_numbers(one, other) for other in taken) for one in given)
            weight += _GIVEN * agreeing / len(given)
        return weight

    def _values(self, place: int, *, graph: bool) -> tuple[list[Value], list[Value]]:
        known = self._given.get((place, graph))
        if known is None:
            side, entry = (self._graph, self._cores[place]) if graph else (self._eager, self._singles[place])
            known = values(side, entry, Role.INPUT, Role.KWARG, Role.PARAMETER), values(side, entry, Role.OUTPUT)
            self._given[place, graph] = known
        return known


def holds_same_numbers(one: Value, other: Value) -> bool:
    """Whether two tensors hold the same numbers; shapes may differ."""
    return one.size == other.size and same_numbers(one, other)


def _join(eager: Side, graph: Side, single: int, operators: Sequence[int], end: int) -> Found:
    """Fuse a function and its operators. operators: from the previous end to the views after the function's own end"""
    word, table = operation(eager.label[single]), names()
    within = table.inside.get(word, frozenset())
    inner = [x for x in operators[:end] if moves_data(graph.label[x]) or operation(graph.label[x]) in within]
    inner.append(operators[end])
    made = values(eager, single, Role.OUTPUT)
    result = values(graph, operators[end], Role.OUTPUT)
    if made and result and made[0].shape != result[0].shape:
        for place in range(end + 1, len(operators)):
            shaped = values(graph, operators[place], Role.OUTPUT)
            if shaped and shaped[0].shape == made[0].shape:
                inner += operators[end + 1 : place + 1]
                result = [shaped[0], *result[1:]]
                break
    received = values(eager, single, Role.INPUT, Role.KWARG, Role.PARAMETER)
    inputs, agree = pair_values(
        received, received_by(graph, [entry for entry in inner if entry < graph.dumped]), rest=True
    )
    outputs = [(one.item, other.item) for one, other in zip(made, result, strict=False) if fits(one, other)]
    return Found(
        single=single, inner=tuple(inner), end=operators[end], items=(*inputs, *outputs), inputs=len(inputs), agree=agree,
        outputs=len(outputs), same=bool(made and result and same_numbers(made[0], result[0])),
    )  # fmt: skip


def is_forward(graph: Side, entry: int) -> bool:
    """Whether a call's stack shows that it is of the forward pass, not of backward or an optimizer; False without a stack."""
    stack = graph.stack(entry)
    return bool(stack) and not any(mark in frame for frame in stack or () for mark in _AFTER_FORWARD)


def _find_after_forward(
    eager: Side, singles: Sequence[int], operators: Sequence[int], ends: Sequence[int]
) -> Iterable[int]:
    """Operators that may be of the backward pass or after it: an eager dump has other kinds of nodes for them, or none."""
    order = eager.dump.tree.order
    back = sorted(
        int(order[entry]) for entry in range(eager.dumped)
        if eager.direction[entry] == Direction.BACKWARD and eager.kind[entry] == NodeKind.API
    )  # fmt: skip
    for place, single in enumerate(singles):
        last = place + 1 == len(singles)
        here, next_ = int(order[single]), None if last else int(order[singles[place + 1]])
        if last or any(here < at < next_ for at in back if next_ is not None):
            yield from operators[ends[place] + 1 : len(operators) if last else ends[place + 1]]
