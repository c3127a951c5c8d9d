"""Leaf records of node bodies, walked into columns.

One call costs about a microsecond a leaf: a tensor record with the usual keys is recognised by its key tuple, what repeats
(type, dtype, shape, requires_grad) is interned as one signature and spread into columns by numpy at the end. The numbers of a
leaf are added to one flat list, half as dear as a column for each, and become arrays now and then (`pack`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dumpscope.domain.records import STATISTICS, Float64, Int32, Items, Kind, Role, State
from dumpscope.readers.msprobe.json_decode import MARK, WORDS, canonical, plain_text, short
from dumpscope.readers.records.record_keys import KNOWN, KeyOrders, torch_dtype
from dumpscope.texts import say
from dumpscope_format.schema import TENSOR_KEYS

Signature = tuple[str, str | None, tuple[int, ...] | None, int | bool]

DEPTH_LIMIT: Final = 400
EXACT: Final = 2**53
MEMO: Final = 10_000

_KEYS: Final = TENSOR_KEYS
_KEYS_NAMED: Final = (*TENSOR_KEYS, "data_name")
_COLUMNS: Final = 8
"""Numbers of a leaf: node, role, path, kind, signature, data_name, hash, value."""
_MARKED: Final = {f"{MARK}NaN": math.nan, f"{MARK}Infinity": math.inf, f"{MARK}-Infinity": -math.inf}
_VALUE_KEYS: Final = ("type", "value")
_TEXTS: Final = {
    Role.INPUT: "input_args", Role.KWARG: "input_kwargs", Role.OUTPUT: "output", Role.PARAMETER: "parameters",
}  # fmt: skip

_TENSOR, _SCALAR, _NONE, _OPAQUE = (int(kind) for kind in (Kind.TENSOR, Kind.SCALAR, Kind.NONE, Kind.OPAQUE))
"""Codes as plain numbers: Python 3.11 looks a member of an enum up in Python, half a microsecond a leaf."""

Note = Callable[[str, str], None]
"""Called with a problem kind and a message about the node at hand."""


class Interned:
    """Distinct values in order of first appearance, with their codes."""

    __slots__ = ("codes", "values")

    def __init__(self) -> None:
        self.codes: dict[Any, int] = {}
        self.values: list[Any] = []

    def code(self, value: Any) -> int:
        code = self.codes.get(value)
        if code is None:
            code = self.codes[value] = len(self.values)
            self.values.append(value)
        return code


class Leaves:
    """Collects leaf records; `items()` gives the columns.

    note: where damaged records are reported
    rounded: set when a number looks like an integer beyond 64 bits that the fast parser turned into a float
    """

    def __init__(self, note: Note) -> None:
        self._note = note
        self.rounded = False
        self._numbers: list[int] = []  # _COLUMNS a leaf, of those that are not packed
        self._stats: list[float] = []  # four a leaf
        self._packed: list[tuple[Int32, Float64]] = []
        self._count = 0  # of packed leaves
        self._states: list[tuple[int, int]] = []  # (place in _stats, state) where the float alone does not say it
        self._blank: list[int] = []  # leaves without any statistic
        self._wide: dict[tuple[int, int], int] = {}
        self._known: dict[tuple[type, Any], int] = {}  # codes of values met before
        self._orders = KeyOrders()
        self._paths = Interned()
        self._signatures = Interned()
        self._hashes = Interned()
        self._values = Interned()
        self._data_names: list[str] = []
        self._places = [self._paths.code(str(number)) for number in range(16)]
        self._keys = _KEYS
        self._null = self._signatures.code(("null", None, None, -1))

    def __len__(self) -> int:
        return self._count + len(self._numbers) // _COLUMNS

    def pack(self) -> None:
        """Turn what was collected into arrays, which take a fifth of the memory; leaves before this cannot be cut any more."""
        self._count = len(self)
        self._packed.append((np.array(self._numbers, np.int32), np.array(self._stats, np.float64)))
        self._numbers, self._stats = [], []

    # -- walking -----------------------------------------------------------------------------------------------------

    def role(self, node: int, role: Role, value: Any) -> None:
        """Walk the value of one role of a node body: a list, an object (kwargs, namedtuple), or a lone record."""
        if type(value) is list:
            places = self._places
            for place, part in enumerate(value):
                if type(part) is dict and self._tensor(node, role, places[place] if place < 16 else -1, place, part):
                    continue
                self.walk(node, role, str(place), part, 1)
        elif type(value) is dict:
            if type(value.get("type")) is str:
                self.walk(node, role, "0", value, 1)
                return
            for key, part in value.items():
                if type(part) is dict and "shape" in part and self._tensor(node, role, self._paths.code(key), 0, part):
                    continue
                self.walk(node, role, key, part, 1)
        elif value is not None:
            key = _TEXTS.get(role, role.name.lower())
            self._note("wrong_type", say("readers.not_list_object", get=key, value=short(value)))

    def walk(self, node: int, role: Role, path: str, value: Any, depth: int) -> None:
        """Walk any value below a role; raises RecursionError past `DEPTH_LIMIT`."""
        if type(value) is dict:
            if type(value.get("type")) is str:
                self._record(node, role, path, value)
            elif type(value.get("class_type")) is str:
                self._operation(node, role, path, value)
            elif not value:
                self._add(node, role, path, _OPAQUE, self._signatures.code(("unknown", None, None, -1)))
            else:
                self._deeper(depth)
                head = f"{path}." if path else ""
                for key, part in value.items():
                    self.walk(node, role, f"{head}{key}", part, depth + 1)
        elif type(value) is list:
            if not value:
                self._scalar(node, role, path, "list", [])
                return
            self._deeper(depth)
            head = f"{path}." if path else ""
            for place, part in enumerate(value):
                self.walk(node, role, f"{head}{place}", part, depth + 1)
        elif value is None:
            self._add(node, role, path, _NONE, self._null)
        else:
            self._scalar(node, role, path, type(value).__name__, value)

    def _deeper(self, depth: int) -> None:
        if depth > DEPTH_LIMIT:
            raise RecursionError

    # -- records -----------------------------------------------------------------------------------------------------

    def _tensor(self, node: int, role: int, path: int, place: int, record: dict[str, Any]) -> bool:
        """Fast path: a tensor record with the usual keys whose four statistics are floats or marked words."""
        keys = tuple(record)
        name: Any = None
        check: Any = None
        value = -1
        if keys in (self._keys, _KEYS):
            self._keys = keys  # texts of the parser's own, which are compared the fastest
            type_, dtype, shape, top, low, mean, norm, grad = record.values()
        elif keys == _KEYS_NAMED:
            type_, dtype, shape, top, low, mean, norm, grad, name = record.values()
        else:
            order = self._orders[keys]
            if order is None:
                return False
            type_, dtype, shape, top, low, mean, norm, grad, *more = record.values()
            named, hashed, rest = order
            if named >= 0:
                name = more[named]
            if hashed >= 0:
                check = more[hashed]
            if rest:
                text = plain_text({key: more[at] for key, at in rest})
                if text is None:
                    return False
                value = self._values.code(text)
        try:
            if not (type(top) is float and type(low) is float and type(mean) is float and type(norm) is float):
                top, low, mean, norm = (_MARKED[part] if type(part) is str else part for part in (top, low, mean, norm))
                if not (type(top) is float and type(low) is float and type(mean) is float and type(norm) is float):
                    return False
            signature = self._signatures.codes.get((type_, dtype, tuple(shape), grad))
        except (TypeError, KeyError):
            return False
        if signature is None:
            return False  # the slow path checks it and interns it
        if (name is not None and type(name) is not str) or (check is not None and type(check) is not str):
            return False
        if path < 0:
            path = self._paths.code(str(place))
        file = hash_ = -1
        if name is not None:
            file = len(self._data_names)
            self._data_names.append(name)
        if check is not None:
            hash_ = self._hashes.code(check)
        self._numbers.extend((node, role, path, _TENSOR, signature, file, hash_, value))
        self._stats.extend((top, low, mean, norm))
        return True

    def _record(self, node: int, role: Role, path: str, record: dict[str, Any]) -> None:
        type_ = record["type"]
        if "dtype" not in record or "shape" not in record:
            if tuple(record) == _VALUE_KEYS:
                self._scalar(node, role, path, type_, record["value"])
            else:
                self._scalar(node, role, path, type_, {key: part for key, part in record.items() if key != "type"})
            return
        item = len(self)
        signature = self._signatures.code(self._signature_of(path, record))
        name = record.get("data_name")
        if name is not None and type(name) is not str:
            self._note("wrong_type", say("readers.data_name_not_text", path=f"{path!r}", name=short(name)))
            name = None
        for column, key in enumerate(STATISTICS):
            self._statistic(item, column, path, key, record.get(key), str(record["dtype"]))
        check = record.get("md5")
        hash_ = -1 if check is None else self._hashes.code(check if type(check) is str else canonical(check))
        extra = {key: part for key, part in record.items() if key not in KNOWN}
        value = self._values.code(canonical(extra)) if extra else -1
        self._add(node, role, path, _TENSOR, signature, name, hash_, value, blank=False)

    def _signature_of(self, path: str, record: dict[str, Any]) -> Signature:
        dtype, shape, grad = record["dtype"], record["shape"], record.get("requires_grad")
        if type(dtype) is not str:
            if dtype is not None:
                self._note("wrong_type", say("readers.dtype_not_text", path=f"{path!r}", dtype=short(dtype)))
            dtype = None
        sizes = None
        if type(shape) is list and all(type(size) is int and 0 <= size < 2**63 for size in shape):
            sizes = tuple(shape)
        elif shape is not None:
            self._note("wrong_type", say("readers.shape_not_list_sizes", path=f"{path!r}", shape=short(shape)))
        return record["type"], dtype, sizes, grad if type(grad) is bool else -1

    def _statistic(self, item: int, column: int, path: str, key: str, value: Any, dtype: str) -> None:
        kind = type(value)
        if kind is float:
            self._stats.append(value)
            if abs(value) >= 2.0**63 and math.isfinite(value) and "int" in dtype.lower():
                self.rounded = True
            return
        if kind is int or kind is bool:
            try:
                self._stats.append(float(value))
            except OverflowError:
                self._stats.append(math.inf if value > 0 else -math.inf)
                self._states.append((4 * item + column, State.FINITE))
            if abs(value) > EXACT:
                self._wide[item, column] = int(value)
            return
        if kind is str:
            word = WORDS.get(value.strip(f" \t{MARK}").lower())
            if word is not None:
                self._stats.append(word)
                return
            try:
                self._stats.append(float(value[:400]))
            except ValueError:
                pass
            else:
                self._note("wrong_type", say("readers.text_read_number", key=key, path=f"{path!r}", value=short(value)))
                return
        if value is not None:
            self._note("wrong_type", say("readers.not_number", key=key, path=f"{path!r}", value=short(value)))
        self._stats.append(0.0)
        self._states.append((4 * item + column, State.ABSENT))

    def _operation(self, node: int, role: Role, path: str, record: dict[str, Any]) -> None:
        """A batched point-to-point operation: its tensor is a leaf of its own."""
        rest = {key: part for key, part in record.items() if key not in ("class_type", "tensor")}
        self._scalar(node, role, path, record["class_type"], rest)
        if "tensor" in record:
            self.walk(node, role, f"{path}.tensor" if path else "tensor", record["tensor"], 1)

    def _scalar(self, node: int, role: Role, path: str, type_: str, value: Any) -> None:
        if type(value) is float and type_ == "int":
            self.rounded = True
        signature = self._signatures.code((type_, None, None, -1))
        kind = type(value)
        if (kind is not int and kind is not str and kind is not float) or not value:  # 0.0 and -0.0 are the same key
            code = self._values.code(canonical(value))
        elif (known := self._known.get((kind, value))) is not None:
            code = known
        else:
            code = self._values.code(canonical(value))
            if len(self._known) < MEMO:
                self._known[kind, value] = code
        self._add(node, role, path, _SCALAR, signature, value=code)

    def _add(
        self,
        node: int,
        role: Role,
        path: str,
        kind: int,
        signature: int,
        name: str | None = None,
        hash_: int = -1,
        value: int = -1,
        *,
        blank: bool = True,
    ) -> None:
        """blank: no statistic was stored; else they are added already"""
        if blank:
            self._blank.append(len(self))
            self._stats.extend((0.0, 0.0, 0.0, 0.0))
        file = -1
        if name is not None:
            file = len(self._data_names)
            self._data_names.append(name)
        self._numbers.extend((node, role, self._paths.code(path), kind, signature, file, hash_, value))

    # -- undo and result ---------------------------------------------------------------------------------------------

    def cut(self, size: int) -> None:
        """Forget all leaves from number `size` on (a node that turned out unreadable half-way)."""
        kept = size - self._count
        del self._numbers[_COLUMNS * kept :]
        del self._stats[4 * kept :]
        self._states = [entry for entry in self._states if entry[0] < 4 * size]
        while self._blank and self._blank[-1] >= size:
            self._blank.pop()
        self._wide = {place: value for place, value in self._wide.items() if place[0] < size}

    def name_files(self) -> bool:
        """Whether some of the leaves name tensor files."""
        return bool(self._data_names)

    def summary(self) -> str:
        """Which kind of leaves these are: "xor", "md5" or "statistics"."""
        if not self._hashes.values:
            return "statistics"
        return "xor" if any(text.startswith("0x") for text in self._hashes.values) else "md5"

    def items(self, renumber: np.ndarray[Any, np.dtype[np.int32]] | None = None) -> Items:
        """Columns of all leaves. renumber: new number of each node, -1 for nodes to leave out."""
        self.pack()
        count = len(self)
        numbers = np.concatenate([one for one, _ in self._packed]).reshape(count, _COLUMNS).T
        node, role, path, kind, signature, file, hashes, value = numbers
        stats = (
            np.concatenate([one for _, one in self._packed]).reshape(count, 4) + 0.0
        )  # no -0: a database stores it as 0
        state = np.full((count, 4), State.FINITE, np.uint8)
        state[np.isnan(stats)] = State.NAN
        state[stats == np.inf] = State.POS_INF
        state[stats == -np.inf] = State.NEG_INF
        state[np.array(self._blank, np.int64)] = State.ABSENT
        if self._states:
            places = np.array(self._states, np.int64)
            state.reshape(-1)[places[:, 0]] = places[:, 1]
        types, dtypes, shapes = Interned(), Interned(), Interned()
        table = np.array(
            [
                (
                    types.code(type_),
                    -1 if dtype is None else dtypes.code(torch_dtype(dtype)),
                    -1 if shape is None else shapes.code(shape),
                    int(grad),
                )
                for type_, dtype, shape, grad in self._signatures.values
            ],
            np.int32,
        )
        spread = table[signature].T
        keep: np.ndarray[Any, np.dtype[np.bool_]] | slice = slice(None)
        wide = self._wide
        if renumber is not None:
            node = renumber[node]
            mask = node >= 0
            place = np.cumsum(mask) - 1
            wide = {(int(place[item]), column): value for (item, column), value in wide.items() if mask[item]}
            keep = mask
        return Items(
            node=np.ascontiguousarray(node[keep]),
            role=role[keep].astype(np.int8),
            path=np.ascontiguousarray(path[keep]),
            paths=self._paths.values,
            kind=kind[keep].astype(np.int8),
            type=np.ascontiguousarray(spread[0][keep]),
            types=types.values,
            dtype=np.ascontiguousarray(spread[1][keep]),
            dtypes=dtypes.values,
            shape=np.ascontiguousarray(spread[2][keep]),
            shapes=shapes.values,
            stats=stats[keep],
            stat_state=state[keep],
            wide=wide,
            requires_grad=spread[3][keep].astype(np.int8),
            hash=np.ascontiguousarray(hashes[keep]),
            hashes=self._hashes.values,
            value=np.ascontiguousarray(value[keep]),
            values=self._values.values,
            data_name=np.ascontiguousarray(file[keep]),
            data_names=self._data_names,
            producer=np.full(len(node[keep]), -1, np.int32),
        )
