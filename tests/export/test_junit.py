"""A JUnit report fails the calls whose verdict is No, and is XML whatever the names hold."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given, strategies as st

from dumpscope.domain.facts import Verdict
from dumpscope.domain.options import Options
from dumpscope.errors import Problem
from dumpscope.export.junit import SHOWN, junit_text
from dumpscope.export.table.unit_table import Table
from dumpscope.pipeline.compare.in_process import Outcome, compare_layouts
from dumpscope.readers import discover
from export.small import NODE, small_unit, tensor

EVIL = "a]]>&amp;<b\"'\x00\x1b\ud800\ufffe\U0001f600"


def compared(dumps: Path, target: str, golden: str) -> Outcome:
    return compare_layouts(
        discover(dumps / target), discover(dumps / golden), Options(), paths=(target, golden), jobs=1
    )


@pytest.fixture(scope="module")
def two_ranks(dumps: Path) -> Outcome:
    return compared(dumps, "dist2_stat_fault", "dist2_stat_golden")


def test_each_rank_is_a_suite_whose_failures_are_its_calls_of_verdict_no(two_ranks: Outcome) -> None:
    suites = ElementTree.fromstring("".join(junit_text(map(Table, two_ranks.units), "a against b")))
    assert [suite.get("name") for suite in suites] == ["step0.rank0", "step0.rank1"]
    assert any((unit.node_opinions.verdict == Verdict.NO).any() for unit in two_ranks.units)
    for suite, unit in zip(suites, two_ranks.units, strict=True):
        verdicts = unit.node_opinions.verdict
        names = [unit.target.nodes.names[node] for node in unit.pairs.target[verdicts == Verdict.NO]]
        assert sorted(case.get("name") for case in suite if case.find("failure") is not None) == sorted(names)  # type: ignore[type-var]
        assert int(suite.get("failures", "")) == len(names)
        assert int(suite.get("skipped", "")) == len(suite.findall("testcase/skipped"))
        assert int(suite.get("tests", "")) == len(suite.findall("testcase")) == len(np.unique(unit.items.pair))


def test_a_failure_says_why_and_what_the_call_is_in_the_story(dumps: Path) -> None:
    outcome = compared(dumps, "target_fault", "golden")
    suite = ElementTree.fromstring("".join(junit_text([Table(outcome.units[0])], "x")))[0]
    failures = {case.get("name"): case.find("failure") for case in suite}
    cause = failures["Functional.softmax.1.forward"]
    assert cause is not None
    assert cause.get("type") == "origin"
    assert "4 of 144 elements differ" in (cause.text or "")
    assert (cause.get("message") or "") in (cause.text or "")


def test_many_wrong_items_are_counted_not_listed(tmp_path: Path) -> None:
    target = [tensor(float(place)) for place in range(SHOWN + 5)]
    unit = small_unit(tmp_path, {NODE: target}, {NODE: [tensor(float(place + 1000)) for place in range(SHOWN + 5)]})
    unit.item_opinions.verdict[:] = Verdict.NO
    unit.node_opinions.verdict[:] = Verdict.NO
    failure = ElementTree.fromstring("".join(junit_text([Table(unit)], "x"))).find("testsuite/testcase/failure")
    assert failure is not None
    assert (failure.text or "").splitlines()[-1] == "and 5 more"


def test_the_form_of_the_answer_and_what_it_rests_on_are_told(dumps: Path) -> None:
    whole = compared(dumps, "golden", "golden").answer
    assert whole.coverage is not None
    lost = Problem(loc="step2/rank0", kind="missing_rank", message="Only the golden has this step.")
    part = replace(whole, problems=[lost], coverage=replace(whole.coverage, lost=1))
    for answer, outcome, names in ((whole, "agrees", []), (part, "not_fully_judged", ["step2/rank0"])):
        (suite,) = ElementTree.fromstring("".join(junit_text([], "x", answer)))
        told = {fact.get("name"): fact.get("value") for fact in suite.iter("property")}
        assert told["outcome"] == outcome
        assert told["items.judged"] == str(whole.coverage.items)
        assert int(told["items.judged.tensors"] or 0) + int(told["items.judged.arguments"] or 0) == whole.coverage.items
        cases = {case.get("name"): case.find("error") for case in suite.iter("testcase")}
        assert list(cases) == names
        assert suite.get("tests") == suite.get("errors") == str(len(names))
        assert all(error is not None and error.get("type") == "not_fully_judged" for error in cases.values())


@given(st.text(st.characters(codec=None, exclude_categories=())))
def test_any_name_is_xml(name: str) -> None:
    root = ElementTree.fromstring("".join(junit_text([], name + EVIL)).encode())
    assert (root.get("name") or "").endswith("\U0001f600")
