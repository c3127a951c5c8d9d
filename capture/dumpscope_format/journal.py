"""Append-only record log of one rank folder, and its replay after a crash.

`dump.journal` starts with `MAGIC`, then come frames: kind (1 byte), payload length and CRC-32 of kind and payload (both
little-endian uint32), payload.

    H  JSON object: head of dump.json                       N  a node as it will stand in dump.json: `"name": {...}`
    S  JSON [stack id, frames]                              L  JSON [name, parent], a line of construct.json
    T  JSON [stack id, name], the stack of a node           F  empty: all before this lies in dump.json

Every frame is handed to the kernel by one unbuffered write as soon as it is known: what was written survives the end of the
process by any signal, `os._exit` included. Nothing is synced to the disk: a power loss may cost the last seconds. A node or link
named again replaces the older one. Replay stops at the first frame that is not whole.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator
from dataclasses import field
from json.decoder import scanstring  # type: ignore[attr-defined]  # public, but typeshed lacks it
from json.encoder import encode_basestring_ascii
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from zlib import crc32

from dumpscope_format.older_python import dataclass
from dumpscope_format.rendering import render, write_object
from dumpscope_format.schema import HEADER_KEYS

if TYPE_CHECKING:
    from typing import TypeAlias

JOURNAL: Final = "dump.journal"
MAGIC: Final = b"DSJRNL1\n"
NODE_DEPTH: Final = 2
"""Depth of a node's record in dump.json, in steps of `INDENT`."""

_FRAME: Final = struct.Struct("<cII")
_FLUSHED: Final = _FRAME.pack(b"F", 0, crc32(b"F"))
_KINDS: Final = b"HNSLTF"
_AHEAD: Final = 1 << 20
_KIND_CHECKS: Final = {bytes((kind,)): crc32(bytes((kind,))) for kind in _KINDS}

Place: TypeAlias = "tuple[int, int]"
"""Offset and length of a node's text in the journal."""


@dataclass(slots=True, kw_only=True)
class Contents:
    """What a journal holds; node texts stay in the file.

    places: byte range of each node's text, in completion order
    stacks: node names of each call stack
    parents: construct.json
    flushed: nothing was added since all of this was written to dump.json
    end: length of the whole part of the file in bytes
    damaged: bytes behind it
    """

    header: dict[str, Any] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict)
    stacks: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    parents: dict[str, Any] = field(default_factory=dict)
    flushed: bool = True
    end: int = len(MAGIC)
    damaged: int = 0

    def write_dump(self, out: BinaryIO, journal: int) -> None:
        """Write dump.json (or debug.json): the nodes' texts are copied from the journal's file descriptor."""
        head = [f'\n "{key}": {render(self.header.get(key), 1)},' for key in HEADER_KEYS if key != "data"]
        head += [
            f"\n {encode_basestring_ascii(key)}: {render(value, 1)},"
            for key, value in self.header.items()
            if key not in HEADER_KEYS
        ]
        out.write(f'{{{"".join(head)}\n "data": {{'.encode("ascii"))
        if not self.places:
            out.write(b"}\n}")
            return
        mark = b"\n  "
        texts, start = b"", 0
        for offset, length in self.places.values():
            if offset < start or offset + length > start + len(texts):
                texts, start = _read(journal, offset, length), offset
            out.write(mark)
            out.write(texts[offset - start : offset - start + length])
            mark = b",\n  "
        out.write(b"\n }\n}")

    def write_stack(self, out: BinaryIO) -> None:
        """Write stack.json in its grouped form: `{"0": [[nodes], [frames]]}`."""
        write_object(
            out, ((str(place), [names, list(frames)]) for place, (frames, names) in enumerate(self.stacks.items()))
        )

    def write_construct(self, out: BinaryIO) -> None:
        write_object(out, iter(self.parents.items()))


