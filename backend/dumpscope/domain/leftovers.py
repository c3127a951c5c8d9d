"""The sentence of a call without a partner."""

from __future__ import annotations

from dumpscope.domain.facts import LEFTOVER_WORDS
from dumpscope.texts import Phrase, phrase


def said(word: str, beside: str | None) -> list[Phrase]:
    """word: one of LEFTOVER_WORDS; beside: the name of the call that it is told from, None at the beginning of the run"""
    if word not in LEFTOVER_WORDS:
        raise ValueError(word)
    return [phrase(f"leftover.{word}", beside=beside if beside is not None else [phrase("leftover.beginning")])]
