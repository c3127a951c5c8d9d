"""Rules of fused calls: the built-in file and a user's, read into patterns over operations."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from dumpscope.errors import UsageError
from dumpscope.match.operators.operations import operation
from dumpscope.match.renames.mapping_files import load_yaml
from dumpscope.texts import say

HINT: Final = say("match.write_name_docs_matching_md")
LONGEST: Final = 64
"""Words of a run."""


@dataclass(frozen=True, slots=True)
class Word:
    """One call of a run: any of these operations; it may be missing."""

    operations: frozenset[str]
    optional: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """fused: operations of the one call; runs: calls that do the same; own: from the user's file"""

    name: str
    fused: frozenset[str]
    runs: tuple[tuple[Word, ...], ...]
    own: bool


class Rules:
    """The user's rules, then the built-in ones, whose file is read when they are first asked for: two runs of one model have no
    fused calls."""

    __slots__ = ("_own",)

    def __init__(self, own: Sequence[Rule]) -> None:
        self._own = own

    def __iter__(self) -> Iterator[Rule]:
        yield from self._own
        yield from _built_in()


def load_rules(text: str | None) -> Rules:
    """The user's rules, then the built-in ones. Raises UsageError that names a rule of the user and its fault."""
    return Rules(_parse(text, own=True) if text else ())


@cache
def _built_in() -> tuple[Rule, ...]:
    return _parse(Path(__file__).with_suffix(".yaml").read_text("utf-8"), own=False)


def _parse(text: str, *, own: bool) -> tuple[Rule, ...]:
    rules = []
    for name, body in load_yaml(text, "fusion", HINT).items():
        if not isinstance(body, dict) or set(body) != {"fused", "runs"}:
            raise _wrong(name, say("match.must_hold_fused_runs_nothing_else"))
        fused, runs = _words(name, "fused", body["fused"]), body["runs"]
        if not isinstance(runs, list) or not runs:
            raise _wrong(name, say("match.runs_must_list_runs_each_list"))
        rules.append(
            Rule(
                name=str(name)[:200],
                fused=frozenset(map(operation, fused)),
                runs=tuple(tuple(map(_word, _words(name, "a run", run))) for run in runs),
                own=own,
            )
        )
        if any(all(word.optional for word in run) for run in rules[-1].runs):
            raise _wrong(name, say("match.run_needs_call_always_there_word"))
    return tuple(rules)


def _words(name: object, what: str, value: object) -> list[str]:
    if not isinstance(value, list) or not value or not all(isinstance(word, str) and word for word in value):
        raise _wrong(name, say("match.must_list_operations", what=what))
    if len(value) > LONGEST:
        raise _wrong(name, say("match.holds_more_than_operations", what=what, longest=LONGEST))
    return value


def _word(text: str) -> Word:
    optional = text.startswith("(") and text.endswith(")")
    names = (text[1:-1] if optional else text).split("|")
    return Word(frozenset(map(operation, names)), optional)


def _wrong(name: object, why: str) -> UsageError:
    return UsageError(say("match.fusion", name=f"{str(name)[:200]!r}", why=why), hint=HINT)


def run_ends(run: Sequence[Word], operations: Sequence[str], start: int) -> set[int]:
    """Positions at which a run that begins with `operations[start]` can end (one past its last call)."""
    ends = {start}
    for word in run:
        ends = {end + 1 for end in ends if end < len(operations) and operations[end] in word.operations} | (
            ends if word.optional else set()
        )
    return ends - {start}
