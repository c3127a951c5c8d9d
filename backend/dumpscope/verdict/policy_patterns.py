"""Regular expressions that a user wrote: run in time linear in the text, whatever they are (RE2, no backtracking)."""

from __future__ import annotations

from collections.abc import Callable

import re2

from dumpscope.errors import UsageError
from dumpscope.texts import say

_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


def compiled(pattern: str, where: str) -> Callable[[str], bool]:
    """Tells whether a text holds the pattern somewhere. where: key that holds it, for the error.

    Raises UsageError that names both for what is no regular expression, or one that cannot be run in linear time
    (backreferences, looking around).
    """
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0]
        raise UsageError(
            say(
                "verdict.policy_holds_which_cannot_used_regular",
                where=where,
                pattern=f"{pattern[:200]!r}",
                part=why.decode("utf-8", "replace") if isinstance(why, bytes) else error,
            ),
            hint=say("verdict.write_re2s_syntax_which_has_no"),
        ) from error
    return lambda text: search(text.encode("utf-8", "replace").decode()) is not None
