"""Passes of an engine, one step each, against another split of the same requests: put together by request and token."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from api.conftest import BASE, compare as ask_server  # noqa: E402
from fastapi.testclient import TestClient  # noqa: E402
from hypothesis import given, strategies as st  # noqa: E402

from dumpscope.api.app import create_app  # noqa: E402
from dumpscope.domain.options import Options  # noqa: E402
from dumpscope.domain.result import Answer  # noqa: E402
from dumpscope.parallel.orders import Order  # noqa: E402
from dumpscope.parallel.passes.tokens import Tokens, find_order  # noqa: E402
from dumpscope.pipeline.compare.in_process import compare_layouts  # noqa: E402
from dumpscope.pipeline.compare.joined_tensors import realise  # noqa: E402
from dumpscope.readers.discover import discover  # noqa: E402
from dumpscope.settings import Settings  # noqa: E402

TEXTS = ([3, 9, 4, 4, 7, 5], [8, 2, 6, 1, 9])
"""Words of two requests."""
Pass = Sequence[tuple[int, int, int]]
"""What a pass takes of its requests: (request, first position, end)."""

WHOLE: Sequence[Pass] = [[(0, 0, 6), (1, 0, 5)]]
ONE: Sequence[Pass] = [[(0, 0, 6)]]
ENGINE: Sequence[Pass] = [[(0, 0, 3), (1, 0, 2)], *([(0, 3 + at, 4 + at), (1, 2 + at, 3 + at)] for at in range(3))]
LATE: Sequence[Pass] = [[(1, 0, 4)], [(0, 0, 4), (1, 4, 5)], [(0, 4, 5)], [(0, 5, 6)]]
"""The second request comes first, and ends while the first one is read."""


def served(
    folder: Path,
    passes: Sequence[Pass],
    *,
    told: Sequence[str] = (),
    fault: tuple[int, int] | None = None,
    key: str = "step",
) -> Path:
    """Files of a run: two layers that look at each token alone. told: what is recorded of the tokens beside their values
    fault: request and position whose first activation is 5 % too large"""
    folder.mkdir()
    generator = np.random.default_rng(1)
    table = generator.standard_normal((10, 8)).astype(np.float32)
    weights = generator.standard_normal((2, 8, 8)).astype(np.float32)
    places = np.sin(np.arange(8)[:, None] + np.arange(8)).astype(np.float32)
    index = 0
    for number, taken in enumerate(passes):
        request = np.concatenate([np.full(end - begin, one) for one, begin, end in taken])
        position = np.concatenate([np.arange(begin, end) for _, begin, end in taken])
        words = np.array([TEXTS[one][at] for one, at in zip(request, position, strict=True)])
        made = {"input_ids": words, "positions": position, "rids": request}
        kept = {name: array for name, array in made.items() if name in told}
        hidden = table[words] + places[position]
        kept["embed"] = hidden
        for layer, weight in enumerate(weights):
            hidden = np.tanh(hidden @ weight)
            if fault is not None and layer == 0:
                hidden = hidden * np.where((request == fault[0]) & (position == fault[1]), 1.05, 1)[:, None].astype(
                    np.float32
                )
            kept[f"layers.{layer}.mlp"] = hidden
        for name, array in kept.items():
            index += 1
            torch.save(
                torch.from_numpy(array), folder / f"{key}={number}___rank=0___dump_index={index}___name={name}.pt"
            )
    return folder


def ask(target: Path, golden: Path) -> Answer:
    sides = discover(target), discover(golden)
    return compare_layouts(*sides, Options(), paths=(str(target), str(golden)), jobs=1).answer


IDS = ("input_ids", "positions")


@pytest.mark.parametrize("key", ["step", "forward_pass_id"])
def test_passes_of_one_request_are_one_sequence(tmp_path: Path, key: str) -> None:
    decode: Sequence[Pass] = [[(0, 0, 3)], *([(0, at, at + 1)] for at in range(3, 6))]
    golden = served(tmp_path / "golden", ONE)
    answer = ask(served(tmp_path / "healthy", decode, key=key), golden)
    assert (answer.outcome, answer.origins, answer.problems) == ("agrees", [], [])
    assert "6 positions in 4 passes of its model, the golden in 1 pass" in answer.settings[0]
    (origin,) = ask(served(tmp_path / "fault", decode, key=key, fault=(0, 4)), golden).origins
    assert origin.node == "Module.layers.0.mlp.Module.forward.0"
    assert "lies in pass 3 of the target's 4, at Module.layers.0.mlp.Module.forward.2." in origin.evidence
    alone = served(tmp_path / "alone", [[(0, at, at + 1)] for at in range(6)], key=key)
    assert ask(alone, tmp_path / "healthy").outcome == "agrees", "both sides made several passes"


@pytest.mark.parametrize(
    ("passes", "told"),
    [(ENGINE, IDS), (ENGINE, (*IDS, "rids")), (LATE, (*IDS, "rids"))],
    ids=["places", "requests", "late"],
)
def test_tokens_of_several_requests_are_compared_by_request_and_position(
    tmp_path: Path, passes: Sequence[Pass], told: Sequence[str]
) -> None:
    golden = served(tmp_path / "golden", WHOLE, told=told)
    target = served(tmp_path / "target", passes, told=told)
    answer = ask(target, golden)
    assert (answer.outcome, answer.origins, answer.counts.no) == ("agrees", [], 0), answer.first_no
    assert ask(golden, target).outcome == "agrees"
    assert "11 positions in 4 passes" in answer.settings[0]
    (origin,) = ask(served(tmp_path / "fault", passes, told=told, fault=(1, 4)), golden).origins
    assert origin.node == "Module.layers.0.mlp.Module.forward.0"
    number = 4 if passes is ENGINE else 2
    assert (
        f"lies in pass {number} of the target's 4, at Module.layers.0.mlp.Module.forward.{number - 1}."
        in origin.evidence
    )


def test_tokens_that_may_be_of_either_request_are_left_out_and_counted(tmp_path: Path) -> None:
    sides = (served(tmp_path / name, passes, told=IDS) for name, passes in (("target", LATE), ("golden", WHOLE)))
    answer = ask(*sides)
    assert (answer.origins, answer.counts.no) == ([], 0), answer.first_no
    assert "Of the 11 positions of the target and the 11 of the golden, 8 are told" in answer.settings[1]


def test_a_request_that_one_side_lacks_is_left_out(tmp_path: Path) -> None:
    answer = ask(served(tmp_path / "target", ENGINE, told=IDS), served(tmp_path / "golden", [[(1, 0, 5)]], told=IDS))
    assert (answer.origins, answer.counts.no) == ([], 0), answer.first_no
    assert "Of the 11 positions of the target and the 5 of the golden, 5 are told" in answer.settings[1]


def test_other_requests_are_not_put_together(tmp_path: Path) -> None:
    target = served(tmp_path / "target", [[(0, 0, 2)], [(0, 2, 3)]])
    answer = ask(target, served(tmp_path / "golden", [[(1, 2, 5)]]))
    assert "positions in" not in " ".join(answer.settings)


def test_steps_that_correspond_are_compared_one_by_one(tmp_path: Path) -> None:
    target, golden = (served(tmp_path / name, passes) for name, passes in (("target", ENGINE), ("golden", ENGINE[:3])))
    answer = ask(target, golden)
    assert [problem.loc for problem in answer.problems] == ["step3/rank0"]
    assert (answer.counts.no, answer.counts.nodes) == (0, 9)


@given(
    st.lists(
        st.lists(st.integers(0, 5), min_size=1, max_size=6),
        min_size=2,
        max_size=4,
        unique_by=lambda one: tuple(one[:1]),
    ),
    st.randoms(use_true_random=False),
)
def test_tokens_find_each_other_however_an_engine_deals_them_out(texts: list[list[int]], random: object) -> None:
    shuffle, choose = random.shuffle, random.randint  # type: ignore[attr-defined]
    left = dict.fromkeys(range(len(texts)), 0)
    passes: list[list[tuple[int, int]]] = []
    while left:
        taken: list[tuple[int, int]] = []
        order = list(left)
        shuffle(order)
        for number in order[: choose(1, len(order))]:
            end = min(len(texts[number]), left[number] + choose(1, 3))
            taken += [(number, at) for at in range(left[number], end)]
            left[number] = end
            if end == len(texts[number]):
                del left[number]
        passes.append(taken)
    flat = [one for taken in passes for one in taken]
    target = Tokens(
        positions=[np.array([at for _, at in taken]) for taken in passes],
        words=[np.array([texts[number][at] for number, at in taken]) for taken in passes],
        requests=[np.array([number for number, _ in taken]) for taken in passes],
    )
    whole = [(number, at) for number, text in enumerate(texts) for at in range(len(text))]
    golden = Tokens(
        positions=[np.array([at for _, at in whole])],
        words=[np.array([texts[number][at] for number, at in whole])],
        requests=[],
    )
    found = find_order(target, golden)
    assert found is not None
    assert [flat[at] for at in found[0]] == [whole[at] for at in found[1]] == whole


def test_a_cache_that_a_pass_held_otherwise_is_shown_as_that_pass_held_it(tmp_path: Path) -> None:
    parts = [np.arange(2 * length, dtype=np.float32).reshape(2, length) // length for length in (2, 3, 4)]
    parts[1][1, 0] = np.nan
    parts[2][:, 1] = np.nan
    parts[0][:, 1] = np.nan
    for number, part in enumerate(parts):
        np.save(tmp_path / f"{number}.npy", part)
    order = Order(parts=tuple(str(tmp_path / f"{number}.npy") for number in range(3)), dimension=None, grown=1)
    np.testing.assert_array_equal(realise(order), [[0, 0, 0, 0], [np.nan, 1, 1, 1]])


def test_a_server_puts_steps_together_that_are_passes(tmp_path: Path) -> None:
    sides = [
        served(tmp_path / "target", ENGINE, told=IDS, fault=(1, 4)),
        served(tmp_path / "golden", WHOLE, told=IDS),
    ]
    settings = Settings(data_dir=tmp_path / "server", roots=[tmp_path], executor="threads:2")
    with TestClient(create_app(settings), base_url=BASE) as client:
        base = f"/api/comparisons/{ask_server(client, *sides)}"
        (origin,) = client.get(f"{base}/origins").json()["items"]
        assert origin["node"] == "Module.layers.0.mlp.Module.forward.0"
        node = client.get(f"{base}/nodes/{origin['node']}").json()
        (output,) = [pair for pair in node["items"] if pair["role"] == "output"]
        assert output["target_leaf"]["shape"] == output["golden_leaf"]["shape"] == [11, 8]
        assert client.get(f"{base}/figures/histogram", params={"pair": output["id"]}).status_code == 200
        assert client.get(f"{base}/summary").json()["problems"] == []
