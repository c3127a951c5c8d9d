"""The table of calls that are nodes: function objects of torch to node prefixes and names, from support_wrap_ops.yaml."""

from __future__ import annotations

import fnmatch
import os
import sys
import types
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, Final

import torch
import torch.nn.functional

from dumpscope_capture.calls import bytecode, callsite
from dumpscope_capture.calls.name_lists import parse_lists
from dumpscope_capture.calls.registry import beyond, is_torchs_own, seen_name
from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import peek
from dumpscope_format.older_python import dataclass

PREFIXES: Final = {
    "functional": "Functional", "tensor": "Tensor", "torch": "Torch", "_VF": "VF", "torch_npu": "NPU", "aten": "Aten",
    "distributed": "Distributed", "npu_distributed": "Distributed", "mindspeed": "MindSpeed",
}  # fmt: skip
DEFAULT_LIST: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "support_wrap_ops.yaml")
_LISTS: Final = (*PREFIXES, "low_risk", "low_risk_of_msprobe", "core")


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """One listed call. name: last segment, as in node names; function: the object that is called
    custom: registered by the program with `register_custom_api`."""

    prefix: str
    name: str
    function: Any
    custom: bool = False

    @property
    def label(self) -> str:
        return f"{self.prefix}.{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrapList:
    """The yaml file: names by category, and the risk lists.

    msprobes_low_risk: names that compute and that msprobe leaves out
    left_out: names that are not recorded in any namespace
    """

    names: dict[str, tuple[str, ...]]
    low_risk: frozenset[str]
    msprobes_low_risk: frozenset[str]
    core: frozenset[str]
    left_out: frozenset[str] = frozenset()

    def with_changes(self, *, without: Collection[str] = (), tensor: Collection[str] = ()) -> WrapList:
        """A copy without some names, in every category, and with more methods of tensors."""
        names = {**self.names, "tensor": (*self.names["tensor"], *tensor)}
        return replace(
            self,
            names={key: tuple(one for one in some if one not in without) for key, some in names.items()},
            left_out=self.left_out | frozenset(without),
        )


def read_list(path: str | None = None) -> WrapList:
    """Read a list of calls, by default msprobe's. Raises ConfigError where the file is missing or malformed."""
    path = path or DEFAULT_LIST
    try:
        data = _read_document(path)
    except Exception as error:  # PyYAML may be missing, and so its type of error
        raise ConfigError("wrap_ops", path, f"a readable YAML file ({error})") from error
    if not isinstance(data, dict):
        raise ConfigError("wrap_ops", path, "a YAML object of lists")
    for key, names in data.items():
        if key in _LISTS and not (
            isinstance(names, (list, type(None))) and all(isinstance(name, str) for name in names or ())
        ):
            raise ConfigError(f"wrap_ops: {key}", names, "a list of names")
    lists = {key: tuple(data.get(key) or ()) for key in _LISTS}
    return WrapList(
        names={key: lists[key] for key in PREFIXES},
        low_risk=frozenset(lists["low_risk"]),
        msprobes_low_risk=frozenset(lists["low_risk_of_msprobe"]),
        core=frozenset(lists["core"]),
    )


def _read_document(path: str) -> Any:
    """Lists of names, or with PyYAML any YAML."""
    with open(path, encoding="utf-8") as stream:
        text = stream.read()
    try:
        return parse_lists(text)
    except ValueError as error:
        try:
            import yaml  # noqa: PLC0415 - it may be missing
        except ImportError:
            raise ValueError(f"{error}; other YAML needs PyYAML") from error
        return yaml.safe_load(text) or {}


def every_call(*, moves: bool = False) -> WrapList:
    """The shipped list and what the registry of torch has beyond it. moves: also calls that only move, view or make data"""
    shipped = read_list()
    more = beyond(moves=moves)
    kernels = frozenset(shipped.names["_VF"])  # `torch.rnn_tanh` is `torch._VF.rnn_tanh`, and keeps the name VF
    names = {
        key: (*listed, *(name for name in more.get(key, ()) if name not in kernels))
        for key, listed in shipped.names.items()
    }
    return replace(shipped, names=names)


