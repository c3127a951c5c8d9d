"""Members of one big JSON object, streamed: the part of a dump file that holds one record a node.

A file is read in windows of a few megabytes and cut between members, so memory does not grow with the file and one damaged
record never spoils others. Two ways to cut, with the same result:

* lines: msprobe indents by one space, so a member of `data` starts a line with exactly two spaces and a quote (raw newlines
  cannot stand inside JSON strings). Finding the last such line of a window costs next to nothing.
* structure: brackets and quotes are counted with numpy. Works for compact files and any indent, about five times slower.

Each run of members is decoded at once by a fast strict parser and accepted only when it gives as many members as were cut;
otherwise its members are decoded one at a time, the last resort being the standard library's tolerant parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO, Final

import orjson

from dumpscope.errors import Problem
from dumpscope.readers.msprobe.json_decode import KEY, Member, mark_words, name_of, single, tolerant
from dumpscope.readers.msprobe.json_split import count_starts, line_cuts, pieces, placed, structure
from dumpscope.texts import say
from dumpscope_format.naming import parse

WINDOW: Final = 2 << 20
MEMBER_LIMIT: Final = 64 << 20
RESYNC_LIMIT: Final = 100
HEADER_LIMIT: Final = 1000
PROBLEM_LIMIT: Final = 100

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[{}\[\],]', re.DOTALL)
_RESYNC: Final = re.compile(
    rb',\s*(?="[^"\\\r\n]{1,512}\.(?:forward|backward|parameters_grad|debug)(?:\.\d{1,9})?"\s*:\s*[{\[n])'
)
_SPACE: Final = b" \t\r\n"
_BOM: Final = b"\xef\xbb\xbf"
_OPENING: Final = b"{["
_CLOSING: Final = b"}]"


class Members:
    """Iterate runs of (name, value) of the object at the top (`inside` None) or of the object at key `inside`.

    header: the other keys of the top object, complete once iteration has ended
    problems: damaged parts; `count` members were good
    lines: False forbids cutting by lines
    """

    def __init__(self, stream: BinaryIO, *, loc: str, inside: str | None = None, lines: bool = True) -> None:
        self.header: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.count = 0
        self._stream = stream
        self._loc = loc
        self._inside = inside
        self._depth = 1 if inside is None else 2
        self._may_use_lines = lines
        self._data = b""
        self._base = 0
        self._end = False
        self._found = False
        self._muted = 0
        self._resyncs = 0
        self._last_name = ""
        self._run = b""

    def exact(self, name: str) -> Any:
        """The value of a member of the present run again, by the tolerant parser: integers of any size stay exact.

        Raises KeyError where the run has no such member."""
        for piece in pieces(self._run, structure(self._run)[0]):
            if name_of(piece) == name[:200]:
                member = tolerant("{" + piece.decode("utf-8", "replace") + "}", [])
                if name in member:
                    return member[name]
        raise KeyError(name)

    def __iter__(self) -> Iterator[Iterable[Member]]:
        if not self._start():
            return
        if self._inside is None:
            self._found = True
            yield from self._members()
            self._finish()
            return
        while self._header_key():
            yield from self._members()
        if self._muted:
            self._note(0, "more", say("readers.more_problems_file_not_listed", muted=self._muted), always=True)

    # -- window ------------------------------------------------------------------------------------------------------

    def _more(self) -> bool:
        if self._end:
            return False
        try:
            chunk = self._stream.read(max(WINDOW, len(self._data)))
        except OSError as error:
            self._note(self._base + len(self._data), "unreadable", say("readers.reading_failed", reason=error.strerror))
            chunk = b""
        if not chunk:
            self._end = True
            return False
        self._data += chunk
        return True

    def _drop(self, size: int) -> None:
        self._data = self._data[size:]
        self._base += size

    def _peek(self, skip: bytes = _SPACE) -> bytes:
        """First byte that is not to be skipped; those before are dropped; b"" at the end."""
        while True:
            rest = self._data.lstrip(skip)
            self._base += len(self._data) - len(rest)
            self._data = rest
            if rest or not self._more():
                return rest[:1]

    def _note(self, offset: int, kind: str, message: str, *, always: bool = False, records: int | None = None) -> None:
        if len(self.problems) >= PROBLEM_LIMIT and not always:
            self._muted += 1
            return
        self.problems.append(Problem(loc=f"{self._loc}:byte {offset}", kind=kind, message=message, records=records))

    # -- head and tail -----------------------------------------------------------------------------------------------

    def _start(self) -> bool:
        self._more()
        if self._data.startswith(_BOM):
            self._note(0, "bom", say("readers.file_starts_byte_order_mark_skipped"))
            self._drop(len(_BOM))
        first = self._peek()
        if first == b"{":
            self._drop(1)
            return True
        if not first:
            self._note(0, "empty", say("readers.file_empty_run_probably_killed_before"))
        else:
            self._note(self._base, "unreadable", say("readers.file_does_not_hold_json_object"))
        return False

    def _header_key(self) -> bool:
        """Read header keys until the members begin; False when the file has ended."""
        while True:
            first = self._peek(_SPACE + b",")
            if first in (b"", b"}"):
                self._finish()
                return False
            if len(self.header) >= HEADER_LIMIT:
                self._note(self._base, "limit", say("readers.head_has_more_than_keys_what", header_limit=HEADER_LIMIT))
                return False
            match = KEY.match(self._data)
            while match is None and len(self._data) < WINDOW and self._more():
                match = KEY.match(self._data)
            if match is None:
                if self._resync(0):
                    return True
                self._note(self._base, "unreadable", say("readers.head_file_damaged_here_what_follows"))
                return False
            name = match[1].decode("utf-8", "replace")
            if parse(name).kind != "other" and self._may_resync():  # a stray bracket closed `data` too early
                self._note(
                    self._base, "structure", say("readers.stands_outside_data_read_nevertheless", name=f"{name!r}")
                )
                return True
            self._drop(match.end())
            if name == self._inside and self._peek() == b"{":
                if self._found:
                    self._note(self._base, "duplicate_key", say("readers.appears_twice_both_read", name=f"{name!r}"))
                self._drop(1)
                self._found = True
                return True
            self._header_value(name)

    def _header_value(self, name: str) -> None:
        """Decode a small value of the head; the window then begins after it."""
        while True:
            depth, stop = 0, -1
            for token in _TOKEN.finditer(self._data):
                first = token[0][:1]
                step = (first in _OPENING) - (first in _CLOSING)
                if depth == 0 and (step < 0 or token[0] == b","):
                    stop = token.start()
                    break
                depth += step
            if stop >= 0 or len(self._data) > MEMBER_LIMIT or not self._more():
                break
        text = self._data if stop < 0 else self._data[:stop]
        try:
            self.header[name] = tolerant(text.decode("utf-8", "replace"), [])
        except (ValueError, RecursionError) as error:
            self._note(self._base, "unreadable", say("readers.value_damaged", name=f"{name!r}", error=error))
        self._drop(len(text))

    def _finish(self) -> None:
        if not self._found:
            self._note(self._base, "missing", say("readers.file_has_no_object", inside=f"{self._inside!r}"))
        elif not self._peek():
            return self._truncated(self._base)
        else:
            self._drop(1)
            if self._peek():
                self._note(self._base, "trailing", say("readers.something_follows_end_json_object_not"))
        return None

    def _truncated(self, offset: int) -> None:
        if any(problem.kind == "truncated" for problem in self.problems):
            return
        where = say("readers.after", last_name=f"{self._last_name!r}") if self._last_name else ""
        self._note(
            offset,
            "truncated",
            say("readers.file_ends_too_early_complete_records", where=where, count=self.count),
            always=True,
            records=self.count,
        )

    # -- members -----------------------------------------------------------------------------------------------------

    def _members(self) -> Iterator[Iterable[Member]]:
        if self._may_use_lines and self._lines_fit():
            yield from self._by_lines()
        else:
            yield from self._by_structure()

    def _lines_fit(self) -> bool:
        """Whether cutting by lines gives the members: tried on the first 64 kB."""
        while len(self._data) < 1 << 16 and self._more():
            pass
        start = b"\n" + b" " * self._depth + b'"'
        if not self._data.startswith(start):
            return False
        sample = self._data[: 1 << 16]
        cut = sample.rfind(b"," + start)
        if cut < 0:
            return not self._end or self._data.find(b"\n" + b" " * (self._depth - 1) + b"}") >= 0
        sample = mark_words(sample[: cut + 2])[:-2]
        if self._decode(sample, sample.count(start)) is not None:
            return True
        by_lines = sum(_readable(piece) for piece in pieces(sample, line_cuts(sample, start)))
        by_structure = sum(_readable(piece) for piece in pieces(sample, structure(sample)[0]))
        return by_lines >= by_structure

    def _by_lines(self) -> Iterator[Iterable[Member]]:
        start = b"\n" + b" " * self._depth + b'"'
        closing = b"\n" + b" " * (self._depth - 1) + b"}"
        while True:
            cut = self._data.rfind(b"," + start)
            run = self._decode_lines(self._data[:cut], start) if cut > 0 else None
            if run is not None:  # whole members: the end of the object is not among them
                yield self._kept(run)
                self._drop(cut + 1)
                self._more()
                continue
            close = self._data.find(closing)
            if close >= 0:
                yield from self._run_of_lines(self._data[:close], start)
                self._drop(close + len(closing))
                if self._inside is None:  # leave the bracket to `_finish`
                    self._data, self._base = b"}" + self._data, self._base - 1
                return
            if cut > 0:
                yield from self._singly(self._data[:cut], line_cuts(self._data[:cut], start))
                self._drop(cut + 1)
            if len(self._data) > MEMBER_LIMIT:
                self._note(self._base, "limit", say("readers.one_record_larger_than_64_mb"))
                self._drop(len(self._data))
                self._end = True
            if not self._more():
                yield from self._rest()
                return

    def _run_of_lines(self, text: bytes, start: bytes) -> Iterator[Iterable[Member]]:
        run = self._decode_lines(text, start)
        if run is not None:
            yield self._kept(run)
        elif text.strip(_SPACE):
            yield from self._singly(text, line_cuts(text, start))

    def _decode_lines(self, text: bytes, start: bytes) -> dict[str, Any] | None:
        """The members of a text that is cut by lines; None where one of them is damaged."""
        self._run = text
        wanted = count_starts(text, start)
        run = self._decode(text, wanted)
        if run is None and (b"NaN" in text or b"Infinity" in text):
            run = self._decode(mark_words(text + b"\n")[:-1], wanted)
        return run

    def _by_structure(self) -> Iterator[Iterable[Member]]:
        while True:
            cuts, close = structure(self._data)
            if close >= 0:
                yield from self._run_of_structure(self._data[:close], cuts)
                self._drop(close if self._inside is None else close + 1)
                return
            if cuts:
                yield from self._run_of_structure(self._data[: cuts[-1]], cuts[:-1])
                self._drop(cuts[-1] + 1)
            if len(self._data) > MEMBER_LIMIT and not self._resync(1):
                self._note(self._base, "limit", say("readers.one_record_larger_than_64_mb"))
                self._drop(len(self._data))
                self._end = True
            if not self._more():
                if self._resync(1):
                    continue
                yield from self._rest()
                return

    def _run_of_structure(self, text: bytes, cuts: list[int]) -> Iterator[Iterable[Member]]:
        if not text.strip(_SPACE):
            return
        self._run = text
        run = self._decode(text, len(cuts) + 1)
        if run is not None:
            yield self._kept(run)
        else:
            yield from self._singly(text, cuts)

    def _resync(self, skip: int) -> bool:
        """Skip damage up to the next thing that looks like a node; False where there is none."""
        match = _RESYNC.search(self._data, skip)
        if match is None or not self._may_resync():
            return False
        self._note(self._base, "unreadable", say("readers.bytes_damaged_skipped", match=match.end()))
        self._drop(match.end())
        return True

    def _may_resync(self) -> bool:
        """Each resync costs a scan of what is left: a file that is damage all over must not take for ever."""
        self._resyncs += 1
        return self._resyncs <= RESYNC_LIMIT

    def _rest(self) -> Iterator[Iterable[Member]]:
        """The file has ended inside the members: keep the last one if it is whole."""
        end = self._base + len(self._data)
        text = self._data.rstrip(_SPACE + b"\0").rstrip(b",")
        self._base, self._data = end, b""
        member = None
        if text.strip(_SPACE) and text[-1] not in b"0123456789.+-eE":  # a number may have lost its last digits
            member, _ = single(text)
        if member is not None:
            yield self._kept(dict([member]))
        self._truncated(end)

    def _decode(self, text: bytes, wanted: int) -> dict[str, Any] | None:
        try:
            run: dict[str, Any] = orjson.loads(b"".join((b"{", text, b"}")))
        except orjson.JSONDecodeError:
            return None
        return run if len(run) == wanted else None

    def _kept(self, run: dict[str, Any]) -> Iterable[Member]:
        self.count += len(run)
        if run:
            self._last_name = next(reversed(run))
        return run.items()

    def _singly(self, text: bytes, cuts: list[int]) -> Iterator[Iterable[Member]]:
        """Decode members one at a time; inside a damaged one look for the next thing that is a node."""
        offset = self._base
        waiting = [(offset + at, piece) for at, piece in placed(text, cuts)][::-1]
        while waiting:
            offset, piece = waiting.pop()
            member, reasons = single(piece)
            for reason in reasons:
                self._note(offset, reason, say(_REASONS[reason], name=f"{name_of(piece)!r}"))
            if member is not None:
                self.count += 1
                self._last_name = member[0]
                yield [member]
                continue
            match = _RESYNC.search(piece, 1)
            if match is not None and self._may_resync():
                rest = piece[match.end() :]
                inner, close = structure(rest)
                inside = placed(rest if close < 0 else rest[:close], inner)
                waiting += [(offset + match.end() + at, part) for at, part in inside][::-1]


_REASONS: Final = {
    "encoding": "readers.bad_text",
    "number": "readers.long_number",
    "nesting": "readers.too_deep",
    "unreadable": "readers.damaged_record",
}


def _readable(piece: bytes) -> bool:
    return single(piece)[0] is not None
