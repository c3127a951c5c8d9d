"""Activation logs of torchtitan (`rank_0_activations.log` of its numerics tools): a block of lines for each operator.

    [layers.0.w1/op_0_mm]
      Shape: torch.Size([80, 32]), Dtype: torch.float32
      L2 norm: 2.920497e+01
      Min: -1.603230e+00
      Max: 1.837667e+00
      Mean: 4.774006e-03
      Output hash: 1.202688e+03
      Input hashes: 1.038719e+03, 6.534727e+01
      Input producers: layers.0.norm/op_3_mul;
      Location: common/feed_forward.py:7
      Phase: backward

Of an argument the log holds the sum of the magnitudes (a "hash") and, in newer logs, who made it. Where that sum is still the
maker's, the argument is the maker's result, and has its numbers here; of other arguments there are none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.domain.records import RankDump, RankRef, Role, Traits
from dumpscope.readers.recordings.rank_builder import RankBuilder, tensor_record
from dumpscope.readers.recordings.rank_logs import LogFormat
from dumpscope.readers.regular_file import open_regular
from dumpscope.readers.text_lines import raw_lines
from dumpscope.texts import say
from dumpscope_format.naming import DirectionWord

LAYOUT: Final = "torchtitan"
TRAITS: Final = Traits(all_arguments=False, stacks_inside=True, bare_modules=True)

_HEADER: Final = re.compile(r"\[(.*)/op_([0-9]{1,9})_(\w+)\]")
_FIELD: Final = re.compile(r"\s+([A-Z][A-Za-z0-9 ]*): *(.*)")
_SHAPE: Final = re.compile(r"torch\.Size\(\[([0-9, ]*)\]\), Dtype: (torch\.\w+)")
_LOCATION: Final = re.compile(r"(.+):([0-9]{1,9})")
_FIRST: Final = re.compile(rb"(?:\xef\xbb\xbf)?Total captured activations: [0-9]+\r?\n")
_LEVEL: Final = "L2"
_NO_MODULE: Final = "<none>"


@dataclass(slots=True)
class _Block:
    """One operator. place: line of its header; fields: its lines by what they begin with"""

    key: str
    module: str
    operator: str
    place: int
    fields: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Result:
    """What a block put out. record: of dump.json; number: of the record in the rank; check: sum of its magnitudes as text"""

    record: dict[str, Any]
    number: int
    check: str | None


class TorchtitanFormat(LogFormat):
    name = LAYOUT
    traits = TRAITS
    file_words = say("readers.torchtitan_log")

    @staticmethod
    def looks_like_log(head: bytes) -> bool:
        return looks_like_log(head)

    def read_rank(self, ref: RankRef, *, follow_stored_path: bool) -> RankDump:
        return _Reader(ref).read()


def looks_like_log(head: bytes) -> bool:
    """Whether a file that begins so is an activation log of torchtitan."""
    return _FIRST.match(head) is not None


class _Reader:
    def __init__(self, ref: RankRef) -> None:
        self.rank = RankBuilder(ref)
        self.modules: dict[tuple[str, DirectionWord], str] = {}
        self.results: dict[str, _Result] = {}
        self.told = False

    def read(self) -> RankDump:
        for block in self._blocks():
            self._add(block)
        if not len(self.rank):
            self.rank.note("no_data", say("readers.log_holds_no_operator_step"))
        return self.rank.build(level=_LEVEL, framework="pytorch", layout=LAYOUT, told=self.told)

    def _blocks(self) -> Iterator[_Block]:
        current: _Block | None = None
        ended = True
        with open_regular(self.rank.ref.dump_json) as stream:
            note = lambda place, kind, message: self.rank.note(kind, message, place)  # noqa: E731
            for number, raw in raw_lines(stream, note):
                ended = raw.endswith(b"\n")
                line = raw.decode("utf-8", "replace").rstrip("\r\n")
                if found := _HEADER.fullmatch(line):
                    if current is not None:
                        yield current
                    current = _Block(line[1:-1], found[1], found[3], number)
                elif current is not None and (found := _FIELD.fullmatch(line)):
                    current.fields[found[1]] = found[2]
        if current is not None:
            if not ended:
                self.rank.note("truncated", say("readers.last_line_not_whole"), f"line {current.place}")
            yield current

    def _add(self, block: _Block) -> None:
        way: DirectionWord = "backward" if block.fields.get("Phase") == "backward" else "forward"
        node = self.rank.add_call(
            "Aten", block.operator, way=way, inside=self._module(block.module, way), stack=_stack(block)
        )
        makers = [key.strip() for key in block.fields.get("Input producers", "").split(";")]
        checks = [text.strip() for text in block.fields.get("Input hashes", "").split(",") if text.strip()]
        for place, check in enumerate(checks):
            made = self.results.get(makers[place]) if place < len(makers) else None
            if made is not None and made.check == check:
                self.rank.put(node, Role.INPUT, str(place), made.record, producer=made.number)
            else:
                self.rank.put(node, Role.INPUT, str(place), tensor_record(None, None))
        self._result(node, block)

    def _result(self, node: int, block: _Block) -> None:
        checks = block.fields.get("Output hash") or block.fields.get("L1 norm")
        check = (
            None if checks is None else checks.partition(",")[0].strip()
        )  # the numbers are those of the first result
        shape = _SHAPE.fullmatch(block.fields.get("Shape", ""))
        if shape is None and check is None:
            return
        sizes = None if shape is None else [int(size) for size in shape[1].split(",") if size.strip()]
        numbers = {
            key: self._number(block, name)
            for key, name in (("Max", "Max"), ("Min", "Min"), ("Mean", "Mean"), ("Norm", "L2 norm"))
        }
        self.told = self.told or any(value is not None for value in numbers.values())
        record = tensor_record(None if shape is None else shape[2], sizes, **numbers)
        number = self.rank.put(node, Role.OUTPUT, "0", record)
        self.results[block.key] = _Result(record, number, check)

    def _number(self, block: _Block, name: str) -> float | None:
        text = block.fields.get(name)
        if text is None:
            return None
        try:
            return float(text)
        except ValueError:
            self.rank.note(
                "wrong_type", say("readers.not_number_in_line", key=name, value=text[:40]), f"line {block.place}"
            )
            return None

    def _module(self, path: str, way: DirectionWord) -> str | None:
        """The entry of a module, made with those around it; each stands once a direction, for its operators are not told apart
        by the call that they belong to."""
        if path in ("", _NO_MODULE):
            return None
        entry = self.modules.get((path, way))
        if entry is None:
            above = self._module(path.rpartition(".")[0], way)
            entry = self.modules[path, way] = self.rank.enter(path, way=way, inside=above)
        return entry


def _stack(block: _Block) -> tuple[str, ...]:
    found = _LOCATION.fullmatch(block.fields.get("Location", ""))
    return (f"File {found[1]}, line {found[2]}, in <unknown>",) if found else ()


TORCHTITAN: Final = TorchtitanFormat()
