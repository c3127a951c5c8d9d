"""Sentences as data: the id of a template and the values that go into it, so that a reader's language is chosen last.

English is rendered here, from `dumpscope.domain.english`; the web UI holds the same ids in Chinese.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict, Union

from dumpscope.domain.english import ENGLISH

Value = Union[int, str, "list[Phrase]"]


class Phrase(TypedDict):
    """Plain JSON. id: key of ENGLISH; values: one per placeholder: a count, a written number or name, or phrases to enumerate."""

    id: str
    values: dict[str, Value]


def phrase(id: str, /, **values: Value) -> Phrase:
    return {"id": id, "values": values}


def english(phrases: Sequence[Phrase]) -> str:
    """The sentences one after the other."""
    return " ".join(map(_render, phrases))


def _render(one: Phrase) -> str:
    values = {
        name: ", ".join(map(_render, value)) if isinstance(value, list) else value
        for name, value in one["values"].items()
    }
    return ENGLISH[one["id"]].format_map(values)
