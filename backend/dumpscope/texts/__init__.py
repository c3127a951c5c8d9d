"""Every sentence of the server, the command line, the reports and the web UI, by id and language.

`en.json` and `zh.json` beside this file are the catalogues (docs/texts.md); the web UI is built from the same two files.
A sentence travels as a `Phrase`: an id and the values that go into its template. English stands beside it, always.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import Any, Final, TypedDict, Union

Value = Union[int, str, "list[Phrase]"]

LANGUAGES: Final = ("en", "zh")
ENGLISH: Final = "en"


class Phrase(TypedDict):
    """Plain JSON. id: key of the catalogue's "said"; values: one per placeholder: a count, a written number or name, or
    phrases to enumerate."""

    id: str
    values: dict[str, Value]


class Text(str):
    """An English sentence that knows its phrase, so that it can still be said in another language.

    A plain `str` to all code that only passes it on. Pickles, and is written as JSON, like any string.
    """

    phrase: Phrase

    def __new__(cls, text: str, said: Phrase) -> Text:
        one = super().__new__(cls, text)
        one.phrase = said
        return one

    def __reduce__(self) -> tuple[type[Text], tuple[str, Phrase]]:
        return Text, (str.__str__(self), self.phrase)


_added: Final[dict[str, dict[str, str]]] = {language: {} for language in LANGUAGES}
_language: Final[ContextVar[str]] = ContextVar("language", default=ENGLISH)


@cache
def catalogue(language: str) -> dict[str, Any]:
    """One catalogue file: "said" by id, "ui" as the web UI nests it, and words that come without an id."""
    document: dict[str, Any] = json.loads(Path(__file__).with_name(f"{language}.json").read_bytes())
    return document


def add_sentences(language: str, sentences: Mapping[str, str]) -> None:
    """Sentences of an extension, by ids of its own. Raises ValueError for an id that is taken."""
    taken = sorted(catalogue(language)["said"].keys() & sentences.keys())
    if taken:
        raise ValueError(f"the sentence {taken[0]!r} is dumpscope's own")
    _added[language].update(sentences)


def phrase(id: str, /, **values: Value) -> Phrase:
    return {"id": id, "values": values}


def say(id: str, /, **values: object) -> str:
    """The English sentence, as a `Text`. Values that are a `Text` keep their phrase, the names of the two sides become
    words of the reader's language, and others are written as text."""
    said = phrase(id, **{name: as_value(value) for name, value in values.items()})
    return Text(render([said], ENGLISH), said)


def said_of(text: str | None) -> list[Phrase] | None:
    """The phrase behind a sentence, as it travels over the wire; None where it has none."""
    return [text.phrase] if isinstance(text, Text) else None


REMEDIES: Final = {"error.with_remedy": "remedy", "error.with_hint": "hint"}
"""Sentences that say what is wrong (`what`), and behind it what to do: the name of that part."""


def part_remedy(text: str) -> tuple[str, str | None]:
    """A sentence without what it says to do, also where that stands inside of it, and what to do, None where it says nothing."""
    if not isinstance(text, Text):
        return text, None
    remedies: list[list[Phrase]] = []

    def without(one: Phrase) -> Phrase:
        what, remedy = one["values"].get("what"), one["values"].get(REMEDIES.get(one["id"], ""))
        if isinstance(what, list) and len(what) == 1 and isinstance(remedy, list):
            remedies.append(remedy)
            return without(what[0])
        values: dict[str, Value] = {
            name: [without(part) for part in value] if isinstance(value, list) else value
            for name, value in one["values"].items()
        }
        return Phrase(id=one["id"], values=values)

    said = without(text.phrase)
    if not remedies:
        return text, None
    (remedy,) = remedies[0]
    return Text(render([said], ENGLISH), said), Text(render([remedy], ENGLISH), remedy)


def value_of(text: str, id: str, name: str) -> str:
    """The sentence that this value of a sentence with this id is; the sentence itself where it is another one."""
    value = text.phrase["values"].get(name) if isinstance(text, Text) and text.phrase["id"] == id else None
    return Text(render(value, ENGLISH), value[0]) if isinstance(value, list) and len(value) == 1 else text


def restore(text: str, said: Sequence[Phrase] | None) -> str:
    """A stored sentence as it was before it was stored."""
    return Text(text, said[0]) if said else text


def template(id: str, language: str = ENGLISH) -> str:
    """One template of the catalogue, with its placeholders. Raises KeyError."""
    return _templates(language)[id]


