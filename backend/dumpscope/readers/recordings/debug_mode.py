"""Logs of PyTorch's DebugMode (`debug_string()`, torch 2.9 and newer): one line an operator, indented by the depth of the call.

      # File: train.py:16 in forward, code: return self.fc(x)
      [nn.Mod] Net.layers.0.fc
      aten::addmm(t$2: f32[8], t$0: f32[4, 8], t$3: f32[8, 8])  ->  t$4: f32[4, 8]  # {'input_hash': (...), 'hash': 16.7}

A number after `$` is the same for the same tensor: so who made an argument is known. A hash is the sum of the magnitudes in
float64 (`hash_fn="norm"`), which takes the place of the Norm here, or an integer (`"hash_tensor"`), kept as text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.domain.records import UNKNOWN_CLASS, RankDump, RankRef, Role, Traits
from dumpscope.readers.recordings.literals import read_literal, split_arguments
from dumpscope.readers.recordings.rank_builder import RankBuilder, tensor_record
from dumpscope.readers.recordings.rank_logs import LogFormat
from dumpscope.readers.regular_file import open_regular
from dumpscope.readers.text_lines import raw_lines
from dumpscope.texts import say

LAYOUT: Final = "DebugMode"
TRAITS: Final = Traits(magnitude_sum=True, stacks_inside=True, bare_modules=True)

DTYPES: Final = {
    "b8": "torch.bool", "u8": "torch.uint8", "u16": "torch.uint16", "u32": "torch.uint32", "u64": "torch.uint64",
    "i8": "torch.int8", "i16": "torch.int16", "i32": "torch.int32", "i64": "torch.int64", "f16": "torch.float16",
    "bf16": "torch.bfloat16", "f32": "torch.float32", "f64": "torch.float64", "c32": "torch.complex32",
    "c64": "torch.complex64", "c128": "torch.complex128", "f8e5m2": "torch.float8_e5m2",
    "f8e4m3fn": "torch.float8_e4m3fn", "f8e5m2fnuz": "torch.float8_e5m2fnuz", "f8e4m3fnuz": "torch.float8_e4m3fnuz",
    "f8e8m0fnu": "torch.float8_e8m0fnu", "f4e2m1fnx2": "torch.float4_e2m1fn_x2",
}  # fmt: skip
"""Torch's own short names of its dtypes."""

_TENSOR: Final = re.compile(r"(t|dt|ft)(?:\$([0-9]{1,9}))?: (\w+)\[([0-9, ]*)\](\{.*\})?(?:\| (.*))?", re.DOTALL)
_OPERATOR: Final = re.compile(r"(\w+)::(\w+(?:\.\w+)?)\(")
_HEADER: Final = re.compile(r"\[(nn\.Mod(?: \(compile(?: bwd)?\))?)\] (.+)")
_FRAME: Final = re.compile(r"# File: (.+):([0-9]{1,9}) in (.+?), code: (.*)")
_KERNEL: Final = re.compile(r"\[triton\] (\w+)\((.*)\)\s*")
_HASHES: Final = re.compile(r"# (pre|post)-kernel hashes: \{(.*)\}\s*")
_KEYWORD: Final = re.compile(r"([A-Za-z_]\w*)=(.*)", re.DOTALL)
_LOG: Final = "  # {"
_GIVES: Final = "  ->  "
_KNOWN: Final = re.compile(r"(?:\[[\w. ()]+\] |-> output: |redistribute_input|[\w.]+\(|<)")
"""Lines that DebugMode writes and that are no operator: functions of torch, regions, annotations."""
_LINE: Final = re.compile(
    rb"(?m)^ {2,}(?:\w+::\w+(?:\.\w+)?\(|\[triton\] \w+\(|\[nn\.Mod(?: \(compile(?: bwd)?\))?\] \S)"
)

_LEVEL: Final = "L2"


@dataclass(frozen=True, slots=True)
class _Tensor:
    dtype: str
    shape: tuple[int, ...]
    identity: int | None
    placements: str | None


@dataclass(slots=True)
class _Kernel:
    """A triton kernel whose hashes may follow on lines of their own. given: its arguments by name"""

    given: dict[str, Any]
    name: str
    indent: int
    hashes: dict[str, dict[str, Any]] = field(default_factory=dict)


class DebugModeFormat(LogFormat):
    name = LAYOUT
    traits = TRAITS
    file_words = say("readers.debug_mode_log")

    @staticmethod
    def looks_like_log(head: bytes) -> bool:
        return looks_like_log(head)

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return _Reader(ref).read()


