"""Communications over HTTP: paged, filtered, and with the call that takes part in them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from index.databases import KINDS, empty_url

from api.conftest import BASE, Client, compare, settled
from dumpscope.api.app import create_app
from dumpscope.settings import Settings

ARCHIVE = Path(__file__).parents[1] / "data" / "ranks.tar.xz"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    with tarfile.open(ARCHIVE) as tar:
        tar.extractall(folder)
    return folder


@pytest.fixture(scope="module", params=KINDS)
def ranked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, runs: Path) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("served")
    settings = Settings(
        data_dir=folder, roots=[runs], executor="threads:2", database_url=empty_url(request.param, folder)
    )
    with TestClient(create_app(settings), base_url=BASE) as running:
        yield running


@pytest.fixture(scope="module")
def spread(ranked: Client, runs: Path) -> str:
    """Rank 1's relu makes a NaN, which the first all_reduce spreads."""
    return f"/api/comparisons/{compare(ranked, runs / 'relu', runs / 'golden')}"


def every(client: Client, address: str, **given: Any) -> list[dict[str, Any]]:
    """All items of a list, by pages of three."""
    found: list[dict[str, Any]] = []
    cursor: str | None = None
    while True:
        reply = client.get(address, params={**given, "limit": 3, **({"cursor": cursor} if cursor else {})})
        assert reply.status_code == 200, reply.text
        body = reply.json()
        found += body["items"]
        cursor = body["next"]
        if cursor is None:
            assert len(found) == body["total"]
            return found


def test_pages_list_every_communication_once_with_every_rank(ranked: Client, spread: str) -> None:
    found = every(ranked, f"{spread}/collectives")
    assert len({one["id"] for one in found}) == len(found)
    kinds = [one["api"] for one in found]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {
        "all_reduce": 3, "send_receive": 2 + 4, "broadcast": 1, "gather": 1, "scatter": 1, "reduce": 1, "all_gather": 1,
    }  # fmt: skip
    first = found[0]
    assert (first["api"], first["ranks"], first["faulty"], first["missing"]) == ("all_reduce", [0, 1, 2, 3], False, [])
    assert [part["rank"] for part in first["parts"]] == [0, 1, 2, 3]
    assert [part["gave"]["verdict"] for part in first["parts"]] == ["yes", "no", "yes", "yes"]
    assert {part["took"]["verdict"] for part in first["parts"]} == {"no"}


def test_a_broadcast_reads_its_source_alone(ranked: Client, spread: str) -> None:
    (one,) = every(ranked, f"{spread}/collectives", api="broadcast")
    assert [part["rank"] for part in one["parts"] if part["gave"]] == [2]
    assert [part["rank"] for part in one["parts"] if part["took"]] == [0, 1, 3]


def test_lists_are_cut_to_a_rank_and_a_verdict(ranked: Client, spread: str) -> None:
    of_rank = every(ranked, f"{spread}/collectives", rank=1)
    assert len(of_rank) == 1 + 1 + 1 + 1 + 2 + 4  # both reductions, recv, broadcast, the ring's two, the other four
    assert all(1 in [part["rank"] for part in one["parts"]] for one in of_rank)
    assert every(ranked, f"{spread}/collectives", verdict="yes") == []
    assert ranked.get(f"{spread}/collectives", params={"verdict": "maybe"}).status_code == 400


def test_a_call_tells_the_communications_it_takes_part_in(ranked: Client, spread: str) -> None:
    node = ranked.get(f"{spread}/nodes/Distributed.batch_isend_irecv.0.forward", params={"rank": 1}).json()
    ends = [[part["rank"] for part in one["parts"]] for one in node["collectives"]]
    assert sorted(ends) == [[0, 1], [1, 2]]
    plain = ranked.get(f"{spread}/nodes/Functional.relu.0.forward", params={"rank": 1}).json()
    assert plain["collectives"] == []


def test_parts_are_paged_and_an_unknown_communication_is_not_found(ranked: Client, spread: str) -> None:
    first = every(ranked, f"{spread}/collectives")[0]
    assert every(ranked, f"{spread}/collectives/{first['id']}/parts") == first["parts"]
    assert ranked.get(f"{spread}/collectives/{first['id'] + 999}/parts").status_code == 404
    assert ranked.get(f"{spread}/collectives", params={"step": 7}).status_code == 404


def test_judging_again_keeps_each_communication_once(ranked: Client, spread: str) -> None:
    before = every(ranked, f"{spread}/collectives")
    for policy in ("ptdbg", "default"):
        assert ranked.patch(spread, json={"policy": policy}).status_code in (200, 202)
        settled(ranked, spread)
    assert every(ranked, f"{spread}/collectives") == before


def test_an_origin_names_the_ranks_that_it_reached(ranked: Client, spread: str) -> None:
    (origin,) = ranked.get(f"{spread}/origins").json()["items"]
    assert (origin["rank"], origin["node"]) == (1, "Functional.relu.0.forward")
    assert origin["spread"] == [{"rank": rank, "node": "Distributed.all_reduce.0.forward"} for rank in (0, 2, 3)]
    assert "rank 0 through Distributed.all_reduce.0.forward" in origin["evidence"]
