"""What a call makes of all rows or positions of a pass together: a sum, a mean, or a value that no pass alone can make."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dumpscope.domain.records import Bool, Direction, Float64, Int8, Kind, NodeKind, Role, State
from dumpscope.match.operators.operations import moves_data
from dumpscope.parallel.passes.relation import Place
from dumpscope.parallel.passes.ways import Pieces, Way, in_backward

_EXACT: Final = 1e-4
"""Relative difference up to which a number is the sum or the mean of those of the passes."""
_ROUNDING: Final = 1e-6
"""The same where nothing says that it has to be."""
_EXTREMES: Final = frozenset({"all", "amax", "amin", "any", "max", "min"})
_ADDITIVE: Final = _EXTREMES | {
    "sum", "mean", "nansum", "nanmean", "count_nonzero", "cross_entropy", "binary_cross_entropy",
    "binary_cross_entropy_with_logits", "kl_div", "add", "add_", "__add__", "__radd__", "__iadd__", "sub", "sub_", "__sub__",
    "__rsub__", "__isub__", "mul", "mul_", "__mul__", "__rmul__", "__imul__", "div", "div_", "__truediv__", "__itruediv__",
    "neg", "neg_", "__neg__", "to", "type", "float", "double", "half", "bfloat16", "clone", "detach", "contiguous", "item",
    "view", "reshape", "squeeze", "unsqueeze", "lerp", "where",
}  # fmt: skip
"""What keeps a sum a sum and a mean a mean, beside all that is called a loss."""
_ALONG: Final = {
    "cumsum": 1, "cumsum_": 1, "cumprod": 1, "cumprod_": 1, "cummax": 1, "cummin": 1, "logcumsumexp": 1, "sort": 1,
    "argsort": 1, "msort": 0, "softmax": 1, "softmin": 1, "log_softmax": 1, "normalize": 2, "flip": 1, "roll": 2,
}  # fmt: skip
"""What makes an element of all along a dimension, with the place of that argument; 0: it has none."""
_DIMENSIONS: Final = ("axis", "dim", "dims")
_LAST: Final = frozenset({"argsort", "sort"})
"""Of which the last dimension is meant where none is given."""
_TOGETHER: Final = frozenset({
    "bincount", "histc", "logsumexp", "mean", "median", "nansum", "nanmean", "norm", "prod", "quantile", "std", "std_mean", "sum",
    "var", "var_mean", "vector_norm",
})  # fmt: skip
"""What takes dimensions away: where these are rows or positions, the result is one of all."""
_PERMUTES: Final = frozenset({"argsort", "flip", "msort", "roll", "sort"})
"""Of these the elements of the whole are the same and stand elsewhere, which statistics do not tell."""
_WHOLE: Final = frozenset({"argwhere", "bincount", "histc", "nonzero", "unique", "unique_consecutive"})
"""What takes a pass as a whole, whatever the shape of the result."""
_PRODUCTS: Final = frozenset({"__matmul__", "baddbmm", "bmm", "einsum", "matmul", "mm"})
_ATTENTION: Final = frozenset({"scaled_dot_product_attention"})
_TAKEN: Final = (Role.INPUT, Role.KWARG)


@dataclass(slots=True, kw_only=True)
class Mixed:
    """numbers: by item that is one, that of all passes
    weighted: each pass has a mean over numbers of its own as loss
    moved: items whose rows may stand elsewhere, since a call of their module sorted those of its pass, as for experts
    call: name of the first call of which the loss is made, and of whose result that of the whole is no sum and no mean; "" where
    there is none
    """

    numbers: dict[int, float] = field(default_factory=dict)
    weighted: bool = False
    moved: set[int] = field(default_factory=set)
    call: str = ""


def find_mixed(own: Pieces, rival: Pieces, way: Int8, places: dict[int, Place]) -> Mixed:
    """Numbers of all passes: the sum, the mean, the largest or the smallest, whichever the other side has. What is made of all
    rows in another way, and whatever follows from it, is marked as not comparable, unless it agrees."""
    finder = _Finder(own=own, rival=rival, way=way, places=places, backward=in_backward(own.dump))
    items = own.dump.items
    first = np.searchsorted(items.node, np.arange(len(own.dump.nodes) + 1)).tolist()
    for node in range(len(own.dump.nodes)):
        finder.look_at(node, range(first[node], first[node + 1]))
    return finder.found


@dataclass(slots=True, kw_only=True)
class _Finder:
    """tainted: contents that are made of all rows; sorted: those of them that hold the elements of a pass in another order
    around: entries of the tree, -1 for none, in which a call has sorted its pass
    kinds: how a number of this content becomes one"""

    own: Pieces
    rival: Pieces
    way: Int8
    places: dict[int, Place]
    backward: Bool
    tainted: set[int] = field(default_factory=set)
    sorted: set[int] = field(default_factory=set)
    around: set[int] = field(default_factory=set)
    kinds: dict[int, int] = field(default_factory=dict)
    found: Mixed = field(default_factory=Mixed)
    taught: set[tuple[int, int]] | None = None

    def look_at(self, node: int, rows: range) -> None:
        items = self.own.dump.items
        tensors = [item for item in rows if items.kind[item] == Kind.TENSOR and self.own.partner[item] >= 0]
        taken = [item for item in tensors if items.role[item] in _TAKEN]
        made = [item for item in tensors if items.role[item] == Role.OUTPUT]
        spoilt = False
        for item in taken:
            if self._counts_rows(item):
                self.way[item] = Way.SKIP
                self._taint(node, item)
            if self._holds(item, self.tainted):
                spoilt = True
                moved = self._holds(item, self.sorted)
                if self.way[item] not in (Way.SKIP, Way.NUMBER) and (moved or not self._agrees(item)):
                    self.way[item] = Way.SKIP
            if self.way[item] == Way.NUMBER:
                self._add_up(node, item, spoilt=self._holds(item, self.tainted), outputs=made)
        if self.backward[rows.start : rows.stop].any():
            for item in made:
                if self.way[item] == Way.NUMBER:
                    self._add_up(node, item, spoilt=spoilt, outputs=made)
            return
        api = self._api(node)
        mixes = bool(made) and (self._mixes(api, rows, taken) or self._takes_another_number(rows))
        alone = api in _WHOLE and self._takes_parts(taken)
        reduces = api in _TOGETHER or (api in _PRODUCTS and sum(self.way[item] == Way.JOIN for item in taken) > 1)
        for item in made:
            if self.way[item] == Way.NUMBER:
                self._add_up(node, item, spoilt=spoilt or self._holds(item, self.tainted), outputs=made)
                continue
            if alone or self.way[item] == Way.SKIP:
                self.way[item] = Way.SKIP
                if alone or spoilt or reduces or mixes:
                    self._taint(node, item)
                continue
            one = self.way[item] in (Way.COPY, Way.ENDS) and not moves_data(api)
            doubtful = spoilt or mixes or (one and self._takes_parts(taken))
            sorts = mixes and api in _PERMUTES
            if doubtful and (sorts or not self._agrees(item)):
                self.way[item] = Way.SKIP
                self._taint(node, item)
            if sorts:
                self.sorted.add(self._print(item))
                self.around.add(int(self.own.dump.tree.parent[node]))
        if self.around and self._is_inside(node):
            self.found.moved.update(item for item in tensors if self.way[item] == Way.JOIN)

    def _is_inside(self, node: int) -> bool:
        parent = self.own.dump.tree.parent
        above = int(parent[node])
        while above >= 0 and above not in self.around:
            above = int(parent[above])
        return above in self.around

    def _counts_rows(self, item: int) -> bool:
        """Whether an item holds whole numbers that every pass counts for itself, such as of which row a label is."""
        items, aligned = self.own.dump.items, self.own.aligned
        assert aligned is not None
        whole = "int" in items.dtypes[items.dtype[item]]
        joined = self.own.rows and self.way[item] == Way.JOIN and bool(aligned.same[item])
        return whole and joined and not self._agrees(item)

    def _takes_another_number(self, rows: range) -> bool:
        """Whether an argument is another number in every pass, and no count: it was computed of all that the pass took."""
        aligned, items = self.own.aligned, self.own.dump.items
        assert aligned is not None
        arguments = [item for item in rows if items.kind[item] == Kind.SCALAR and items.role[item] in _TAKEN]
        values = [
            items.values[items.value[item]] for item in arguments if items.value[item] >= 0 and not aligned.same[item]
        ]
        return any(type(json.loads(value)) is float for value in values)

    def _mixes(self, api: str, rows: range, taken: list[int]) -> bool:
        """Whether a call looks at all rows, or positions, of its pass for each of them."""
        items = self.own.dump.items
        if self.own.anew:  # each pass holds what came before it
            return False
        if api in _ATTENTION:  # keys of this pass alone, and not of those before it
            return any(self.way[item] == Way.JOIN and self.places[item].cut > 0 for item in taken[1:2])
        if api not in _ALONG or not taken or self.way[taken[0]] != Way.JOIN:
            return False
        cut, shape = self.places[taken[0]].cut, self.own.shapes(taken[0])[0]
        given = 0 if api == "msort" else None
        for item in rows:
            path = items.paths[items.path[item]]
            code = int(items.value[item])
            if items.kind[item] == Kind.TENSOR or items.role[item] not in _TAKEN or code < 0:
                continue
            if path in _DIMENSIONS or path == str(_ALONG[api]):
                given = json.loads(items.values[code])
        if given is None and api in _LAST:
            given = -1
        dims = given if isinstance(given, list) else [given]
        rank = len(shape or ())
        return any(type(one) is int and one % max(rank, 1) == cut for one in dims)

    def _takes_parts(self, taken: list[int]) -> bool:
        return any(self.way[item] in (Way.JOIN, Way.PASTE, Way.SKIP) for item in taken)

    def _agrees(self, item: int) -> bool:
        """Whether the whole is the other side's, as far as statistics tell; where they do not, nothing contradicts it."""
        way = Way(int(self.way[item]))
        mine, theirs = self.own.told(item, way), self.rival.told(int(self.own.partner[item]), way)
        if ((mine[1] == State.ABSENT) | (theirs[1] == State.ABSENT)).all():
            return True
        if (mine[1] != theirs[1]).any():
            return False
        known = mine[1] == State.FINITE
        largest = max(
            float(np.abs(mine[0][:2][known[:2]]).max(initial=0.0)),
            float(np.abs(theirs[0][:2][known[:2]]).max(initial=0.0)),
        )
        near = np.isclose(mine[0], theirs[0], rtol=_ROUNDING, atol=_ROUNDING * largest)
        return bool((near | ~known).all())

    def _holds(self, item: int, known: set[int] | dict[int, int]) -> bool:
        return bool(known) and self._print(item) in known

    def _print(self, item: int) -> int:
        aligned = self.own.aligned
        assert aligned is not None
        return hash(aligned.prints(item))

    def _taint(self, node: int, item: int) -> None:
        aligned, dump = self.own.aligned, self.own.dump
        assert aligned is not None
        if (aligned.states[:, item] != State.ABSENT).any() or (aligned.hashes[:, item] >= 0).any():
            self.tainted.add(self._print(item))
        learned = "float" in dump.items.dtypes[dump.items.dtype[item]] and self._has_backward(node)
        whole = aligned.sizes[0, item] == 1 or self.places.get(item, Place()).cut >= 0
        if learned and whole and self.way[item] == Way.SKIP and not self.found.call:
            self.found.call = dump.nodes.names[node]

    def _has_backward(self, node: int) -> bool:
        nodes = self.own.dump.nodes
        if self.taught is None:
            some = np.flatnonzero(nodes.direction == Direction.BACKWARD)
            self.taught = set(zip(nodes.label[some].tolist(), nodes.index[some].tolist(), strict=True))
        return (int(nodes.label[node]), int(nodes.index[node])) in self.taught

    def _api(self, node: int) -> str:
        nodes = self.own.dump.nodes
        label: str = nodes.labels[nodes.label[node]]
        return label.rpartition(".")[2]

    def _adds(self, node: int, outputs: list[int]) -> bool:
        """Whether the numbers that a call makes add up, or are means, if those that it takes do."""
        nodes = self.own.dump.nodes
        api = self._api(node)
        if nodes.kind[node] != NodeKind.MODULE:
            return api in _ADDITIVE or api.endswith("loss")
        return len(outputs) == 1 or nodes.label[node] == nodes.label[self._outermost()]

    def _outermost(self) -> int:
        nodes = self.own.dump.nodes
        modules = np.flatnonzero((nodes.kind == NodeKind.MODULE) & (nodes.direction == Direction.FORWARD))
        return int(modules[np.argmin(self.own.dump.tree.order[modules])])

    def _add_up(self, node: int, item: int, *, spoilt: bool, outputs: list[int]) -> None:
        """Decide what one number of all passes is."""
        own, rival, items = self.own, self.rival, self.own.dump.items
        sides = own.numbers(item), rival.numbers(int(own.partner[item]))
        if sides[0] is None or sides[1] is None:
            self.way[item] = Way.SKIP
            return
        mine, theirs = np.array(sides[0]), np.array(sides[1])
        output, floats = items.role[item] == Role.OUTPUT, "float" in items.dtypes[items.dtype[item]]
        given = {self.kinds[key] for key in map(self._print, self._numbers_of(node)) if key in self.kinds}
        wanted = [0, 1]
        if self._api(node) in _EXTREMES or not floats or given & {2, 3}:
            wanted += [2, 3]
        pairs = list(zip(_combine(mine, own.sizes), _combine(theirs, rival.sizes), strict=True))
        chosen = [(kind, *pairs[kind]) for kind in wanted]
        if self.backward[item] and len(set(sides[0])) == 1:
            chosen.append((4, float(mine[0]), float(theirs[0])))
        kind, number, other = min(chosen, key=lambda one: abs(one[1] - one[2]))
        error = abs(number - other)
        if error > _ROUNDING * abs(other) and floats and not self.backward[item]:
            unknown = not output and len(set(sides[0])) > 1 and not self._holds(item, self.kinds)
            if spoilt or unknown or (output and not self._adds(node, outputs)):
                self.way[item] = Way.SKIP
                if output or spoilt:
                    self._taint(node, item)
                return
            between = len(mine) > 1 and mine.min() < other < mine.max()
            between |= len(theirs) > 1 and theirs.min() < number < theirs.max()
            if error > _EXACT * abs(other) and between and self._takes_the_same(item):
                self.way[item], self.found.weighted = Way.SKIP, True
                self.tainted.add(self._print(item))
                return
        self.kinds[self._print(item)] = kind
        self.found.numbers[item] = float(number)

    def _numbers_of(self, node: int) -> list[int]:
        items = self.own.dump.items
        first, end = np.searchsorted(items.node, [node, node + 1]).tolist()
        return [item for item in range(first, end) if self.way[item] == Way.NUMBER]

    def _takes_the_same(self, item: int) -> bool:
        """Whether what the call of an item received is that of the other side, as far as extremes tell."""
        items, own, rival = self.own.dump.items, self.own, self.rival
        rows = np.flatnonzero((items.node == items.node[item]) & (items.role != Role.OUTPUT) & (self.way == Way.JOIN))
        for row in rows.tolist():
            mine, theirs = own.told(row, Way.JOIN), rival.told(int(own.partner[row]), Way.JOIN)
            known = (mine[1][:2] == State.FINITE) & (theirs[1][:2] == State.FINITE)
            if not (np.isclose(mine[0][:2], theirs[0][:2], rtol=_EXACT, atol=0) | ~known).all():
                return False
        return bool(len(rows))


def _combine(numbers: Float64, sizes: tuple[int, ...]) -> tuple[float, float, float, float]:
    """The sum, the mean, the largest and the smallest of a number of every pass."""
    weights = np.array(sizes) / sum(sizes)
    return float(numbers.sum()), float(numbers @ weights), float(numbers.max()), float(numbers.min())
