"""An absolute reference where ranks are joined: it is split as one of the sides is, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest
from api.conftest import BASE, register, settled
from fastapi.testclient import TestClient

from dumpscope.api.app import create_app
from dumpscope.domain.options import Options
from dumpscope.domain.result import Answer
from dumpscope.pipeline.compare.in_process import compare_layouts
from dumpscope.readers import discover
from dumpscope.settings import Settings

BAD = "Module.layers.2.mlp.up."


def compared(splits: Path, target: str, golden: str, reference: str) -> Answer:
    sides = [discover(splits / name) for name in (target, golden, reference)]
    return compare_layouts(
        sides[0], sides[1], Options(), paths=(target, golden), reference=(reference, sides[2]), jobs=1
    ).answer


def off(answer: Answer) -> list[str]:
    assert answer.reference is not None
    return [one.node for one in answer.reference.golden_off]


@pytest.mark.parametrize("reference", ["tp2", "whole"])
def test_the_side_whose_rank_is_at_fault_is_held_to_it(splits: Path, reference: str) -> None:
    answer = compared(splits, "tp2_fault", "whole", reference)
    assert [origin.node.startswith(BAD) for origin in answer.origins] == [True]
    assert "times as far from the reference" in answer.origins[0].evidence
    assert off(answer) == []
    turned = compared(splits, "whole", "tp2_fault", reference)
    assert turned.origins == []
    assert [node.startswith(BAD) for node in off(turned)] == [True]


def test_a_reference_with_neither_sides_ranks_is_told_and_left_out(splits: Path) -> None:
    answer = compared(splits, "tp2_fault", "whole", "tp4")
    (told,) = [one for one in answer.problems if one.kind == "no_reference"]
    assert (
        "The reference has ranks 0, 1, 2, 3 in this step: neither the ranks of a side nor a single one" in told.message
    )
    assert [origin.node.startswith(BAD) for origin in answer.origins] == [True]


def test_a_reference_that_cannot_be_joined_as_the_side_was_is_told(splits: Path) -> None:
    answer = compared(splits, "tp2_fault", "whole", "pp2")
    (told,) = [one for one in answer.problems if one.kind == "no_reference"]
    assert "rank 0 of the reference was not split as the target is" in told.message
    assert [origin.node.startswith(BAD) for origin in answer.origins] == [True]


def test_a_server_measures_joined_ranks_against_a_reference(tmp_path: Path, splits: Path) -> None:
    settings = Settings(data_dir=tmp_path, roots=[splits], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as client:
        names = {"target": "whole", "golden": "tp2_fault", "reference": "tp2"}
        reply = client.post(
            "/api/comparisons", json={role: register(client, splits / at) for role, at in names.items()}
        )
        base = f"/api/comparisons/{reply.json()['id']}"
        assert settled(client, base)["status"] == "done"
        summary = client.get(f"{base}/summary").json()
        assert summary["origins"] == []
        assert [one["node"].startswith(BAD) for one in summary["reference"]["golden_off"]] == [True]
        client.patch(base, json={"policy": "ptdbg"})
        client.patch(base, json={"policy": "default"})
        settled(client, base)
        assert [one["node"] for one in client.get(f"{base}/summary").json()["reference"]["golden_off"]] == [
            one["node"] for one in summary["reference"]["golden_off"]
        ]
