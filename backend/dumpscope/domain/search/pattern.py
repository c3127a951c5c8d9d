"""Regular expressions of a search, `/softmax\\.(1|3)/`: read, held to linear time, and refused with the place of the fault."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import re2

from dumpscope.texts import say

LARGEST: Final = 2000
"""Steps of a compiled pattern; a larger one would take seconds for the names of a large run."""
_MEMORY: Final = 1 << 20
_FORM: Final = re.compile(r"/(?P<body>(?:[^/\\]|\\.)+)/(?P<fold>i?)", re.DOTALL)

FAULTS: Final = {
    "invalid escape sequence": say("pattern.escape"),
    "invalid character class": say("pattern.class"),
    "invalid character class range": say("pattern.class"),
    "missing ]": say("pattern.bracket_open"),
    "missing )": say("pattern.parenthesis_open"),
    "unexpected )": say("pattern.parenthesis_closed"),
    "trailing \\": say("pattern.backslash"),
    "no argument for repetition operator": say("pattern.nothing_repeated"),
    "bad repetition operator": say("pattern.repeated_twice"),
    "invalid repetition size": say("pattern.repetition"),
    "invalid perl operator": say("pattern.group"),
    "invalid named capture group": say("pattern.group"),
}
"""What RE2 says is wrong with a pattern, in the reader's words."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """Names that the expression matches somewhere; fold: letters of either case."""

    text: str
    fold: bool = False
    negated: bool = False

    def matcher(self) -> Callable[[str], bool]:
        """Says whether a name matches, in time linear in it. Raises PatternFault."""
        search = _compiled(self).search
        return lambda name: search(name) is not None


class PatternFault(Exception):
    """what: what is wrong; place: the character of the pattern, from 0"""

    def __init__(self, what: str, place: int) -> None:
        super().__init__(what)
        self.what, self.place = what, place


def is_pattern(body: str) -> bool:
    """Whether a term is meant as an expression."""
    return body.startswith("/")


def read_pattern(body: str, negated: bool) -> Pattern:
    """The expression of a term `/.../` or `/.../i`. Raises PatternFault."""
    form = _FORM.fullmatch(body)
    if form is None:
        raise PatternFault(say("pattern.no_end"), len(body) - 1)
    pattern = Pattern(form["body"], bool(form["fold"]), negated)
    try:
        _compiled(pattern)
    except PatternFault as fault:
        raise PatternFault(fault.what, fault.place + 1) from None
    return pattern


def _compiled(pattern: Pattern) -> re2._Regexp:
    options = re2.Options()
    options.log_errors = False
    options.max_mem = _MEMORY
    options.never_capture = True
    options.case_sensitive = not pattern.fold
    try:
        compiled = re2.compile(pattern.text, options)
    except UnicodeEncodeError as error:
        raise PatternFault(say("pattern.class"), error.start) from None
    except re2.error as error:
        said = error.args[0]
        said = said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)
        raise _fault(said, pattern.text) from None
    if compiled.programsize > LARGEST:
        raise PatternFault(say("pattern.too_large"), 0)
    return compiled


def _fault(said: str, text: str) -> PatternFault:
    """RE2 names a fault and the part of the pattern that has it."""
    kind, _colon, part = said.partition(": ")
    what = FAULTS.get(kind, say("pattern.other", said=said))
    if kind in ("missing )", "trailing \\"):  # the part is all of it
        return PatternFault(what, len(text) - 1)
    if kind == "unexpected )":  # and here
        return PatternFault(what, _closing(text))
    return PatternFault(what, max(text.find(part), 0) if part else 0)


def _closing(text: str) -> int:
    """Place of the first parenthesis that closes none."""
    depth = 0
    for found in re.finditer(r"\\.|\[\]?(?:\\.|[^\]\\])*\]|[()]", text, re.DOTALL):
        depth += {"(": 1, ")": -1}.get(found[0], 0)
        if depth < 0:
            return found.start()
    return 0
