"""Rename rules pair what a user says is one call under two labels, and a preview counts what each would make."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.facts import METHOD_WORDS
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.errors import UsageError
from dumpscope.match import match
from dumpscope.match.preview import preview
from dumpscope.match.renames.rename_rules import parse_renames, rename
from dumpscope.readers import discover, read_rank
from match.small import flow, step


def rank(folder: Path) -> RankDump:
    return read_rank(discover(folder).ranks[0])


RENAMED = r"layers\.(\d+)\.ffn=layers.\1.mlp"


def test_a_rule_maps_renamed_modules_of_a_real_pair(dumps: Path) -> None:
    target, golden = rank(dumps / "target_renamed"), rank(dumps / "golden")
    pairs = match(target, golden, Options(rename=(RENAMED,))).pairs
    assert (pairs.target >= 0).all()
    assert (pairs.golden >= 0).all()
    words = {
        METHOD_WORDS[method]
        for t, method in zip(pairs.target.tolist(), pairs.method.tolist(), strict=True)
        if target.nodes.names[t].startswith("Module.") and ".ffn." in target.nodes.names[t]
    }
    assert words == {"mapped"}


def test_a_rule_maps_calls_of_two_labels_forward_and_backward(tmp_path: Path) -> None:
    one = [step("NPU.npu_gelu", "x", "y"), step("Functional.linear", "y w", "z")]
    other = [step("Functional.gelu", "x", "y"), step("Functional.linear", "y w", "z")]
    target, golden = flow(tmp_path / "t", one, backward=True), flow(tmp_path / "g", other, backward=True)
    found = preview(target, golden, Options(rename=(r"^NPU\.npu_=Functional.",)), step=0, rank=0)
    assert (found.pairs, found.left) == (4, [])
    assert found.methods == {"exact": 2, "mapped": 2}
    assert [(rule.labels, rule.pairs) for rule in found.rules] == [(1, 2)]


def test_the_first_rule_that_fits_counts(dumps: Path) -> None:
    target, golden = rank(dumps / "target_renamed"), rank(dumps / "golden")
    rules = (RENAMED, r"\.ffn\.=.nowhere.", r"nothing here=x")
    first, *others = preview(target, golden, Options(rename=rules), step=0, rank=0).rules
    assert first.labels > 0
    assert first.pairs > 0
    assert [(rule.labels, rule.pairs) for rule in others] == [(0, 0), (0, 0)]


def test_a_preview_lists_what_would_be_left_with_its_cause(dumps: Path) -> None:
    target, golden = rank(dumps / "target_extra_op"), rank(dumps / "golden")
    found = preview(target, golden, Options(), step=0, rank=0)
    assert {(left.side, left.leftover) for left in found.left} == {("target", "inserted")}
    assert found.pairs == len(golden.nodes)


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ("no equals sign", "PATTERN=REPLACEMENT"),
        ("=x", "PATTERN=REPLACEMENT"),
        ("(=x", "regular expression"),
        (r"(a)\1=x", "regular expression"),
        ("(?<!a)b=x", "regular expression"),
        (r"(a)=\2", "1 groups"),
        ("a=\\", "groups"),
        ("a" * 3000 + "=b", "PATTERN=REPLACEMENT"),
    ],
)
def test_a_rule_that_cannot_be_used_is_told_by_name(rule: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        parse_renames([rule])


def test_too_many_rules_are_refused() -> None:
    with pytest.raises(UsageError, match="101 rules"):
        parse_renames(["a=b"] * 101)


@pytest.mark.parametrize(
    ("rule", "label", "fresh"),
    [
        (r"(\w+)\.(\w+)=\2.\1", "one.two", "two.one"),
        ("a=é", "banana", "bénéné"),
        (r"x=\\", "axb", "a\\b"),
        ("x*=y", "abc", "abc"),
        (r"(a)|(b)=<\1\2>", "abc", "<a><b>c"),
        ("a==b", "xa=", "xb"),
    ],
)
def test_groups_and_backslashes_mean_what_they_say(rule: str, label: str, fresh: str) -> None:
    assert rename([label], parse_renames([rule])).get(label, (label, 0))[0] == fresh


def test_a_pattern_that_blows_up_elsewhere_runs_in_linear_time() -> None:
    """A backtracking engine would not end within the age of the universe."""
    assert rename(["a" * 50_000 + "b"], parse_renames([r"(a+)+c=x"])) == {}


@given(st.text(max_size=30), st.text(min_size=1, max_size=10))
def test_any_label_survives_any_literal_replacement(label: str, piece: str) -> None:
    rules = parse_renames(["[ab]=" + piece.replace("\\", "\\\\").replace("=", "-")])
    fresh = rename([label], rules).get(label, (label, 0))[0]
    assert fresh == "".join(piece.replace("=", "-") if letter in "ab" else letter for letter in label)
