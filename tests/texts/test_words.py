"""One word per concept: what docs/glossary.md rejects stands nowhere in the Chinese texts, and what it names does."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CHINESE: Final = (ROOT / "backend" / "dumpscope" / "texts" / "zh.json").read_text(encoding="utf-8")


def rows() -> list[tuple[str, str, list[str]]]:
    """English word, Chinese word, rejected ones, of each row of the table."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    table = text.split("## Words of the screen in Chinese")[1].split("\n## ")[0]
    found = re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \| ([^|]+) \|$", table, re.MULTILINE)[1:]
    return [(english, chinese, never.split("、")) for english, chinese, never in found]


def test_the_table_has_the_words_that_people_asked_about() -> None:
    words = " ".join(english for english, _, _ in rows())
    for word in ("floor", "origin", "Reached", "Alone", "benign", "contains", "golden", "target", "confidence"):
        assert word in words


@pytest.mark.parametrize(
    ("english", "chinese", "never"), rows(), ids=lambda part: part if isinstance(part, str) else ""
)
def test_a_concept_has_one_chinese_word(english: str, chinese: str, never: list[str]) -> None:
    assert chinese in CHINESE, english
    assert [word for word in never if word != "—" and word in CHINESE] == [], english
