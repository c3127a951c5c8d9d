"""Whatever a client sends, the server never fails and answers as its OpenAPI document says."""

from __future__ import annotations

import base64
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from api.conftest import ERROR_KEYS, Client
from dumpscope.api.replies import encode_cursor

WORDS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "0", "-1", "nan", "Infinity", "1e309", "9" * 25, "%00", "\x00", "softmax", "no", "origin,no", "'"]),
)  # fmt: skip
NAMES = st.sampled_from(
    ["step", "rank", "parent", "reveal", "cursor", "limit", "q", "api", "verdict", "class", "sort", "around", "from", "to",
     "buckets", "node", "pair", "log", "pairs", "axes", "reduce", "at", "rows", "columns"]
)  # fmt: skip
CALLS = (
    "", "/summary", "/origins", "/tree", "/strip", "/nodes", "/pairs", "/figures/histogram", "/figures/error-order",
    "/figures/api-distribution", "/figures/error-histogram", "/figures/pair-density", "/figures/difference-map",
    "/figures/api-errors", "/figures/call-runs", "/figures/difference-map.csv", "/nodes/Functional.softmax.1.forward/flow",
)  # fmt: skip


def sound(reply: Any) -> None:
    assert reply.status_code < 500, reply.text
    assert len(reply.content) <= 200_000
    if reply.status_code >= 400:
        body = reply.json()
        assert set(body) == ERROR_KEYS
        assert body["status"] == reply.status_code


@pytest.mark.parametrize("call", CALLS)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(params=st.lists(st.tuples(NAMES, WORDS), max_size=4))
def test_no_query_breaks_a_comparisons_answers(
    served: Client, fault: str, call: str, params: list[tuple[str, str]]
) -> None:
    sound(served.get(f"/api/comparisons/{fault}{call}", params=params))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.text(min_size=1, max_size=30), call=st.sampled_from(["nodes", "pairs", "figures"]))
def test_no_name_in_a_path_breaks_an_answer(served: Client, fault: str, name: str, call: str) -> None:
    sound(served.get(f"/api/comparisons/{fault}/{call}/{quote(name, safe='', errors='replace')}"))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=st.text(min_size=1, max_size=8), call=st.sampled_from(["dumps", "comparisons", "jobs"]))
def test_no_id_breaks_an_answer(served: Client, number: str, call: str) -> None:
    part = quote(number, safe="", errors="replace")
    for address in (f"/api/{call}/{part}", f"/api/{call}/{part}/tree", f"/api/{call}/{part}/nodes/x"):
        sound(served.get(address))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["path", "name", "target", "golden", "options", "policy", "steps"]) | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    body=JSON, call=st.sampled_from(["POST dumps", "POST comparisons", "PATCH dumps/none", "PATCH comparisons/none"])
)
def test_no_body_breaks_a_change(served: Client, body: Any, call: str) -> None:
    method, path = call.split()
    reply = served.request(method, f"/api/{path}", json=body)
    assert reply.status_code >= 400
    sound(reply)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cursor=st.binary(max_size=40))
def test_no_cursor_breaks_a_list(served: Client, fault: str, cursor: bytes) -> None:
    text = base64.urlsafe_b64encode(cursor).decode()
    for call in ("nodes", "nodes?sort=-out_score", "pairs?sort=-score", "tree"):
        joint = "&" if "?" in call else "?"
        sound(served.get(f"/api/comparisons/{fault}/{call}{joint}cursor={text}"))


@pytest.mark.parametrize(
    "key",
    [[1], ["x"], [1.5], [2**62, 5], ["x", 1], [1e308, 3], [-1, -1], [0, 2**63 - 1], [1, "x"], [True], ["\x00", 1]],
)
def test_no_forged_cursor_breaks_a_list(served: Client, fault: str, key: list[Any]) -> None:
    for back in (False, True):
        cursor = encode_cursor(key, 7, back=back)
        for call in (
            "nodes?sort=order",
            "nodes?sort=-out_score",
            "nodes?sort=name",
            "pairs?sort=-score",
            "pairs?q=a",
            "tree?",
        ):
            sound(served.get(f"/api/comparisons/{fault}/{call}&cursor={cursor}"))
