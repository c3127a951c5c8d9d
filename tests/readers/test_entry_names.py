"""Which names a disk takes for one, seen on the disk."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from unicodedata import normalize

import pytest
from hypothesis import given, strategies as st

from dumpscope.readers.archives.entry_names import FOLDED, PLAIN, Folding, probe

COMPOSED, APART = "\u00e9", "e\u0301"


def looks_up(*, case: bool, forms: bool) -> Callable[[str], bool]:
    """How a disk finds a name: as an entry that equals it in these respects."""

    def same(name: str) -> str:
        return normalize("NFD", name.upper() if case else name) if forms else (name.upper() if case else name)

    def exists(path: str) -> bool:
        folder, name = os.path.split(path)
        return any(same(entry) == same(name) for entry in os.listdir(folder))

    return exists


@pytest.mark.parametrize("case", [False, True])
@pytest.mark.parametrize("forms", [False, True])
def test_a_probe_sees_what_the_disk_takes_for_one_and_leaves_nothing(tmp_path: Path, case: bool, forms: bool) -> None:
    assert probe(tmp_path, looks_up(case=case, forms=forms)) == Folding(case=case, forms=forms)
    assert list(tmp_path.iterdir()) == []


def test_the_probe_of_this_disk_agrees_with_two_files_written_to_it(tmp_path: Path) -> None:
    found = probe(tmp_path)
    for name in ("W", "w", COMPOSED, APART):
        (tmp_path / name).write_bytes(b"")
    assert len(list(tmp_path.iterdir())) == 4 - found.case - found.forms


def test_where_nothing_can_be_written_all_names_that_could_be_one_count_as_one(tmp_path: Path) -> None:
    assert probe(tmp_path / "absent") == FOLDED


@given(st.text())
def test_a_disk_that_tells_all_names_apart_keeps_them_as_they_are(name: str) -> None:
    assert PLAIN.key(name) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_disk_that_folds_takes_both_forms_and_cases_for_one(name: str) -> None:
    assert FOLDED.key(normalize("NFD", name)) == FOLDED.key(normalize("NFC", name))
    assert FOLDED.key(name.casefold()) == FOLDED.key(name)
    assert Folding(case=False, forms=True).key(normalize("NFD", name)) == normalize("NFC", name)


def test_case_and_forms_are_told_apart_one_without_the_other() -> None:
    case, forms = Folding(case=True, forms=False), Folding(case=False, forms=True)
    assert case.key("W") == case.key("w")
    assert case.key(COMPOSED) != case.key(APART)
    assert forms.key("W") != forms.key("w")
    assert forms.key(COMPOSED) == forms.key(APART)


def test_a_clash_says_what_counts_as_equal() -> None:
    assert PLAIN.words == ""
    assert FOLDED.words == " (upper and lower case and Unicode forms count as equal on this disk)"
    assert Folding(case=True, forms=False).words == " (upper and lower case count as equal on this disk)"
