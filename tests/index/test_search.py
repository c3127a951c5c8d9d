"""A search finds exactly the calls that its terms describe, on both databases, or says what is wrong with it."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, METHOD_WORDS, VERDICT_WORDS
from dumpscope.domain.search.pattern import Pattern
from dumpscope.domain.search.terms import LONGEST, Bounds, Term, Words, parse
from dumpscope.errors import UsageError
from dumpscope.index.comparisons.catalogue import StoredUnit, find_unit
from dumpscope.index.dump_queries.nodes import node_stack
from dumpscope.index.pair_queries.filter_counts import filter_counts
from dumpscope.index.pair_queries.list_positions import node_pairs_at
from dumpscope.index.pair_queries.node_pairs import NodeFilter, NodePairRow, list_node_pairs
from dumpscope.index.store.database import Database
from index.databases import KINDS, open_empty
from index.test_storage import store_pair


@pytest.fixture(scope="module", params=KINDS)
def stored(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Database, StoredUnit, list[NodePairRow]]]:
    folder: Path = tmp_path_factory.mktemp("search")
    database = open_empty(request.param, folder)
    comparison, _, _ = store_pair(database, nodes=230, tensors=True)
    unit = find_unit(database, comparison, None, None)
    yield database, unit, list_node_pairs(database, unit, filters=NodeFilter(), limit=500).rows
    database.close()


def describes(term: Term, row: NodePairRow) -> bool:
    """Whether a term describes a call, told from what the list shows of it."""
    if isinstance(term, Pattern):
        names = (row.name, row.golden_name or "")
        found = any(re.search(term.text, name, re.IGNORECASE if term.fold else 0) for name in names)
    else:
        found = _bounded(term, row) if isinstance(term, Bounds) else _worded(term, row)
    return found != term.negated


def _worded(term: Words, row: NodePairRow) -> bool:
    if term.key in ("", "name"):
        names = (row.name.lower(), (row.golden_name or "").lower())
        return any(value.lower() in name for value in term.values for name in names)
    if term.key == "api":
        return any(f".{row.api}".lower().endswith(f".{value.lower()}") for value in term.values if row.api)
    shown = {
        "class": row.cls, "verdict": row.verdict, "match": row.match, "kind": row.kind, "direction": row.direction,
        "left": row.leftover,
    }  # fmt: skip
    absorbed = (row.cls, row.verdict) == ("benign", "no")
    return shown[term.key] in term.values or (term.key == "class" and absorbed and "absorbed" in term.values)


def _bounded(term: Bounds, row: NodePairRow) -> bool:
    shown = {
        "err": row.out_error, "in": row.in_error, "score": row.out_score, "inscore": row.in_score,
        "ratio": row.standing.ratio if row.standing is not None else None, "confidence": row.confidence, "order": row.order,
    }  # fmt: skip
    value = shown[term.key]
    if value is None:
        return False
    if math.isnan(value):
        value = math.inf  # no number excuses it
    low = value > term.low or (value == term.low and not term.low_open)
    return low and (value < term.high or (value == term.high and not term.high_open))


numbers = st.one_of(
    st.floats(0, 2), st.sampled_from([0.0, 1.0, 1e-6, 1e-3, 10.0, math.inf, -math.inf]), st.integers(0, 300).map(float)
)
words = st.one_of(
    st.builds(lambda value: f"class:{value}", st.sampled_from(CLASS_WORDS)),
    st.builds(lambda value: f"verdict:{value}", st.sampled_from(VERDICT_WORDS)),
    st.builds(lambda one, two: f"match:{one},{two}", st.sampled_from(METHOD_WORDS), st.sampled_from(METHOD_WORDS)),
    st.builds(lambda value: f"left:{value}", st.sampled_from([word for word in LEFTOVER_WORDS if word])),
    st.sampled_from(
        ["api:softmax", "api:Functional.linear", "api:relu,softmax", "kind:api", "kind:module", "direction:forward",
         "direction:backward", r"/softmax\.(1|3)\./", "/^FUNCTIONAL.*ward$/i", "/ax.*[0-4]\\.f/", "/./", "/none/",
         "class:absorbed", "class:absorbed,origin", "softmax.1", '"linear"', "name:relu,add", "FUNCTIONAL", "1%_"]
    ),
)  # fmt: skip
bounds = st.builds(
    lambda key, op, value: f"{key}{op}{value!r}",
    st.sampled_from(["err", "in", "score", "inscore", "ratio", "confidence", "order"]),
    st.sampled_from([":", ">", ">=", "<", "<="]),
    numbers,
)
ranges = st.builds(lambda low, high: f"order:{low}..{high}", st.integers(0, 230), st.integers(0, 230))
terms = st.builds(lambda minus, term: minus + term, st.sampled_from(["", "", "-"]), st.one_of(words, bounds, ranges))


@given(st.lists(terms, min_size=1, max_size=4))
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_search_finds_the_calls_that_every_term_describes(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], written: list[str]
) -> None:
    database, unit, rows = stored
    search = " ".join(written)
    page = list_node_pairs(database, unit, filters=NodeFilter(q=search), limit=500)
    expected = [row.order for row in rows if all(describes(term, row) for term in parse(search))]
    assert ([row.order for row in page.rows], page.total) == (expected, len(expected))


def found(stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str) -> list[int]:
    database, unit, _ = stored
    page = list_node_pairs(database, unit, filters=NodeFilter(q=search), limit=500)
    assert node_pairs_at(database, unit, 0, filters=NodeFilter(q=search), limit=500).rows == page.rows
    return [row.order for row in page.rows]


@pytest.mark.parametrize(
    ("search", "group"),
    [("module:layers.3", 3), ("module:layers.3.Block", 3), ("module:LAYERS.1*", 1), ("module:9", 9)],
)
def test_a_module_finds_all_calls_below_it(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str, group: int
) -> None:
    groups = range(10, 20) if search.endswith("*") else ()
    wanted = [order for order in range(230) if order // 10 in (group, *groups)]
    assert found(stored, search) == wanted
    assert len(found(stored, f"-{search}")) == 230 - len(wanted)


@pytest.mark.parametrize(
    "search", ["layers", "module:nothing", "module:layers.2%", "module:layer_.2", "line:model.py:490"]
)
def test_what_no_module_or_line_has_finds_nothing(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str
) -> None:
    assert found(stored, search) == []


@pytest.mark.parametrize(
    ("search", "frame"),
    [
        ("line:model.py:7", "line 7,"),
        ("line:model.py:7,model.py:11", "line 7,|line 11,"),
        ("line:MODEL.py", "model"),
        ("line:train.py:1", "train"),
    ],
)
def test_a_line_finds_the_calls_in_whose_stack_it_is(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str, frame: str
) -> None:
    database, unit, rows = stored
    with database.read() as connection:
        wanted = []
        for row in rows:
            entry = connection.exec_driver_sql(
                f"SELECT * FROM entry WHERE id = {(unit.target << 28) + row.order}"
            ).one()
            stack = "\n".join(node_stack(connection, unit.target, entry))
            wanted += [row.order] if re.search(frame, stack) else []
    assert 0 < len(wanted) <= 230
    assert found(stored, search) == wanted


@pytest.mark.parametrize(
    ("search", "all_of_them"),
    [
        ("dtype:bfloat16", True),
        ("dtype:torch.float32", True),
        ("dtype:BFLOAT*", True),
        ("dtype:float", False),
        ("shape:[2,3]", True),
        ("shape:2x3", True),
        ("shape:[2, 3]", False),  # a blank ends a term
        ('shape:"[2, 3]"', True),
        ("shape:*x3", True),
        ("shape:3,2", False),
        ("shape:[]", True),
        ("shape:8", True),
    ],
)
def test_a_dtype_or_shape_finds_the_calls_with_such_a_tensor(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str, all_of_them: bool
) -> None:
    if search == "shape:[2, 3]":
        assert found(stored, "shape:[2") == []
        return
    assert found(stored, search) == (list(range(230)) if all_of_them else [])


@pytest.mark.parametrize("search", ["", "softmax", "verdict:no", "/linear/ -class:origin"])
@pytest.mark.parametrize(
    "chosen",
    [{}, {"classes": ("propagated", "absorbed")}, {"verdicts": ("no", "yes"), "classes": ("benign",)}],
    ids=str,
)
def test_the_counts_of_the_filter_are_those_of_the_lists_they_lead_to(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str, chosen: dict[str, tuple[str, ...]]
) -> None:
    database, unit, _ = stored
    filters = NodeFilter(q=search, **chosen)
    counts = filter_counts(database, unit, filters)
    for what in ("classes", "verdicts", "leftovers"):
        for word, count in getattr(counts, what).items():
            alone = NodeFilter(q=search, **{**chosen, what: (word,)})
            assert list_node_pairs(database, unit, filters=alone, limit=1).total == count, (what, word)


def test_the_worst_class_comes_first_where_asked_for(
    stored: tuple[Database, StoredUnit, list[NodePairRow]],
) -> None:
    database, unit, rows = stored
    page = list_node_pairs(database, unit, filters=NodeFilter(), sort="-class", limit=500)
    assert [row.order for row in page.rows] == [
        row.order for row in sorted(rows, key=lambda row: (-CLASS_WORDS.index(row.cls), row.order))
    ]
    assert node_pairs_at(database, unit, 0, filters=NodeFilter(), sort="-class", limit=500).rows == page.rows


def test_an_api_may_have_a_wildcard(stored: tuple[Database, StoredUnit, list[NodePairRow]]) -> None:
    database, unit, rows = stored
    page = list_node_pairs(database, unit, filters=NodeFilter(q="api:soft*"), limit=500)
    assert {row.api for row in page.rows} == {row.api for row in rows if row.api and "soft" in row.api.lower()} != set()


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("", []),
        ("  ", []),
        ("a-b", [Words("", ("a-b",))]),
        ("-", [Words("", ("-",))]),
        ("-relu", [Words("", ("relu",), True)]),
        ('"err>1"', [Words("", ("err>1",))]),
        ('two "a  b"', [Words("", ("two",)), Words("", ("a  b",))]),
        ("Module.<lambda>.0", [Words("", ("Module.<lambda>.0",))]),
        ('class:origin,"benign"', [Words("class", ("origin", "benign"))]),
        ("err>1%", [Bounds("err", low=0.01, low_open=True)]),
        ("ERR<=1e-2", [Bounds("err", high=0.01)]),
        ("order:10..", [Bounds("order", low=10)]),
        (r"/a\.(b| c)/ x", [Pattern(r"a\.(b| c)"), Words("", ("x",))]),
        (r'-/a"\/b/i', [Pattern(r'a"\/b', fold=True, negated=True)]),
        ('"/a/"', [Words("", ("/a/",))]),
        ("a/b/c", [Words("", ("a/b/c",))]),
        ("shape:[2,3]", [Words("shape", ("[2,3]",))]),
        ("line:a.py:3,b.py", [Words("line", ("a.py:3", "b.py"))]),
        ("order=3", [Bounds("order", low=3, high=3)]),
    ],
)
def test_a_search_is_read_as_terms(search: str, found: list[Words | Bounds]) -> None:
    assert parse(search) == found


@pytest.mark.parametrize(
    ("search", "place", "said"),
    [
        ("relu clas:origin", 6, "there is no clas:"),
        ("err>", 1, "a number is missing after err>"),
        ("a err>big", 3, "'big' is not a number"),
        ("err>nan", 1, "'nan' is not a number"),
        ("order:1..x", 1, "'x' is not a number"),
        ("api:", 1, "a word is missing after api:"),
        ("class>origin", 1, "class takes words"),
        ("rank:3", 1, "choose the rank beside the search field"),
    ],
)
def test_what_is_no_search_is_named_with_its_place(search: str, place: int, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(search)
    assert said in caught.value.detail
    assert f"character {place} " in caught.value.detail
    assert "known terms: " in str(caught.value.hint)


def test_a_word_of_no_class_is_answered_with_the_classes(
    stored: tuple[Database, StoredUnit, list[NodePairRow]],
) -> None:
    database, unit, _ = stored
    with pytest.raises(UsageError, match="unknown class 'orgin'") as caught:
        list_node_pairs(database, unit, filters=NodeFilter(q="class:orgin"))
    assert "origin" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("search", "place", "said"),
    [
        ("/softm", 6, "the / at the end"),
        ("relu /a(b/", 9, "a ) is missing"),
        ("/ab)c/", 4, "this ) closes nothing"),
        ("/a[bc/", 3, "a ] is missing"),
        ("-/ab**/", 5, "repeats what is repeated already"),
        ("/*a/", 2, "nothing before this"),
        (r"/a\1/", 3, "references back to a group"),
        ("/a(?=b)/", 3, "looking around is not possible in linear time"),
        ("/[z-a]/", 3, "no class of characters"),
        ("/x{2000}/", 3, "at most 1000"),
        ("/((x{30}){30}){30}/", 5, "not possible"),
        ("/.{900}/", 2, "too large"),
    ],
)
def test_what_is_no_expression_is_named_with_the_place_of_its_fault(search: str, place: int, said: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(search)
    assert said in caught.value.detail
    assert f"character {place} " in caught.value.detail
    assert "RE2" in str(caught.value.hint)


@pytest.mark.parametrize(("search", "said"), [("line:x:y", "no file and line"), ("shape:2xq", "no shape")])
def test_what_is_no_line_or_shape_is_answered_with_an_example(
    stored: tuple[Database, StoredUnit, list[NodePairRow]], search: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        found(stored, search)
    assert search.split(":", maxsplit=1)[0] in str(caught.value.hint)


def test_an_expression_takes_time_in_proportion_to_the_names(
    stored: tuple[Database, StoredUnit, list[NodePairRow]],
) -> None:
    assert found(stored, r"/(a*)*(a*)*(.*)*b$/") == []  # others would look for hours


@given(st.text(max_size=40))
def test_any_text_is_a_search_or_is_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert len(parse(text)) <= LONGEST


def test_too_many_terms_are_refused() -> None:
    with pytest.raises(UsageError, match="65 terms"):
        parse("a " * 65)