class Table:
    """Finds the node name of a call that a function mode receives.

    namespaces: of `torch.ops` whose operators are nodes; `*` means all but torch's own
    missing: listed calls that the installed software lacks; unlisted: functions that are no nodes, and how often they were called
    """

    def __init__(self, wanted: WrapList, *, namespaces: Iterable[str] = ()) -> None:
        self._by_function: dict[Any, Api] = {}
        self._also: dict[Any, list[tuple[Any, Api]]] = {}
        self._methods: dict[str, Api] = {}
        self._branches: dict[types.FunctionType, Api] = {}
        self._fronts: dict[types.CodeType, Api] = {}
        self._namespaces = frozenset(namespaces)
        self._every_namespace = "*" in self._namespaces
        self._left_out = wanted.left_out
        self.unlisted: dict[Any, int] = {}
        found: set[str] = set()
        listed: list[str] = []
        for category, names in wanted.names.items():
            if category not in ("distributed", "npu_distributed"):
                for owner in owners(category):
                    listed += [f"{PREFIXES[category]}.{name}" for name in expand(owner, names)]
                    found |= self._add(category, owner, names)
        self.missing = tuple(name for name in dict.fromkeys(listed) if name not in found)

    def find(self, function: Any, frame: types.FrameType | None, args: tuple[Any, ...]) -> Api | None:
        """The listed call for a function that a mode received from `frame`; None, and counted, where it is not listed."""
        api = self._look_up(function, frame, args)
        if api is None:
            self.unlisted[function] = self.unlisted.get(function, 0) + 1
        return api

    def take_unlisted(self) -> dict[str, int]:
        """Names of the calls that were no nodes since the last time, and their numbers, most frequent first."""
        counted, self.unlisted = self.unlisted, {}
        found: dict[str, int] = {}
        for function, number in counted.items():
            name = seen_name(function)
            if name is not None:
                found[name] = found.get(name, 0) + number
        return dict(sorted(found.items(), key=lambda one: (-one[1], one[0])))

    def _look_up(self, function: Any, frame: types.FrameType | None, args: tuple[Any, ...]) -> Api | None:
        api = self._by_function.get(function)
        if api is None:
            if type(function) is types.MethodDescriptorType:
                return self._method(function, frame, args)
            return self._operator(function)
        if api.prefix == "Tensor":
            if api.name in callsite.OPERATORS and type(function) is types.MethodDescriptorType:
                return self._method(function, frame, args)
            if api.name in _REFLECTED and _is_operator(
                function, frame
            ):  # `2 / t` goes by another attribute than __rdiv__
                return self._methods.get(_REFLECTED[api.name])
        elif function in self._also:
            owner = callsite.namespace(api.name, frame)
            for other, sibling in self._also[function]:
                if owner is other:
                    return sibling
        if type(function) is types.FunctionType and function in self._branches:
            return self._branch(function, frame) or api
        return self._front(frame) or api

    def _branch(self, function: types.FunctionType, frame: types.FrameType | None) -> Api | None:
        """The listed function that called this one: `F.max_pool2d` calls `F.max_pool2d_with_indices` where indices are wanted."""
        own = callsite.frame_of(function, frame)
        chooser = self._branches[function]
        outer = own.f_back if own is not None else None
        return chooser if outer is not None and outer.f_code is chooser.function.__code__ else None

    def _front(self, frame: types.FrameType | None) -> Api | None:
        """A listed Python function that the mode does not see, as it only calls another: `F.sigmoid`, `F.upsample`."""
        return self._fronts.get(frame.f_code) if frame is not None else None

    def _method(self, function: Any, frame: types.FrameType | None, args: tuple[Any, ...]) -> Api | None:
        if frame is not None and frame.f_code in self._fronts:
            return self._fronts[frame.f_code]
        return self._methods.get(callsite.method_name(function.__name__, frame, args))

    def _operator(self, function: Any) -> Api | None:
        """Operators of `torch.ops` in the namespaces that are recorded. If the program named an overload of aten, it
        is part of the name: `add.Tensor`."""
        if not self._namespaces or not isinstance(function, (torch._ops.OpOverload, torch._ops.OpOverloadPacket)):
            return None
        packet: Any = getattr(function, "overloadpacket", function)
        space, _, name = str(packet._qualified_op_name).partition("::")
        wanted = space in self._namespaces or (self._every_namespace and not is_torchs_own(space))
        if not wanted or name in self._left_out:
            return None
        if space == "aten" and packet is not function:
            name = f"{name}.{function._overloadname}"
        api = Api(prefix=PREFIXES.get("torch_npu" if space == "npu" else space, space), name=name, function=function)
        self._by_function[function] = api
        return api

    def _add(self, category: str, owner: Any, names: Iterable[str]) -> set[str]:
        """Add the names that the owner has. Returns these names."""
        found: set[str] = set()
        for name in expand(owner, names):
            function = attribute(owner, name)
            if function is None or not callable(function):
                continue
            found.add(f"{PREFIXES[category]}.{name}")
            last = (
                function.__name__ if name.startswith("sparse.") else name.rsplit(".", 1)[-1]
            )  # `_sparse_mm` is not `mm`
            api = Api(prefix=PREFIXES[category], name=last, function=function)
            if category == "tensor":
                self._methods.setdefault(api.name, api)
            if isinstance(function, types.FunctionType) and not reaches_mode(function):
                self._fronts.setdefault(function.__code__, api)
            for chosen in _choices(function):
                self._branches.setdefault(chosen, api)
            try:
                known = self._by_function.setdefault(function, api)
            except TypeError:
                continue
            if known is not api and known.prefix != api.prefix:
                siblings = self._also.setdefault(function, [])
                siblings.append((owner if "." not in name else attribute(owner, name.rsplit(".", 1)[0]), api))
            elif (
                known is not api
                and known.name != api.name
                and "." not in name
                and not function.__name__.endswith(known.name)
            ):
                self._by_function[function] = api  # of two names of one object, the object's own
        return found


