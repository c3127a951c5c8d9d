"""The search language of call lists: `api:linear err>1e-2 class:origin,amplifier -relu "two words"`, parsed to terms.

A term is a word (part of a name), an expression (`search.pattern`) or a key with values; all terms have to hold, `-` before one
turns it round. What looks like a term with a key that there is not is an error, not a search for its text: it would find
nothing, and silently.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.search.pattern import Pattern, PatternFault, is_pattern, read_pattern
from dumpscope.errors import UsageError
from dumpscope.texts import say

WORD_KEYS: Final = (
    "name", "api", "class", "verdict", "match", "kind", "direction", "left", "note", "alone", "reads", "feeds", "module", "line",
    "dtype", "shape", "micro",
)  # fmt: skip
"""Keys whose values are words: `key:value` or `key:one,another`."""
NUMBER_KEYS: Final = ("err", "in", "score", "inscore", "ratio", "confidence", "order")
"""Keys whose values are numbers: `key>1`, `key<=1e-2`, `key:1..5`, `key>5%`."""
ELSEWHERE: Final = {"rank": say("domain.rank_chosen_beside_search"), "step": say("domain.step_chosen_beside_search")}

LONGEST: Final = 64
"""Terms of a search; more are refused."""

_TOKEN: Final = re.compile(r'(?P<text>-?/(?:[^/\\]|\\.)+/i?(?=\s|$)|(?:[^\s"]|"[^"]*"?)+)', re.DOTALL)
_KEYED: Final = re.compile(r"(?P<key>[A-Za-z]+)(?P<op>:|>=|<=|>|<|=)(?P<rest>.*)", re.DOTALL)
_HINT: Final = say(
    "domain.known_put_text_holds_such_sign",
    names=", ".join(f"{key}:" for key in WORD_KEYS),
    names2=", ".join(NUMBER_KEYS),
)


@dataclass(frozen=True, slots=True)
class Words:
    """Any of these words; key: one of WORD_KEYS, "" for part of a name."""

    key: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Bounds:
    """A number from `low` to `high`, each inclusive or not; key: one of NUMBER_KEYS."""

    key: str
    low: float = -math.inf
    high: float = math.inf
    low_open: bool = False
    high_open: bool = False
    negated: bool = False


Term = Words | Bounds | Pattern


def parse(text: str) -> list[Term]:
    """The terms of a search. Raises UsageError that names the term, its place and what would be right."""
    found = [_term(match["text"], match.start() + 1) for match in _TOKEN.finditer(text)]
    if len(found) > LONGEST:
        raise UsageError(say("domain.search_has_terms", count=len(found)), hint=say("domain.most", longest=LONGEST))
    return [term for term in found if term is not None]


def _term(token: str, place: int) -> Term | None:
    negated = token.startswith("-") and len(token) > 1
    body = token[1:] if negated else token
    if is_pattern(body):
        try:
            return read_pattern(body, negated)
        except PatternFault as fault:
            raise _wrong(token, place + len(token) - len(body) + fault.place, fault.what, say("pattern.hint")) from None
    keyed = None if body.startswith('"') else _KEYED.fullmatch(body)
    if keyed is None:
        word = _unquoted(body)
        return Words("", (word,), negated) if word else None
    key, op, rest = keyed["key"].lower(), keyed["op"], keyed["rest"]
    if key in WORD_KEYS:
        if op not in (":", "="):
            raise _wrong(token, place, say("domain.takes_words_not", key=key, op=op))
        values = tuple(filter(None, map(_unquoted, [rest] if key == "shape" else _split(rest))))
        if not values:
            raise _wrong(token, place, say("domain.word_missing_after", key=key, op=op))
        return Words(key, values, negated)
    if key in NUMBER_KEYS:
        return _bounds(key, op, rest, negated, token, place)
    raise _wrong(token, place, ELSEWHERE.get(key, f"there is no {key}{op}"))


def _bounds(key: str, op: str, rest: str, negated: bool, token: str, place: int) -> Bounds:
    if not rest:
        raise _wrong(token, place, say("domain.number_missing_after", key=key, op=op))
    low, dots, high = rest.partition("..")
    if op in (":", "=") and dots:
        return Bounds(
            key,
            _number(low, token, place) if low else -math.inf,
            _number(high, token, place) if high else math.inf,
            negated=negated,
        )
    value = _number(rest, token, place)
    if op in (":", "="):
        return Bounds(key, value, value, negated=negated)
    if op.startswith(">"):
        return Bounds(key, low=value, low_open=op == ">", negated=negated)
    return Bounds(key, high=value, high_open=op == "<", negated=negated)


def _number(text: str, token: str, place: int) -> float:
    share = text.endswith("%")
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        value = math.nan
    if math.isnan(value):
        raise _wrong(token, place, say("domain.not_number", text=f"{text!r}"))
    return value / 100 if share else value


def _split(text: str) -> list[str]:
    """At commas outside quotes."""
    return re.findall(r'(?:[^,"]|"[^"]*"?)+', text)


def _unquoted(text: str) -> str:
    return text.replace('"', "")


def _wrong(token: str, place: int, what: str, hint: str = _HINT) -> UsageError:
    return UsageError(say("domain.character_search", what=what, token=f"{token!r}", place=place), hint=hint)