def looks_like_log(head: bytes) -> bool:
    """Whether a file that begins so is a log of DebugMode."""
    return b"\0" not in head and _LINE.search(head) is not None


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.rank = RankBuilder(ref)
        self.stack: tuple[str, ...] = ()
        self.modules: list[tuple[int, str]] = []  # indent of the header, entry
        self.kernel: _Kernel | None = None
        self.made: dict[int, int] = {}  # identity -> number of the record that holds the tensor as it is now
        self.told = False
        self.unknown = 0
        self.first_unknown = ""
        self.place = ""

    def read(self) -> RankDump:
        ended = True
        with open_regular(self.rank.ref.dump_json) as stream:
            note = lambda place, kind, message: self.rank.note(kind, message, place)  # noqa: E731
            for number, raw in raw_lines(stream, note):
                ended = raw.endswith(b"\n")
                self.place = f"line {number}"
                self._line(raw.decode("utf-8", "replace").rstrip("\r\n"), ended)
        self._end_kernel()
        if self.unknown:
            self.rank.note("structure", say("readers.lines_not_understood", count=self.unknown), self.first_unknown)
        if not len(self.rank):
            self.rank.note("no_data", say("readers.log_holds_no_operator"))
        elif not self.told:
            self.rank.note("no_data", say("readers.log_without_hashes"))
        return self.rank.build(level=_LEVEL, framework="pytorch", layout=LAYOUT, told=self.told)

    def _line(self, line: str, ended: bool) -> None:
        text = line.lstrip(" ")
        if not text:
            return
        indent = len(line) - len(text)
        if found := _HASHES.fullmatch(text):
            if self.kernel is not None:
                self.kernel.hashes[found[1]] = _pairs(found[2])
            return
        self._end_kernel()
        if found := _FRAME.fullmatch(text):
            self.stack = (f"File {found[1]}, line {found[2]}, in {found[3]}, \n {found[4]}",)
        elif found := _HEADER.fullmatch(text):
            self._enter(indent, found[2], backward="bwd" in found[1])
        elif found := _KERNEL.fullmatch(text):
            self.kernel = _Kernel(dict(_arguments(found[2])[1]), found[1], indent)
        elif (found := _OPERATOR.match(text)) and self._operator(indent, found, text[found.end() :], ended):
            return
        elif not ended:
            self.rank.note("truncated", say("readers.last_line_not_whole"), self.place)
        elif _KNOWN.match(text) and not found:
            self._module(indent)  # operators inside a function of torch are deeper than its module
        else:
            self.unknown += 1
            self.first_unknown = self.first_unknown or self.place

    def _enter(self, indent: int, name: str, *, backward: bool) -> None:
        while self.modules and self.modules[-1][0] >= indent:
            self.modules.pop()
        above = self.modules[-1][1] if self.modules else None
        model, _, path = name.partition(".")
        entry = self.rank.enter(
            path, UNKNOWN_CLASS if path else model, way="backward" if backward else "forward", inside=above
        )
        self.modules.append((indent, entry))

    def _module(self, indent: int) -> str | None:
        """The module that an operator with this indent is in."""
        while self.modules and self.modules[-1][0] > indent:
            self.modules.pop()
        return self.modules[-1][1] if self.modules else None

    def _operator(self, indent: int, found: re.Match[str], rest: str, ended: bool) -> bool:
        """Add a call; False where its line is damaged. ended: the line is not the last of a file that was cut"""
        log: dict[str, Any] = {}
        if rest.endswith("}") and (cut := rest.rfind(_LOG)) >= 0:
            try:
                log = read_literal(rest[cut + len(_LOG) - 1 :])
            except ValueError:
                return False
            rest = rest[:cut]
        rest, arrow, result = rest.rpartition(_GIVES) if _GIVES in rest else (rest, "", "")
        if not rest.endswith(")"):
            return False
        made = _value(result)
        if type(made) is str and not ended:
            return False
        space, name = found[1], found[2]
        given, named = _arguments(rest[:-1])
        given_hash, named_hash = _pair(log.get("input_hash"))
        label = name if space == "aten" else f"{space}.{name}"
        node = self.rank.add_call("Aten", label, inside=self._module(indent), stack=self.stack)
        for place, value in enumerate(given):
            self._put(node, Role.INPUT, str(place), value, _at(given_hash, place))
        for key, value in named:
            self._put(node, Role.KWARG, key, value, named_hash.get(key) if isinstance(named_hash, dict) else None)
        if arrow:
            self._results(node, made, log.get("hash"))
        return True

    def _results(self, node: int, value: Any, hashed: Any) -> None:
        if isinstance(value, (list, tuple)):
            for place, part in enumerate(value):
                self._put(node, Role.OUTPUT, str(place), part, _at(hashed, place))
        else:
            self._put(node, Role.OUTPUT, "0", value, hashed)

    def _put(self, node: int, role: Role, path: str, value: Any, hashed: Any) -> None:
        if isinstance(value, (list, tuple)) and any(_holds_tensor(part) for part in value):
            for place, part in enumerate(value):
                self._put(node, role, f"{path}.{place}", part, _at(hashed, place))
            return
        if not isinstance(value, _Tensor):
            self.rank.put(node, role, path, _plain(value))
            return
        norm, check = _numbers(hashed)
        self.told = self.told or norm is not None or check is not None
        record = tensor_record(value.dtype, value.shape, Norm=norm, md5=check, placements=value.placements)
        made = -1 if value.identity is None or role is Role.OUTPUT else self.made.get(value.identity, -1)
        item = self.rank.put(node, role, path, record, producer=made)
        if role is Role.OUTPUT and value.identity is not None:
            self.made[value.identity] = item

    def _end_kernel(self) -> None:
        kernel, self.kernel = self.kernel, None
        if kernel is None:
            return
        before, after = kernel.hashes.get("pre", {}), kernel.hashes.get("post", {})
        node = self.rank.add_call("Triton", kernel.name, inside=self._module(kernel.indent), stack=self.stack)
        for key, value in kernel.given.items():
            if not _is_written_only(key):
                self._put(node, Role.KWARG, key, value, before.get(key))
        for key, value in kernel.given.items():
            if isinstance(value, _Tensor) and (_is_written(key) or before.get(key) != after.get(key)):
                self._put(node, Role.OUTPUT, key, value, after.get(key))


