"""A policy is tried on a step and rank before a comparison is judged by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from api.conftest import Client, compare, settled

WIDE = "name: wide\nbase: default\nscale:\n  '.*': 1000000000\n"


@pytest.mark.parametrize("policy", ["default", "ptdbg", "msprobe", WIDE])
def test_a_tried_policy_tells_what_judging_by_it_then_gives(client: Client, dumps: Path, policy: str) -> None:
    comparison = f"/api/comparisons/{compare(client, dumps / 'stat_fault', dumps / 'stat_golden')}"
    trial = client.post(f"{comparison}/policies/try", json={"policy": policy}).json()
    before = client.get(f"{comparison}/nodes?limit=500").json()["items"]
    assert trial["before"] == {word: sum(row["verdict"] == word for row in before) for word in trial["before"]}
    client.patch(comparison, json={"policy": policy})
    settled(client, comparison)
    after = client.get(f"{comparison}/nodes?limit=500").json()["items"]
    assert trial["after"] == {word: sum(row["verdict"] == word for row in after) for word in trial["after"]}
    changed = {row["name"] for row, other in zip(after, before, strict=True) if row["verdict"] != other["verdict"]}
    assert trial["changed"] == len(changed)
    assert {row["name"] for row in trial["rows"]} <= changed
    assert len(trial["rows"]) == min(50, len(changed))
    scores = [row["score"] for row in trial["rows"]]
    assert [score for score in scores if score is not None] == sorted(
        (score for score in scores if score is not None), key=float, reverse=True
    )
    assert bool(changed) == (policy != "default")


def test_what_is_no_policy_is_refused_and_nothing_changes(client: Client, dumps: Path) -> None:
    comparison = f"/api/comparisons/{compare(client, dumps / 'stat_fault', dumps / 'stat_golden')}"
    reply = client.post(f"{comparison}/policies/try", json={"policy": "floors: {float32: {bulk: -1}}"})
    assert (reply.status_code, "floors.float32.bulk" in reply.json()["detail"]) == (400, True)
    assert client.post(f"{comparison}/policies/try", json={"policy": "nonsense"}).status_code == 400
    assert client.get(comparison).json()["policy"] == "default"