def english(phrases: Sequence[Phrase]) -> str:
    """The sentences one after the other."""
    return render(phrases, ENGLISH)


def render(phrases: Sequence[Phrase], language: str) -> str:
    """The sentences in a language, one after the other. Raises KeyError for an unknown id."""
    return ("" if language == "zh" else " ").join(_fill(one, language) for one in phrases)


def translate(text: str, said: Sequence[Phrase] | None = None, language: str | None = None) -> str:
    """`text` in the reader's language where its phrases are known, else as it is.

    said: where it is a plain string whose phrases lie beside it; language: that of this context unless given
    """
    language = language or current_language()
    phrases = said or said_of(text)
    if language == ENGLISH or not phrases:
        return text
    try:
        return render(phrases, language)
    except (KeyError, IndexError, TypeError):  # of a newer version, or of an extension without this language
        return text


def has(id: str) -> bool:
    """Whether the catalogue has a template of this id."""
    return id in _templates(ENGLISH)


def word(kind: str, value: str) -> str:
    """A word that programs read, such as a kind of origin, in the language of this context; itself where it has none."""
    return tell(f"{kind}.{value}") if has(f"{kind}.{value}") else value


def rendered(phrases: Sequence[Phrase]) -> str:
    """The sentences in the language of this context."""
    return render(phrases, current_language())


def current_language() -> str:
    return _language.get()


@contextmanager
def speaking(language: str) -> Iterator[None]:
    """Sentences of `tell`, `translate` and `rendered` within the block are in this language. Threads begin with English."""
    before = _language.set(language)
    try:
        yield
    finally:
        _language.reset(before)


def tell(id: str, /, **values: object) -> str:
    """A sentence in the language of this context (see `speaking`), as plain text."""
    return translate(say(id, **values))


def as_ranges(numbers: Iterable[int]) -> str:
    """Numbers in order, each once, with neighbours joined: "0-3, 6"."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


def on_ranks(rank: int, ranks: Iterable[int]) -> str:
    """Where an origin shows: "rank 0", or "ranks 0-3" where replicas show it alike."""
    all_ranks = {rank, *ranks}
    return say("domain.ranks", as_ranges=as_ranges(all_ranks)) if len(all_ranks) > 1 else say("domain.rank", rank=rank)


def language_of(*wishes: str | None) -> str:
    """The first wish that names a language we have ("zh_CN.UTF-8", "zh-CN", "en"), else English."""
    for wish in wishes:
        for language in LANGUAGES:
            if wish and wish.lower().startswith(language):
                return language
    return ENGLISH


def wished_language(option: str | None, environment: Mapping[str, str] = os.environ) -> str:
    """The language of the command line: --lang, else DUMPSCOPE_LANG, else the locale (LC_ALL, LC_MESSAGES, LANG)."""
    locale = next((environment[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if environment.get(name)), None)
    return language_of(option, environment.get("DUMPSCOPE_LANG"), locale)


def as_value(value: object) -> Value:
    """What a phrase keeps of a value: the phrase of a `Text`, the word for a side, phrases, else a count or text."""
    if isinstance(value, Text):
        return [value.phrase]
    if value in ("target", "golden"):
        return [phrase(f"side.{value}")]
    if isinstance(value, str):
        return value if value.isascii() else "".join(map(_whole, value))
    if isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
        return value
    return value if isinstance(value, int) else as_value(str(value))


def _whole(letter: str) -> str:
    """A letter as UTF-8 can hold it: names of files may contain bytes that are none."""
    return "\ufffd" if "\ud800" <= letter <= "\udfff" else letter


def _fill(one: Phrase, language: str) -> str:
    templates = _templates(language)
    values = {
        name: _listed([_fill(part, language) for part in value], language) if isinstance(value, list) else value
        for name, value in one["values"].items()
    }
    key = one["id"]
    template = templates.get(key)
    if template is None:
        template = templates[f"{key}_one" if values.get("count") == 1 else f"{key}_other"]
    return template.format_map(values)


def _templates(language: str) -> Mapping[str, str]:
    said: Mapping[str, str] = catalogue(language)["said"]
    return {**said, **_added[language]} if _added[language] else said


def _listed(parts: list[str], language: str) -> str:
    """An enumeration; in Chinese a part that is a whole sentence needs no comma after it."""
    return ("，" if language == "zh" else ", ").join(parts)
