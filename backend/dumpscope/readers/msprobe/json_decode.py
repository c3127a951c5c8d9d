"""Decoding of single JSON members, as strictly as possible and as tolerantly as needed; JSON text to store."""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

import orjson

INTEGER_DIGITS: Final = 4000  # below the interpreter's own limit for int(text)
MARK: Final = "\0"
"""Stands before NaN and Infinity where the bare words were turned into strings, so that they differ from a text "NaN"."""

_MARK_TEXT: Final = b"\\u0000"

KEY: Final = re.compile(rb'\s*"([^"\\]*(?:\\.[^"\\]*)*)"\s*:\s*', re.DOTALL)
_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_BARE: Final = [
    (b" " + word + tail, b' "\\u0000' + word + b'"' + tail)
    for word in (b"NaN", b"Infinity", b"-Infinity")
    for tail in (b",\n", b"\n")
]
WORDS: Final = {
    "nan": math.nan, "+nan": math.nan, "-nan": math.nan,
    "inf": math.inf, "+inf": math.inf, "infinity": math.inf, "+infinity": math.inf,
    "-inf": -math.inf, "-infinity": -math.inf,
}  # fmt: skip

Member = tuple[str, Any]


def mark_words(text: bytes) -> bytes:
    """Turn bare NaN and Infinity at line ends into marked strings; nothing inside a string can end a line."""
    for bare, marked in _BARE:
        text = text.replace(bare, marked)
    return text


def name_of(piece: bytes) -> str:
    match = KEY.match(piece)
    return match[1][:200].decode("utf-8", "replace") if match else "?"


def single(piece: bytes) -> tuple[Member | None, list[str]]:
    """One member of one piece of text, and what was wrong with it."""
    reasons: list[str] = []
    try:
        run = orjson.loads(b"{" + piece + b"}")
    except orjson.JSONDecodeError:
        try:
            text = piece.decode("utf-8")
        except UnicodeDecodeError:
            text = piece.decode("utf-8", "replace")
            reasons.append("encoding")
        try:
            run = tolerant("{" + text + "}", reasons)
        except RecursionError:
            return None, ["nesting"]
        except ValueError:
            return None, ["unreadable"]
    if not isinstance(run, dict) or len(run) != 1:
        return None, ["unreadable"]
    return next(iter(run.items())), reasons


def tolerant(text: str, reasons: list[str]) -> Any:
    """The standard library's parser: knows NaN and Infinity, control characters in strings and large integers."""

    def integer(digits: str) -> int | str:
        if len(digits) > INTEGER_DIGITS:
            if "number" not in reasons:
                reasons.append("number")
            return digits
        return int(digits)

    hook = _without_surrogates if _SURROGATE.search(text) else None  # a lone surrogate cannot be stored anywhere
    return json.loads(text, strict=False, parse_int=integer, object_pairs_hook=hook)


def _without_surrogates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    return {_clean(key): _clean(value) for key, value in pairs}


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    return [_clean(part) for part in value] if isinstance(value, list) else value


def canonical(value: Any) -> str:
    """Strict JSON text with sorted keys; numbers that are not finite become "nan", "inf", "-inf", huge integers digits."""
    try:
        return orjson.dumps(_strict(value), option=orjson.OPT_SORT_KEYS).decode()
    except (TypeError, ValueError):  # deeper than the fast writer goes, or an integer beyond 64 bits
        return json.dumps(_strict(value), sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def plain_text(value: Any) -> str | None:
    """`canonical` of a value that the fast parser gave, where it holds no number that is not finite; None where it may."""
    try:
        text = orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    except (TypeError, ValueError):
        return None
    return None if _MARK_TEXT in text else text.decode()


def _strict(value: Any) -> Any:
    if type(value) is float:
        if math.isfinite(value):
            return value
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    if type(value) is str and value.startswith(MARK):
        return _strict(WORDS.get(value[1:].lower(), value))
    if type(value) is list:
        return [_strict(part) for part in value]
    if type(value) is dict:
        return {key: _strict(part) for key, part in value.items()}
    return value


def short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
