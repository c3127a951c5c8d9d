"""Comparisons of checkpoints over REST: a durable job, its list of tensors by page, and nothing outside the roots."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from dumpscope.api.app import create_app
from dumpscope.settings import Settings

from .conftest import place, save_file, weights

PATH = "/api/checkpoint-diffs"


@pytest.fixture(scope="module")
def client(saved: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    folder = tmp_path_factory.mktemp("server")
    (folder / "root").mkdir()
    settings = Settings(data_dir=folder / "data", roots=[saved, folder / "root"], executor="threads:2")
    with TestClient(create_app(settings), base_url="http://127.0.0.1:8000") as running:
        yield running


def compare(client: TestClient, target: Path, golden: Path, **more: Any) -> dict[str, Any]:
    """A finished comparison."""
    reply = client.post(PATH, json={"target": str(target), "golden": str(golden), **more})
    assert reply.status_code == 202, reply.text
    for _ in range(600):
        row: dict[str, Any] = client.get(reply.headers["Location"]).json()
        if row["status"] != "pending":
            return row
        time.sleep(0.02)
    raise AssertionError("the job does not end")


@pytest.fixture(scope="module")
def diff(client: TestClient, saved: Path) -> str:
    """Megatron's planted checkpoint against the healthy file of Hugging Face."""
    row = compare(client, saved / "megatron" / "planted", place(saved, "safetensors", "healthy"), name="run 7")
    assert (row["status"], row["total"], row["error"]) == ("done", 15, None)
    return str(row["id"])


def test_the_summary_says_what_came_out(client: TestClient, diff: str) -> None:
    body = client.get(f"{PATH}/{diff}/summary").json()
    assert body["summary"].startswith("1 of 15 tensors differs: decoder.layers.1.mlp.linear_fc2.weight, 0.065 % of its")
    assert body["said"][0]["id"] == "checkpoints.differ"
    assert {state: count for state, count in body["counts"].items() if count} == {
        "differs": 1, "form": 3, "golden_only": 2, "equal": 9,
    }  # fmt: skip
    assert (body["target_kind"], body["golden_kind"], body["total"]) == ("megatron", "safetensors", 15)
    assert body["problems"] == []
    assert "Megatron -> Hugging Face" in body["rules"]


def test_every_order_lists_all_tensors_once_by_pages(client: TestClient, diff: str) -> None:
    whole = client.get(f"{PATH}/{diff}/tensors").json()["items"]
    assert [one["number"] for one in whole] == list(range(15))
    assert whole[0]["state"] == "differs"
    for sort in ("worst", "name", "-largest", "-share"):
        found: list[dict[str, Any]] = []
        cursor = None
        while True:
            page = client.get(
                f"{PATH}/{diff}/tensors", params={"sort": sort, "limit": 4, "cursor": cursor or ""}
            ).json()
            found += page["items"]
            assert page["total"] == 15
            cursor = page["next"]
            if cursor is None:
                break
        assert sorted(one["number"] for one in found) == list(range(15)), sort
    names = [one["name"] for one in client.get(f"{PATH}/{diff}/tensors?sort=name").json()["items"]]
    assert names == sorted(names)


def test_tensors_are_found_by_state_and_by_part_of_either_name(client: TestClient, diff: str) -> None:
    form = client.get(f"{PATH}/{diff}/tensors?state=form,golden_only&q=layers").json()
    assert form["total"] == 4
    assert {one["state"] for one in form["items"]} == {"form", "golden_only"}
    other = client.get(f"{PATH}/{diff}/tensors?q=DOWN_proj").json()
    assert {one["name"] for one in other["items"]} == {
        "decoder.layers.0.mlp.linear_fc2.weight", "decoder.layers.1.mlp.linear_fc2.weight",
    }  # fmt: skip
    counts = client.get(f"{PATH}/{diff}/counts?q=down_proj").json()["counts"]
    assert (counts["differs"], counts["equal"], counts["form"]) == (1, 1, 0)
    assert client.get(f"{PATH}/{diff}/tensors?q=%25").json()["total"] == 0
    assert client.get(f"{PATH}/{diff}/tensors?state=bad").status_code == 400