def _is_written(key: str) -> bool:
    """By inductor's names of the arguments of its kernels."""
    return key.startswith(("out_ptr", "in_out_ptr"))


def _is_written_only(key: str) -> bool:
    return key.startswith("out_ptr")


def _arguments(text: str) -> tuple[list[Any], list[tuple[str, Any]]]:
    """(positional, by name)"""
    given: list[Any] = []
    named: list[tuple[str, Any]] = []
    for part in split_arguments(text):
        found = _KEYWORD.fullmatch(part)
        if found:
            named.append((found[1], _value(found[2])))
        else:
            given.append(_value(part))
    return given, named


def _value(text: str) -> Any:
    """A printed value: a tensor, a literal, or the text itself."""
    found = _TENSOR.fullmatch(text)
    if found:
        return _tensor(found)
    try:
        return _deep(read_literal(text))
    except ValueError:
        return text


def _deep(value: Any) -> Any:
    """A literal in which tensors are texts."""
    if isinstance(value, str):
        found = _TENSOR.fullmatch(value)
        return _tensor(found) if found else value
    if isinstance(value, (list, tuple)):
        return [_deep(part) for part in value]
    return value


def _tensor(found: re.Match[str]) -> _Tensor:
    sizes = tuple(int(size) for size in found[4].split(",") if size.strip())
    return _Tensor(
        dtype=DTYPES.get(found[3], found[3]),
        shape=sizes,
        identity=None if found[2] is None else int(found[2]),
        placements=found[6],
    )


def _holds_tensor(value: Any) -> bool:
    return isinstance(value, _Tensor) or (isinstance(value, (list, tuple)) and any(map(_holds_tensor, value)))


def _plain(value: Any) -> Any:
    """A value as a record: containers as a list."""
    return [_plain(part) for part in value] if isinstance(value, (list, tuple)) else value


def _at(hashed: Any, place: int) -> Any:
    return hashed[place] if isinstance(hashed, (list, tuple)) and place < len(hashed) else None


def _pair(hashed: Any) -> tuple[Any, Any]:
    """(of the positional arguments, of those by name)"""
    return (hashed[0], hashed[1]) if isinstance(hashed, tuple) and len(hashed) == 2 else (None, None)


def _numbers(hashed: Any) -> tuple[float | None, str | None]:
    """(sum of magnitudes, hash) that stand for one tensor: one number, or one of each."""
    norm: float | None = None
    check: str | None = None
    for one in hashed if isinstance(hashed, (list, tuple)) else (hashed,):
        if type(one) is float:
            norm = one
        elif type(one) is int:
            check = str(one)
    return norm, check


def _pairs(text: str) -> dict[str, Any]:
    """`name: value, name: value`"""
    found: dict[str, Any] = {}
    for part in split_arguments(text):
        key, _, value = part.partition(": ")
        try:
            found[key] = read_literal(value)
        except ValueError:
            continue
    return found


DEBUG_MODE: Final = DebugModeFormat()