class Writer:
    """One open journal. Not safe for threads: its owner holds a lock.

    Raises OSError where the file cannot be made or written; a frame is then wholly absent, and the next may be tried.
    """

    def __init__(self, folder: str | os.PathLike[str], header: dict[str, Any]) -> None:
        self.path = os.path.join(os.fspath(folder), JOURNAL)
        self.contents = Contents(header=header, flushed=False)
        self._stacks: dict[tuple[str, ...], int] = {}
        self.handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        self.contents.end = 0
        try:
            self._write(MAGIC + _frame(b"H", _json(header)))
        except OSError:
            os.close(self.handle)
            raise

    def node(
        self, name: str, body: Any, *, stack: tuple[str, ...] | None = None, linked: bool = False, parent: Any = None
    ) -> None:
        """Add a finished node; a later one of the same name takes its place. linked: and its line of construct.json."""
        quoted = encode_basestring_ascii(name)
        frames = [_link(quoted, parent)] if linked else []
        if stack is not None:
            number = self._stacks.get(stack)
            if number is None:
                number = len(self._stacks)
                frames.append(_frame(b"S", _json([number, stack])))
            frames.append(_frame(b"T", f"[{number},{quoted}]".encode("ascii")))
        text = f"{quoted}: {render(body, NODE_DEPTH)}".encode("ascii")
        frames.append(_frame(b"N", text))
        self._write(b"".join(frames))
        contents = self.contents
        contents.places[name] = (contents.end - len(text), len(text))
        if linked:
            contents.parents[name] = parent
        if stack is not None:
            self._stacks.setdefault(stack, len(self._stacks))
            names = contents.stacks.setdefault(stack, [])
            if name not in names[-1:]:
                names.append(name)

    def link(self, name: str, parent: Any) -> None:
        """Add a line of construct.json: a node and its parent."""
        self._write(_link(encode_basestring_ascii(name), parent))
        self.contents.parents[name] = parent

    def head(self, header: dict[str, Any]) -> None:
        """Replace the head."""
        self._write(_frame(b"H", _json(header)))
        self.contents.header = header

    def flushed(self) -> None:
        """Note that dump.json now holds all of it."""
        self._write(_FLUSHED)
        self.contents.flushed = True

    def close(self, *, remove: bool) -> None:
        """Close the file. remove: its content is in dump.json and it is no longer needed."""
        if self.handle >= 0:
            os.close(self.handle)
            self.handle = -1
        if remove:
            os.unlink(self.path)

    def _write(self, data: bytes) -> None:
        written = 0
        try:
            while written < len(data):
                written += os.pwrite(self.handle, data[written:] if written else data, self.contents.end + written)
        except OSError:
            if written:
                os.ftruncate(self.handle, self.contents.end)
            raise
        self.contents.end += written
        self.contents.flushed = False


def replay_stream(stream: BinaryIO) -> Contents:
    """What a journal holds, up to the first frame that is not whole; a senseless frame ends it as a torn one does."""
    contents = Contents()
    size = os.fstat(stream.fileno()).st_size
    if stream.read(len(MAGIC)) != MAGIC:
        contents.end, contents.damaged = 0, size
        return contents
    stacks: dict[int, tuple[str, ...]] = {}
    of: dict[str, int] = {}
    for kind, payload, end in _frames(stream, size):
        try:
            _take(contents, kind, payload, end, stacks, of)
        except (ValueError, TypeError, RecursionError):
            break
        contents.flushed = kind == b"F"
        contents.end = end
    for name, number in of.items():
        if name in contents.places and number in stacks:
            contents.stacks.setdefault(stacks[number], []).append(name)
    contents.damaged = size - contents.end
    return contents


