"""JSON text as msprobe writes it: indented by one space, NaN and infinities as bare words, ASCII only."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from json.encoder import encode_basestring_ascii
from typing import Any, BinaryIO, Final

from dumpscope_format.schema import INDENT, STATISTIC_KEYS

_TENSOR: Final = ("type", "dtype", "shape", *STATISTIC_KEYS)
_WHOLE: Final = (*_TENSOR, "requires_grad")
_MEMO: Final = 10_000
_heads: dict[tuple[Any, ...] | None, str] = {}
_keys: dict[str, str] = {}


def render(value: Any, depth: int) -> str:
    """The text of `json.dumps(value, indent=1)`, indented to `depth`, in about half the time."""
    parts: list[str] = []
    _render(value, "\n" + " " * (INDENT * depth), parts)
    return "".join(parts)


def _render(value: Any, mark: str, parts: list[str]) -> None:
    kind = type(value)
    if kind is dict:
        if not value:
            parts.append("{}")
            return
        inner = mark + " "
        lead = "{" + inner
        members = iter(value.items())
        if "Norm" in value and (keys := tuple(value))[:7] == _TENSOR:
            parts.append(_tensor(value, inner))
            if keys == _WHOLE and type(grad := value["requires_grad"]) is bool:
                parts.append(f',{inner}"requires_grad": {"true" if grad else "false"}{mark}}}')
                return
            lead = "," + inner
            for _ in _TENSOR:
                next(members)
        for key, part in members:
            text = _keys.get(key) or _key(key)
            scalar = _scalar(part)
            if scalar is not None:
                parts.append(f"{lead}{text}{scalar}")
            else:
                parts.append(lead + text)
                _render(part, inner, parts)
            lead = "," + inner
        parts.append(mark + "}")
    elif kind is list or kind is tuple:
        if not value:
            parts.append("[]")
            return
        inner = mark + " "
        lead = "[" + inner
        for part in value:
            parts.append(lead)
            _render(part, inner, parts)
            lead = "," + inner
        parts.append(mark + "]")
    else:
        scalar = _scalar(value)
        parts.append(json.dumps(value) if scalar is None else scalar)


def _key(key: Any) -> str:
    """JSON text of a key and its colon, from a cache: a dump has few different keys."""
    text = encode_basestring_ascii(key if type(key) is str else str(key)) + ": "
    if type(key) is str and len(_keys) < _MEMO:
        _keys[key] = text
    return text


def _tensor(record: dict[str, Any], inner: str) -> str:
    """The keys up to Norm of a tensor's record, which make most of a dump."""
    type_, dtype, shape, top, low, mean, norm, *_ = record.values()
    key: tuple[Any, ...] | None = (type_, dtype, inner, *shape) if type(shape) is list else None
    try:
        head = _heads.get(key)
    except TypeError:
        key = head = None
    if head is None:
        pieces: list[str] = []
        _render({"type": type_, "dtype": dtype, "shape": shape}, inner[:-1], pieces)
        head = "".join(pieces)[: -len(inner)] + "," + inner
        if key is not None and len(_heads) < _MEMO and all(type(part) is int for part in shape):
            _heads[key] = head
    if (
        type(top) is type(low) is type(mean) is type(norm) is float
        and (top - top) + (low - low) + (mean - mean) + (norm - norm) == 0
    ):
        return f'{head}"Max": {top!r},{inner}"Min": {low!r},{inner}"Mean": {mean!r},{inner}"Norm": {norm!r}'
    text = _number
    return f'{head}"Max": {text(top)},{inner}"Min": {text(low)},{inner}"Mean": {text(mean)},{inner}"Norm": {text(norm)}'


def _number(number: Any) -> str:
    return float.__repr__(number) if type(number) is float and number - number == 0 else json.dumps(number)


def _scalar(value: Any) -> str | None:
    """JSON text of a plain value, None for a container or another type."""
    kind = type(value)
    if kind is str:
        return encode_basestring_ascii(value)
    if kind is float:
        if math.isnan(value):
            return "NaN"
        if value in _INFINITE:
            return _INFINITE[value]
        return float.__repr__(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return int.__repr__(value)
    return None


_INFINITE: Final = {float("inf"): "Infinity", float("-inf"): "-Infinity"}


def write_object(out: BinaryIO, members: Iterator[tuple[str, Any]]) -> None:
    """Write a JSON object member by member, indented as `render` does."""
    lead = "{\n "
    for key, value in members:
        out.write(f"{lead}{encode_basestring_ascii(key)}: {render(value, 1)}".encode("ascii"))
        lead = ",\n "
    out.write(b"{}" if lead[0] == "{" else b"\n}")