def test_one_tensor_has_its_numbers_and_its_histogram(client: TestClient, diff: str) -> None:
    tensor = client.get(f"{PATH}/{diff}/tensors/0").json()
    assert (tensor["name"], tensor["golden"]) == (
        "decoder.layers.1.mlp.linear_fc2.weight", "model.layers.1.mlp.down_proj.weight",
    )  # fmt: skip
    assert (tensor["index"], tensor["unequal"], tensor["elements"]) == ([5, 7], 1, 1536)
    assert tensor["max_abs"] == pytest.approx(0.5)
    assert tensor["target_value"] - tensor["golden_value"] == pytest.approx(0.5)
    assert sum(tensor["histogram"]) == 1536
    assert "mp_rank_01_001" in tensor["target_source"]
    assert client.get(f"{PATH}/{diff}/tensors/15").status_code == 404


def test_what_is_not_a_number_travels_as_text(client: TestClient, tmp_path_factory: pytest.TempPathFactory) -> None:
    root = client.app.state.shared.settings.roots[1]  # type: ignore[attr-defined]
    golden = weights(a=(40,))
    target = {"a": golden["a"].copy()}
    target["a"][3] = float("inf")
    row = compare(client, save_file(root / "x.safetensors", target), save_file(root / "y.safetensors", golden))
    tensor = client.get(f"{PATH}/{row['id']}/tensors/0").json()
    assert (tensor["state"], tensor["nonfinite_target"], tensor["unequal"]) == ("differs", 1, 1)
    assert client.get(f"{PATH}/{row['id']}/tensors?sort=-largest").json()["total"] == 1


def test_a_path_outside_the_roots_is_refused(client: TestClient, saved: Path) -> None:
    healthy = place(saved, "torch", "healthy")
    assert client.post(PATH, json={"target": "/etc/passwd", "golden": str(healthy)}).status_code == 403
    assert client.post(PATH, json={"target": str(healthy), "golden": f"{healthy}.gone"}).status_code == 404
    assert (
        client.post(PATH, json={"target": str(healthy), "golden": str(healthy), "rename": ["(=x"]}).status_code == 400
    )


def test_a_shard_that_is_a_link_out_of_the_root_is_not_read(
    client: TestClient, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = client.app.state.shared.settings.roots[1]  # type: ignore[attr-defined]
    secret = save_file(tmp_path_factory.mktemp("outside") / "secret.safetensors", weights(a=(4,)))
    folder = root / "linked"
    folder.mkdir()
    save_file(folder / "own.safetensors", weights(b=(4,)))
    (folder / "other.safetensors").symlink_to(secret)
    row = compare(client, folder, folder / "own.safetensors")
    summary = client.get(f"{PATH}/{row['id']}/summary").json()
    assert (summary["total"], [one["kind"] for one in summary["problems"]]) == (1, ["refused"])


def test_what_is_no_checkpoint_fails_with_its_reason(client: TestClient, saved: Path) -> None:
    row = compare(client, saved / "facts.json", place(saved, "torch", "healthy"))
    assert row["status"] == "failed"
    assert row["error"]["error"] == "unreadable"
    assert row["error"]["hint"]
    assert client.get(f"{PATH}/{row['id']}/summary").status_code == 409
    assert client.delete(f"{PATH}/{row['id']}").status_code == 204
    assert client.get(f"{PATH}/{row['id']}").status_code == 404


def test_the_list_is_newest_first_and_searched_by_name(client: TestClient, diff: str) -> None:
    body = client.get(f"{PATH}?q=run 7").json()
    assert [one["id"] for one in body["items"]] == [diff]
    assert client.post(f"{PATH}/{diff}/cancel").json()["status"] == "done"