_REFLECTED: Final = {"__rdiv__": "__rtruediv__"}


def _is_operator(function: types.FunctionType, frame: types.FrameType | None) -> bool:
    own = callsite.frame_of(function, frame)
    return own is not None and bytecode.site(own.f_back).kind == "operator"


def _choices(function: Any) -> list[types.FunctionType]:
    """Python functions between which a dispatching closure chooses."""
    if not isinstance(function, types.FunctionType) or reaches_mode_directly(function):
        return []
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [inner for inner in cells if isinstance(inner, types.FunctionType)]


def optional() -> frozenset[str]:
    """Packages with listed calls that the program has imported by now."""
    return frozenset(name for name in ("torch_npu", "mindspeed.ops") if name in sys.modules)


def owners(category: str) -> list[Any]:
    """Namespaces that hold the names of a category; empty where the installed software lacks them."""
    if category == "functional":
        return [torch.nn.functional]
    if category == "tensor":
        return [torch.Tensor]
    if category == "torch":
        return [torch]
    if category == "_VF":
        return [torch._VF]
    if category == "aten":
        return [torch.ops.aten]
    if category == "distributed":
        return [torch.distributed, torch.distributed.distributed_c10d] if torch.distributed.is_available() else []
    npu = sys.modules.get("torch_npu")
    if category == "torch_npu" and npu is not None:
        return [npu, torch.ops.npu]
    if category == "npu_distributed" and npu is not None:
        return [owner for owner in (peek(npu, "distributed"),) if owner is not None]
    if category == "mindspeed":
        return [sys.modules["mindspeed.ops"]] if "mindspeed.ops" in sys.modules else []
    return []


def expand(owner: Any, names: Iterable[str]) -> list[str]:
    """Names, with each pattern replaced by the matching attributes of the owner."""
    found: list[str] = []
    for name in names:
        if "*" in name or "?" in name:
            head, _, last = name.rpartition(".")
            holders = (
                [("", owner)] if not head else [(f"{one}.", attribute(owner, one)) for one in _matching(owner, head)]
            )
            found += [
                f"{prefix}{one}" for prefix, holder in holders if holder is not None for one in _matching(holder, last)
            ]
        else:
            found.append(name)
    return found


def _matching(owner: Any, pattern: str) -> list[str]:
    return sorted(fnmatch.filter(dir(owner), pattern))


def attribute(owner: Any, dotted: str) -> Any:
    """`owner.a.b`, None where it does not exist."""
    for part in dotted.split("."):
        owner = peek(owner, part)
        if owner is None:
            return None
    return owner


def reaches_mode_directly(function: types.FunctionType) -> bool:
    """Whether a Python function itself offers its call to function modes."""
    return "handle_torch_function" in function.__code__.co_names


def reaches_mode(function: types.FunctionType) -> bool:
    """Whether a Python function offers its call to function modes, itself or (a closure) through the function it calls."""
    return reaches_mode_directly(function) or bool(function.__code__.co_freevars)
