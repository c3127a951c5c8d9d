"""The lists of dumps and of comparisons in every order, whatever the size of a page; sentences as data beside their text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import BaseModel
from ui.made import in_micro_steps

from api.conftest import BASE, Client, Make, compare, register
from dumpscope.api.app import create_app
from dumpscope.api.models import trees
from dumpscope.api.replies import decode_cursor, levels_reply, page_reply
from dumpscope.index.store.page import Page, Seek
from dumpscope.index.trees.tree_levels import Level, Levels
from dumpscope.index.trees.trees import TreeRow
from dumpscope.texts import english

NAMES = ("stat_golden", "golden", "conv_L0", "weird_L0")


def walk(client: Client, noun: str, sort: str, limit: int) -> list[Any]:
    rows: list[Any] = []
    cursor = ""
    while True:
        page = client.get(f"/api/{noun}", params={"sort": sort, "limit": limit, "cursor": cursor}).json()
        rows += page["items"]
        if page["next"] is None:
            return rows
        cursor = page["next"]


@pytest.mark.parametrize("limit", [1, 3, 100])
def test_every_order_lists_each_row_once(client: Client, dumps: Path, limit: int) -> None:
    ids = [register(client, dumps / name) for name in (*NAMES, "golden")]
    assert [row["id"] for row in walk(client, "dumps", "created", limit)] == ids
    assert [row["id"] for row in walk(client, "dumps", "-created", limit)] == ids[::-1]
    by_name = walk(client, "dumps", "name", limit)
    assert [row["name"] for row in by_name] == sorted([*NAMES, "golden"])
    assert {row["id"] for row in by_name} == set(ids)


def test_comparisons_are_ordered_like_dumps(client: Client, dumps: Path) -> None:
    for target in ("stat_fault", "stat_bf16"):
        compare(client, dumps / target, dumps / "stat_golden")
    newest = [row["name"] for row in walk(client, "comparisons", "-created", 1)]
    assert newest == ["stat_bf16 against stat_golden", "stat_fault against stat_golden"]
    assert [row["name"] for row in walk(client, "comparisons", "name", 1)] == sorted(newest)


def test_a_cursor_of_another_order_is_refused(client: Client, dumps: Path) -> None:
    for name in NAMES:
        register(client, dumps / name)
    cursor = client.get("/api/dumps", params={"limit": 1}).json()["next"]
    reply = client.get("/api/dumps", params={"limit": 1, "cursor": cursor, "sort": "name"})
    assert (reply.status_code, reply.json()["error"]) == (400, "usage")


def test_phrases_say_what_the_sentence_beside_them_says(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}"
    summary = served.get(f"{address}/summary").json()
    origin = served.get(f"{address}/origins").json()["items"][0]
    node = served.get(f"{address}/nodes/{origin['node']}").json()
    pair = served.get(f"{address}/pairs/{node['items'][0]['id']}").json()
    figure = served.get(f"{address}/figures/error-order", params={"node": origin["node"]}).json()
    assert [english([said]) for said in summary["settings_said"]] == summary["settings"]
    assert english(origin["evidence_said"]) == origin["evidence"]
    assert english(origin["advice_said"]) == origin["advice"]
    assert english(node["reason_said"]) == node["reason"]
    assert english(pair["message_said"]) == pair["message"]
    assert english(figure["said"]) == figure["text"]


def test_lists_are_read_from_any_place_and_around_a_node(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}"
    dump = f"/api/dumps/{served.get(address).json()['target']}"
    for list_address, more in ((f"{address}/nodes", {"q": "softmax"}), (f"{address}/nodes", {}), (f"{dump}/nodes", {})):
        whole = served.get(list_address, params={**more, "limit": 500}).json()
        assert whole["start"] == 0
        place = whole["total"] // 3
        page = served.get(list_address, params={**more, "limit": 2, "at": place}).json()
        assert page["items"] == whole["items"][place : place + 2]
        assert (page["start"], page["total"]) == (place, whole["total"])
        rest = served.get(list_address, params={"limit": 500, "cursor": page["next"], **more}).json()
        assert rest["items"] == whole["items"][place + 2 :]
        name = whole["items"][place]["name"]
        around = served.get(list_address, params={**more, "limit": 1, "around": name}).json()
        assert (around["items"][0]["name"], around["start"]) == (name, place)


def test_the_way_to_a_node_comes_with_the_rows_beside_it(served: Client, fault: str) -> None:
    address = f"/api/comparisons/{fault}"
    origin = served.get(f"{address}/origins").json()["items"][0]["node"]
    dump = f"/api/dumps/{served.get(address).json()['target']}"
    for noun in (address, dump):
        path = served.get(f"{noun}/tree", params={"reveal": origin}).json()["path"]
        reply = served.get(f"{noun}/tree/levels", params={"reveal": origin}).json()
        assert (reply["depth"], reply["next"]) == (len(path), None)
        for level, parent, entry in zip(reply["levels"], [None, *path], path, strict=False):
            assert level["parent"] == parent
            beside = {} if parent is None else {"parent": parent}
            children = served.get(f"{noun}/tree", params={**beside, "limit": 500}).json()
            place = next(place for place, row in enumerate(children["items"]) if row["entry"] == entry)
            assert level["items"] == children["items"][level["start"] : level["start"] + len(level["items"])]
            assert level["start"] <= place < level["start"] + len(level["items"])
            assert level["total"] == children["total"]
            last = served.get(f"{noun}/tree", params={**beside, "end": True, "limit": 2}).json()
            assert last["items"] == children["items"][-2:]


@pytest.mark.parametrize("back", [False, True])
def test_a_page_that_is_cut_to_size_keeps_the_side_it_was_read_from(back: bool) -> None:
    names = [f"{number} {'x' * 5000}" for number in range(60)]
    page = Page(
        rows=names, keys=[(number,) for number in range(60)], more=not back, total=100, start=40 * back, back=back
    )
    reply = page_reply(page, lambda name: Named(name=name), walkable=True)
    assert len(reply.body) < 200_000
    body = json.loads(bytes(reply.body))
    kept = [row["name"] for row in body["items"]]
    assert 30 < len(kept) < 60
    if back:
        assert kept == names[-len(kept) :]
        assert body["start"] == 100 - len(kept)
        assert body["next"] is None
        assert decode_cursor(body["prev"])[0] == Seek(key=(60 - len(kept),), back=True)
    else:
        assert kept == names[: len(kept)]
        assert body["start"] == 0
        assert body["prev"] is None
        assert decode_cursor(body["next"])[0] == Seek(key=(len(kept) - 1,))


def test_a_level_of_large_rows_is_cut_around_the_way() -> None:
    rows = [make_row(number) for number in range(40)]
    keys = [(number,) for number in range(40)]
    page = Page(rows=rows, keys=keys, more=False, total=40, start=0)
    level = Level(parent=None, entry=25, page=page)
    reply = levels_reply(Levels(levels=[level, level], first=0, depth=2), trees.TreeRow.model_validate)
    assert len(reply.body) < 200_000
    body = json.loads(bytes(reply.body))
    assert body["next"] == 1
    (only,) = body["levels"]
    entries = [row["entry"] for row in only["items"]]
    assert entries == list(range(entries[0], entries[-1] + 1))
    assert 25 in entries
    assert (only["start"], only["total"]) == (entries[0], 40)
    assert decode_cursor(only["prev"])[0] == Seek(key=(entries[0],), back=True)


class Named(BaseModel):
    name: str


def make_row(entry: int) -> TreeRow:
    name = f"Module.{'x' * 4000}{entry}"
    return TreeRow(
        entry=entry, name=name, address=name, label=name, parent=None, order=entry, kind="module", direction="forward",
        children=0, nodes=1, verdict=None, cls=None,
    )  # fmt: skip


def test_the_counts_of_the_filter_come_in_one_reply(served: Client, fault: str) -> None:
    counts = served.get(f"/api/comparisons/{fault}/counts").json()
    assert set(counts) == {"classes", "verdicts", "leftovers", "micros"}
    assert counts["micros"] == {}
    for parameter, words in (
        ("class", counts["classes"]),
        ("verdict", counts["verdicts"]),
        ("leftover", counts["leftovers"]),
    ):
        for word, count in words.items():
            page = served.get(f"/api/comparisons/{fault}/nodes", params={parameter: word, "limit": 1}).json()
            assert page["total"] == count, word
    assert counts["classes"]["origin"] == 1
    assert 0 < counts["classes"]["absorbed"] <= counts["classes"]["benign"]
    narrowed = served.get(f"/api/comparisons/{fault}/counts", params={"q": "/softmax/", "class": "origin"}).json()
    assert (narrowed["classes"]["origin"], sum(narrowed["verdicts"].values())) == (1, 1)
    assert served.get(f"/api/comparisons/{fault}/counts", params={"q": "/soft("}).status_code == 400


def test_calls_of_a_micro_step_are_counted_and_found(tmp_path: Path, make_settings: Make, dumps: Path) -> None:
    for side in ("stat_fault", "stat_golden"):
        in_micro_steps(dumps / side, tmp_path / side)
    with TestClient(create_app(make_settings(roots=[tmp_path])), base_url=BASE) as client:
        comparison = compare(client, tmp_path / "stat_fault", tmp_path / "stat_golden")
        micros = client.get(f"/api/comparisons/{comparison}/counts").json()["micros"]
        assert set(micros) == {"0", "1"}
        names = []
        for number, count in micros.items():
            page = client.get(
                f"/api/comparisons/{comparison}/nodes", params={"q": f"micro:{number}", "limit": 500}
            ).json()
            assert page["total"] == len(page["items"]) == count
            names += [row["name"] for row in page["items"]]
        assert len(names) == len(set(names)) == 147  # of 163: gradients of parameters are of no micro-step
        assert client.get(f"/api/comparisons/{comparison}/nodes", params={"q": "micro:x"}).status_code == 400


def test_the_worst_class_of_equal_names_comes_first(served: Client, fault: str) -> None:
    page = served.get(f"/api/comparisons/{fault}/nodes", params={"q": "softmax", "sort": "-class"}).json()
    assert page["items"][0]["cls"] == "origin"
    first = served.get(f"/api/comparisons/{fault}/nodes", params={"q": "softmax", "sort": "-class", "limit": 1}).json()
    rest = served.get(
        f"/api/comparisons/{fault}/nodes",
        params={"q": "softmax", "sort": "-class", "limit": 10, "cursor": first["next"]},
    ).json()
    assert [row["name"] for row in first["items"] + rest["items"]] == [row["name"] for row in page["items"]]


@pytest.mark.parametrize(
    ("search", "count"),
    [
        (r"/softmax\.(0|1)\.f/", 2),
        ("module:layers.1.attn api:softmax", 2),
        ("line:models.py:14 api:softmax", 4),
        ("dtype:int64", 5),
    ],
)
def test_calls_are_found_by_expression_and_by_what_they_are_made_of(
    served: Client, fault: str, search: str, count: int
) -> None:
    assert served.get(f"/api/comparisons/{fault}/nodes", params={"q": search}).json()["total"] == count


def test_every_rule_says_what_it_means_in_both_languages(served: Client, fault: str) -> None:
    rules = {row["rule"]: row for row in served.get("/api/rules").json()["items"]}
    assert rules["T-2"]["text"] == "Tensors differ by more than the floor of their dtype."
    assert "容差" in rules["T-2"]["text_zh"]
    pairs = served.get(f"/api/comparisons/{fault}/pairs", params={"limit": 200}).json()["items"]
    assert {pair["rule"] for pair in pairs} <= rules.keys()
