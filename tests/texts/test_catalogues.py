"""One catalogue per language: both say the same, everything that is said is in them, and nothing else is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from dumpscope.texts import LANGUAGES, catalogue

ROOT = Path(__file__).resolve().parents[2]
CHINESE = re.compile("[\u4e00-\u9fff]")
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "backend" / "dumpscope").rglob("*.py")))
PAGE = "\n".join(
    path.read_text(encoding="utf-8")
    for path in sorted((ROOT / "frontend" / "src").rglob("*.ts*"))
    if path.name != "schema.d.ts"
)
PLURAL = re.compile(r"_(one|other)$")


def leaves(texts: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    for key, value in texts.items():
        if isinstance(value, str):
            yield before + key, value
        else:
            yield from leaves(value, f"{before}{key}.")


def placeholders(template: str) -> set[str]:
    return {name for _text, name, _spec, _conversion in Formatter().parse(template) if name}


@pytest.mark.parametrize("section", ["said", "ui"])
def test_both_languages_have_the_same_keys_with_the_same_placeholders(section: str) -> None:
    english, chinese = (dict(leaves(catalogue(language)[section])) for language in LANGUAGES)
    assert list(english) == list(chinese)
    for key, template in english.items():
        if key != "own.sentence":  # of another package's rule, which brings the text of each language as a value
            assert placeholders(chinese[key]) == placeholders(template), key
        assert chinese[key] or not template, key


def test_english_is_english() -> None:
    for section in ("said", "ui"):
        assert [key for key, text in leaves(catalogue("en")[section]) if CHINESE.search(text)] == []


def test_no_key_stands_twice_in_a_file() -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), [key for key, _ in pairs]
        return dict(pairs)

    for language in LANGUAGES:
        path = ROOT / "backend" / "dumpscope" / "texts" / f"{language}.json"
        json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=once)


def test_every_sentence_that_code_says_is_in_the_catalogue() -> None:
    known = catalogue("en")["said"].keys()
    said = set(re.findall(r"""\b(?:say|tell|phrase|template|catalogued)\(\s*["']([^"'{]+)["']""", CODE))
    assert len(said) > 800
    assert {key for key in said if key not in known and f"{key}_other" not in known} == set()
    counted = {word.replace(" ", "_") for word in re.findall(r"""plural\([^\n]*?["']([a-z ]+)["']\)""", CODE)}
    assert {f"count.{word}_{form}" for word in counted for form in ("one", "other")} <= known


def test_every_sentence_of_the_catalogue_is_said() -> None:
    literal = set(re.findall(r"""["']([\w./-]+)["']""", CODE))
    begun = {start for start in re.findall(r"""f["']([a-z_.]+[._])\{""", CODE) if "." in start}
    begun |= {f"{kind}." for kind in re.findall(r"""\bword\(\s*["']([\w.]+)["']""", CODE)}
    unused = [
        key
        for key in catalogue("en")["said"]
        if key not in literal
        and PLURAL.sub("", key) not in literal
        and key.removesuffix("_backward") not in literal
        and not any(key.startswith(start) for start in begun)
    ]
    assert unused == []


def test_every_text_of_the_page_is_shown() -> None:
    literal = set(re.findall(r"""["'`]([\w.-]+)["'`]""", PAGE))
    written = re.findall(r"`([\w.]+\.\$\{[^`]*)`", PAGE)
    computed = [re.compile(re.sub(r"\\\$\\\{.*?\\\}", r"[\\w-]+", re.escape(path))) for path in written]
    unused = [
        key
        for key, _ in leaves(catalogue("en")["ui"])
        if (plain := PLURAL.sub("", key)) not in literal
        and key not in literal
        and not any(path.fullmatch(plain) for path in computed)
    ]
    assert unused == []


def test_what_users_meet_is_made_by_id() -> None:
    """An error, its hint and a problem are never written out in the code."""
    kinds = (
        "DumpscopeError|UsageError|NotFoundError|ConflictError|ForbiddenError|UnreadableError|LimitError|TensorError"
    )
    written = re.findall(rf"""\b(?:{kinds})\(\s*f?["'][^"']*\w \w[^"']*["']""", CODE)
    hinted = re.findall(r"""\bhint=f?["'][^"']*\w \w[^"']*["']""", CODE)
    noted = re.findall(r"""\bProblem\([^()]*message=f?["']""", CODE)
    assert [*written, *hinted, *noted] == []
