"""A user's rename rules: regular expressions over the target's labels, run in linear time (RE2)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import re2

from dumpscope.errors import UsageError
from dumpscope.texts import say

MOST: Final = 100
"""Rules of one comparison."""
LONGEST: Final = 2000
"""Characters of a rule."""
HINT: Final = say("match.write_pattern_replacement_pattern_re2s_syntax")
_PIECES: Final = re.compile(r"[^\\]+|\\[0-9]|\\.|\\$", re.DOTALL)
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """text: as the user wrote it; replacement: its literal texts, and the numbers of the groups between them"""

    text: str
    pattern: Any
    replacement: tuple[str | int, ...]

    def apply(self, label: str) -> str | None:
        """The label with every match of the pattern replaced; None if the pattern does not match."""
        pieces: list[str] = []
        done = 0
        try:
            for found in self.pattern.finditer(label):
                if found.end() > found.start():
                    pieces.append(label[done : found.start()])
                    pieces += [one if isinstance(one, str) else found.group(one) or "" for one in self.replacement]
                    done = found.end()
        except UnicodeEncodeError:  # a lone surrogate: no text
            return None
        return "".join([*pieces, label[done:]]) if done else None


def parse_renames(rules: Sequence[str]) -> tuple[Rename, ...]:
    """Read rename rules. Raises UsageError that names the rule and its fault."""
    if len(rules) > MOST:
        raise UsageError(
            say("match.rename_rules_most_taken", count=len(rules), most=MOST),
            hint=say("match.join_them_by_one_pattern"),
        )
    return tuple(map(_parse, rules))


def _parse(text: str) -> Rename:
    pattern, equals, replacement = text.rpartition("=")
    if not equals or not pattern or len(text) > LONGEST:
        raise UsageError(say("match.rename_not_pattern_replacement", text=f"{text[:200]!r}"), hint=HINT)
    try:
        compiled = re2.compile(pattern, _OPTIONS)
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0]
        said = why.decode("utf-8", "replace") if isinstance(why, bytes) else error
        raise UsageError(
            say("match.rename_no_regular_expression", text=f"{text[:200]!r}", said=said), hint=HINT
        ) from error
    pieces: list[str | int] = []
    for piece in _PIECES.findall(replacement):
        if not piece.startswith("\\"):
            pieces.append(piece)
        elif piece == "\\\\":
            pieces.append("\\")
        elif piece[1:].isdigit() and int(piece[1:]) <= compiled.groups:
            pieces.append(int(piece[1:]))
        else:
            raise UsageError(
                say("match.rename_holds_groups", text=f"{text[:200]!r}", piece=piece, groups=compiled.groups), hint=HINT
            )
    return Rename(text=text, pattern=compiled, replacement=tuple(pieces))


def rename(labels: Iterable[str], rules: Sequence[Rename]) -> dict[str, tuple[str, int]]:
    """Label -> its new label and the number of the first rule that matches it; only labels that change."""
    found: dict[str, tuple[str, int]] = {}
    for label in dict.fromkeys(labels) if rules else ():
        for number, rule in enumerate(rules):
            fresh = rule.apply(label)
            if fresh is not None:
                if fresh != label:
                    found[label] = fresh, number
                break
    return found
