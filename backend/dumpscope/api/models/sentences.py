"""Sentences as they travel: English beside the phrases behind it, so that a page can say them in its own language."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dumpscope.api.models import schemas
from dumpscope.errors import Problem
from dumpscope.texts import Phrase

PROBLEMS: Final = 200
"""Problems of a dump or comparison that an answer lists."""


def problem(one: Problem) -> schemas.Problem:
    return schemas.Problem(
        loc=one.loc,
        kind=one.kind,
        message=one.message,
        said=None if one.said is None else schemas.Phrase.model_validate(one.said),
    )


def optional_phrases(said: Sequence[Phrase] | None) -> list[schemas.Phrase] | None:
    return None if said is None else phrases(said)


def problems(found: Sequence[Problem]) -> list[schemas.Problem]:
    return [problem(one) for one in found[:PROBLEMS]]


def phrases(said: Sequence[Phrase]) -> list[schemas.Phrase]:
    return [schemas.Phrase.model_validate(one) for one in said]
