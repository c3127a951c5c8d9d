"""The page of a comparison in one file: what it holds, that nothing in it runs or is loaded, and that it can be cancelled."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from one_file import contents, packed

from api.conftest import BASE, Client, Make, compare
from dumpscope.api.app import create_app
from dumpscope.api.one_file.asking import Held, Query, Told, key_of
from dumpscope.api.one_file.calls import Unit, choose_units, shares
from dumpscope.api.one_file.contents import collect
from dumpscope.api.one_file.maps import MAP_BYTES, take_maps
from dumpscope.errors import CancelledError, ConflictError
from dumpscope.settings import Settings

CAUSE = "Functional.softmax.1.forward"


def page_of(client: Client, comparison: str) -> str:
    reply = client.get(f"/api/comparisons/{comparison}/export.page.html")
    assert reply.status_code == 200, reply.text
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-disposition"].endswith(".page.html")
    return reply.text


@dataclass(frozen=True)
class Written:
    """A page, and the server that wrote it."""

    client: Client
    comparison: str
    page: str


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory, dumps: Path) -> Iterator[Written]:
    settings = Settings(data_dir=tmp_path_factory.mktemp("data"), roots=[dumps], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as client:
        comparison = compare(client, dumps / "stat_fault", dumps / "stat_golden")
        yield Written(client, comparison, page_of(client, comparison))


def test_it_holds_the_replies_that_the_server_gives(written: Written) -> None:
    client, comparison = written.client, written.comparison
    held = contents(written.page)
    top = f"/api/comparisons/{comparison}"
    here = {"step": 0, "rank": 0}
    assert (held["comparison"], held["units"], held["calls"]) == (comparison, 1, 163)
    (place,) = held["places"]
    assert (place["step"], place["rank"], place["total"], len(place["calls"])) == (0, 0, 163, 163)
    assert [row["order"] for row in place["calls"]] == list(range(163))
    origins = held["replies"][f"{top}/origins?"]
    assert (origins[0], origins[1]["items"][0]["node"]) == (200, CAUSE)
    asked: list[tuple[str, Query]] = [
        (f"{top}/summary", {}),
        (f"{top}/suspects", here),
        (f"{top}/nodes/{CAUSE}", here),
        (f"{top}/nodes/{CAUSE}/flow", here),
        (f"{top}/nodes/{CAUSE}/source", here),
        (f"{top}/nodes/{CAUSE}/path", {**here, "hops": 2}),
        (f"{top}/nodes/{CAUSE}/reach", {**here, "buckets": 1500}),
        (f"{top}/figures/error-order", {**here, "node": CAUSE, "reduce": "max"}),
        (f"{top}/nodes/Functional.linear.0.forward", here),
    ]
    for path, query in asked:
        assert held["replies"][key_of(path, query)] == [200, client.get(path, params=query).json()], path


@pytest.fixture(scope="module")
def two_ranks(written: Written, dumps: Path) -> str:
    """A small comparison of two ranks on the same server."""
    return compare(written.client, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden")


def test_its_maps_have_every_row_of_all_ranks(written: Written, two_ranks: str) -> None:
    assert not any("rank-map" in key or "trends" in key for key in contents(written.page)["replies"]), (
        "one rank and step"
    )
    held = contents(page_of(written.client, two_ranks))["replies"]
    top = f"/api/comparisons/{two_ranks}"
    for path, query in (
        (f"{top}/rank-map", {"step": 0}),
        (f"{top}/trends", {"buckets": 40, "by_rank": True}),
        (f"{top}/trends", {"buckets": 40, "by_rank": False}),
    ):
        status, found = held[key_of(path, query)]
        assert (status, found["next"], len(found["items"])) == (200, None, found["total"])
        first = written.client.get(path, params={**query, "limit": 2}).json()
        assert found["items"][:2] == first["items"]
        assert found["ranks"] == first["ranks"] == [0, 1]


def test_a_long_map_is_taken_page_by_page_up_to_its_bytes() -> None:
    pages = 10
    asked: list[int] = []

    def ask(_path: str, query: Query) -> Told:
        place = int(query.get("cursor", 0))
        asked.append(place)
        rows = [{"name": f"m{place}", "scores": [1.5] * (MAP_BYTES // 15)}]  # "1.5, " each: a third of the bytes
        page = {"items": rows, "next": str(place + 1) if place + 1 < pages else None, "total": pages}
        return Told(200, json.dumps(page).encode())

    held = Held(ask, lambda: None)
    summary = {"units": [{"step": 0, "rank": rank} for rank in range(3)]}
    take_maps(held, "/c", summary, [Unit(0, 0)])
    kept = json.loads(held.document({"one": 1}))["replies"][key_of("/c/rank-map", {"step": 0})]
    assert [row["name"] for row in kept[1]["items"]] == ["m0", "m1", "m2"]
    assert (kept[1]["total"], kept[1]["next"]) == (pages, None)
    assert asked[:3] == [0, 1, 2]


def test_its_tree_has_every_row_of_a_small_comparison(written: Written) -> None:
    (place,) = contents(written.page)["places"]
    rows = [row for branch in place["tree"].values() for span in branch["spans"] for row in span["items"]]
    assert {row["address"] for row in rows if row["kind"] != "virtual"} >= {row["address"] for row in place["calls"]}
    for branch in place["tree"].values():
        (span,) = branch["spans"]
        assert (span["start"], len(span["items"])) == (0, branch["total"])


def test_nothing_in_it_is_loaded_and_no_name_can_run(client: Client, dumps: Path, tmp_path: Path) -> None:
    evil = "</script><script>alert(1)</script><!--"
    for side in ("dist2_stat_fault", "dist2_stat_golden"):
        shutil.copytree(dumps / side, tmp_path / side)
        for file in (tmp_path / side).rglob("*.json"):
            file.write_text(file.read_text().replace("Functional.gelu.0.", f"Functional.{json.dumps(evil)[1:-1]}.0."))
    served = create_app(client.app.state.shared.settings.model_copy(update={"roots": [tmp_path]}))  # type: ignore[attr-defined]
    with TestClient(served, base_url=BASE) as own:
        comparison = compare(own, tmp_path / "dist2_stat_fault", tmp_path / "dist2_stat_golden")
        assert own.patch(f"/api/comparisons/{comparison}", json={"name": evil}).status_code == 200
        page = page_of(own, comparison)
    assert "alert(1)" not in page.replace("&lt;script&gt;alert(1)&lt;/script&gt;", "")
    assert "<title>&lt;/script&gt;" in page
    assert evil in packed(page, "contents").decode()
    outside = re.sub(r'<script type="text/plain".*?</script>', "", page, flags=re.DOTALL)
    assert not re.search(r"""(?:src|href)=|https?:|@import|url\(""", outside)
    assert "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'" in page


def test_its_script_and_plotly_are_those_of_this_installation(written: Written) -> None:
    page = written.page
    assert packed(page, "plotly") == written.client.get("/api/plotly.min.js").content
    assert b"not_in_file" in packed(page, "page")
    assert b"import(" not in packed(page, "page")
    assert b"data-mantine-color-scheme" in packed(page, "style")


def test_a_part_of_a_comparison_is_refused_in_words(written: Written) -> None:
    reply = written.client.get(f"/api/comparisons/{written.comparison}/export.page.html", params={"step": 0})
    assert (reply.status_code, reply.json()["detail"]) == (400, "a page in one file shows the whole comparison")


def test_a_server_with_a_token_can_ask_itself(make_settings: Make, dumps: Path) -> None:
    with TestClient(create_app(make_settings(token="open-sesame")), base_url=BASE) as client:
        client.headers["Authorization"] = "Bearer open-sesame"
        page = page_of(client, compare(client, dumps / "dist2_stat_fault", dumps / "dist2_stat_golden"))
    assert "open-sesame" not in page
    held = contents(page)
    assert b"open-sesame" not in packed(page, "contents")
    assert {status for status, _body in held["replies"].values()} == {200}


class Refusing:
    """Answers until it has been asked so often."""

    def __init__(self, most: int) -> None:
        self.left = most

    def check(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise CancelledError("gone")


def test_it_ends_at_the_next_reply_once_nobody_waits(written: Written, two_ranks: str) -> None:
    client, comparison = written.client, two_ranks
    asked: list[str] = []

    def ask(path: str, query: Query) -> Told:
        asked.append(path)
        reply = client.get(path, params={name: value for name, value in query.items() if value is not None})
        return Told(reply.status_code, reply.content)

    with pytest.raises(CancelledError):
        collect(ask, comparison, Refusing(20).check, lambda _share: None)
    assert len(asked) == 20
    shares_done: list[float] = []
    collect(ask, comparison, lambda: None, shares_done.append)
    assert shares_done == sorted(shares_done)
    assert 0.9 < shares_done[-1] < 1


def test_a_comparison_without_a_result_has_no_page() -> None:
    def ask(path: str, query: Query) -> Told:
        return Told(200, b'{"status": "running"}')

    with pytest.raises(ConflictError):
        collect(ask, "c", lambda: None, lambda _share: None)


def unit(step: int, rank: int, *, no: int = 0, origins: int = 0) -> dict[str, Any]:
    return {"step": step, "rank": rank, "no": no, "origins": origins}


def test_steps_and_ranks_with_causes_come_first_and_no_more_than_a_dozen() -> None:
    units = [unit(0, rank, no=int(rank % 2), origins=int(rank == 37)) for rank in range(64)]
    first_no = {"step": 0, "rank": 5}
    chosen = choose_units({"units": units, "origins": [unit(0, 37)], "first_no": first_no})
    assert [one.rank for one in chosen[:5]] == [37, 5, 1, 3, 7]
    assert len(chosen) == 12
    assert shares(chosen) == [200, *[18] * 11]
    assert shares(chosen[:1]) == [400]
    assert choose_units({"units": units[:1], "origins": [], "first_no": None})[0].rank == 0