def _take(
    contents: Contents, kind: bytes, payload: bytes, end: int, stacks: dict[int, tuple[str, ...]], of: dict[str, int]
) -> None:
    """Take one frame in. Raises ValueError or TypeError where its payload is not of its kind."""
    if kind == b"N":
        if payload[:1] != b'"':
            raise ValueError("a node starts with its name")
        name, _ = scanstring(payload.decode("ascii"), 1)
        contents.places[name] = (end - len(payload), len(payload))
    elif kind == b"L":
        name, parent = json.loads(payload)
        contents.parents[_text(name)] = parent
    elif kind == b"T":
        number, name = json.loads(payload)
        of[_text(name)] = int(number)
    elif kind == b"S":
        number, frames = json.loads(payload)
        stacks[int(number)] = tuple(_text(line) for line in frames)
    elif kind == b"H":
        header = json.loads(payload)
        if not isinstance(header, dict):
            raise TypeError("a head is an object")
        contents.header = header


def _read(journal: int, offset: int, length: int) -> bytes:
    """At least `length` bytes of a file descriptor, and some of what follows."""
    parts = []
    while length > 0:
        part = os.pread(journal, max(length, _AHEAD), offset)
        if not part:
            raise OSError("the journal became shorter")
        parts.append(part)
        offset += len(part)
        length -= len(part)
    return b"".join(parts)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def read_header(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The first head of a journal, {} where it has none or cannot be read."""
    contents = Contents()
    try:
        with open(path, "rb") as stream:
            if stream.read(len(MAGIC)) == MAGIC:
                for kind, payload, end in _frames(stream, os.fstat(stream.fileno()).st_size):
                    _take(contents, kind, payload, end, {}, {})
                    break
    except (OSError, ValueError, TypeError, RecursionError):
        return {}
    return contents.header


def is_flushed(path: str | os.PathLike[str]) -> bool:
    """Whether a journal ends in the note that dump.json holds all of it; reads a few bytes only."""
    try:
        with open(path, "rb") as stream:
            stream.seek(-len(_FLUSHED), os.SEEK_END)
            return stream.read() == _FLUSHED
    except OSError:
        return False


def count_nodes(path: str | os.PathLike[str], start: int = 0) -> tuple[int, int]:
    """(nodes between `start` and the last whole frame, offset of that frame's end), by the heads of frames alone.

    start: 0, or an offset that an earlier call returned. A node named again counts again. (0, 0) where the file cannot be read or
    is no journal.
    """
    count, place = 0, max(start, len(MAGIC))
    try:
        with open(path, "rb") as stream:
            size = os.fstat(stream.fileno()).st_size
            if stream.read(len(MAGIC)) != MAGIC:
                return 0, 0
            stream.seek(place)
            while True:
                head = stream.read(_FRAME.size)
                if len(head) < _FRAME.size:
                    break
                kind, length, _check = _FRAME.unpack(head)
                end = place + _FRAME.size + length
                if kind not in _KINDS or end > size:
                    break
                count += kind == b"N"
                place = end
                stream.seek(place)
    except OSError:
        return 0, 0
    return count, place


_encode: Final = json.JSONEncoder(separators=(",", ":")).encode


def _json(value: Any) -> bytes:
    return _encode(value).encode("ascii")


def _link(quoted: str, parent: Any) -> bytes:
    """A frame of construct.json's line. quoted: JSON text of the node's name."""
    text = "null" if parent is None else _encode(parent)
    return _frame(b"L", f"[{quoted},{text}]".encode("ascii"))


def _frame(kind: bytes, payload: bytes) -> bytes:
    return _FRAME.pack(kind, len(payload), crc32(payload, _KIND_CHECKS[kind])) + payload


def _frames(stream: BinaryIO, size: int) -> Iterator[tuple[bytes, bytes, int]]:
    """(kind, payload, offset of its end) of every whole frame."""
    place = len(MAGIC)
    while True:
        head = stream.read(_FRAME.size)
        if len(head) < _FRAME.size:
            return
        kind, length, check = _FRAME.unpack(head)
        place += _FRAME.size + length
        if kind not in _KINDS or place > size:
            return
        payload = stream.read(length)
        if len(payload) < length or crc32(payload, crc32(kind)) != check:
            return
        yield kind, payload, place
