"""One sequence or one batch computed in several passes: put together, silent where healthy, named where a pass is at fault."""

from __future__ import annotations

import json
import shutil
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from api.conftest import BASE, ask_while_read, early, settled  # noqa: E402, F401
from fastapi.testclient import TestClient  # noqa: E402

from dumpscope.analysis.passes import told_of_passes  # noqa: E402
from dumpscope.api.app import create_app  # noqa: E402
from dumpscope.domain.options import Options  # noqa: E402
from dumpscope.domain.records import item_name  # noqa: E402
from dumpscope.pipeline.compare.in_process import preview_layouts  # noqa: E402
from dumpscope.readers.discover import discover  # noqa: E402
from dumpscope.settings import Settings  # noqa: E402
from healthy.recording import recorded  # noqa: E402
from healthy.tokens import Fault, Model, Run, decode, train, whole  # noqa: E402

RUNS: dict[str, tuple[Run, Any, bool]] = {  # what runs, its fault, whether attention is written out
    "whole": (whole(), None, False),
    "prefill and decode": (decode(2), None, False),
    "decode": (decode(1), None, False),
    "decode but the last": (decode(1, length=5), None, False),
    "whole of two": (whole(2), None, False),
    "decode of two": (decode(3, 2), None, False),
    "whole, eager": (whole(), None, True),
    "decode, eager": (decode(1), None, True),
    "functions of a whole": (whole(), None, False),
    "functions of a decode": (decode(2), None, False),
    "one batch": (train(4), None, False),
    "micro-batches of two": (train(2), None, False),
    "micro-batches of one": (train(1), None, False),
    "micro-batches in another order": (train(1, order=(2, 0, 3, 1)), None, False),
    "micro-batches without division": (train(1, mean=False), None, False),
    "micro-batches of padded rows": (train(2, padded=True), None, False),
    "one padded batch": (train(4, padded=True), None, False),
    "gelu of the fourth pass": (decode(2), ("gelu", 7), False),  # second layer
    "cached key of the fourth pass": (decode(2), ("cat", 30), False),  # of the second layer
    "gelu of the third micro-batch": (train(1), ("gelu", 5), False),
    "gelu of a micro-batch, in another order": (train(1, order=(2, 0, 3, 1)), ("gelu", 5), False),
    "gelu backward of the second micro-batch": (train(1), ("gelu_backward", 2), False),
}


def without_tensors(dump: Path, folder: Path) -> Path:
    """The dump as it would have been with "task": "statistics"."""
    shutil.copytree(dump, folder, ignore=shutil.ignore_patterns("dump_tensor_data"))
    for file in folder.rglob("dump.json"):
        text = file.read_text(encoding="utf-8")
        held = json.loads(text, object_hook=lambda one: {key: one[key] for key in one if key != "data_name"})
        file.write_text(json.dumps({**held, "task": "statistics", "dump_data_dir": None}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A dump of a run, made when it is first asked for."""
    root, made = tmp_path_factory.mktemp("passes"), {}

    def dump(name: str, task: str) -> Path:
        if task == "statistics" and (name, task) not in made:
            made[name, task] = without_tensors(dump(name, "tensor"), root / f"{len(made)}")
        elif (name, task) not in made:
            run, fault, eager = RUNS[name]
            torch.manual_seed(3)
            model = Model(eager=eager)

            def step() -> None:
                with nullcontext() if fault is None else Fault(*fault):
                    run(model)

            level = "L1" if name.startswith("functions") else "mix"
            made[name, task] = recorded(root / f"{len(made)}", step, model=model, task="tensor", level=level)
        return made[name, task]

    return dump


PAIRS = {
    ("prefill and decode", "whole"): "6 positions in 5 passes of its model, the golden in 1",
    ("decode", "prefill and decode"): "6 positions in 6 passes of its model, the golden in 5",
    ("decode of two", "whole of two"): "6 positions in 4 passes of its model, the golden in 1",
    ("decode, eager", "whole, eager"): "6 positions in 6 passes of its model, the golden in 1",
    ("functions of a decode", "functions of a whole"): "6 positions in 5 passes of its model, the golden in 1",
    ("micro-batches of one", "one batch"): "4 rows of data in 4 passes of its model, the golden in 1",
    ("micro-batches of two", "micro-batches of one"): "4 rows of data in 2 passes of its model, the golden in 4",
}


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("pair", list(PAIRS), ids=" : ".join)
def test_a_healthy_pair_is_put_together_and_agrees(ask: Any, pair: tuple[str, str], task: str) -> None:
    answer, _ = ask(*pair, task)
    assert [(one.node, one.kind, one.evidence) for one in answer.origins] == []
    assert (answer.outcome, answer.counts.no) == ("agrees", 0), answer.first_no
    assert PAIRS[pair] in answer.settings[0]
    assert answer.counts.unmatched_target + answer.counts.unmatched_golden < 20
    assert answer.counts.yes > 0.9 * answer.counts.items or task == "statistics"
    lost = [one for one in answer.settings if "of these passes" in one]
    assert bool(lost) == (answer.counts.not_comparable > 0)
    assert all(('"task": "tensor"' in one) == (task == "statistics") for one in lost)


@pytest.mark.parametrize("name", ["prefill and decode", "micro-batches of one"])
def test_exchanging_the_sides_changes_nothing(ask: Any, name: str) -> None:
    rival = "whole" if "decode" in name else "one batch"
    there, back = ask(name, rival, "tensor")[0], ask(rival, name, "tensor")[0]
    assert there.outcome == back.outcome == "agrees"
    assert there.counts.yes == back.counts.yes


def test_rows_in_another_order_are_found_by_their_content(ask: Any) -> None:
    answer, unit = ask("micro-batches in another order", "one batch", "tensor")
    assert (answer.outcome, answer.origins) == ("agrees", [])
    told = [told_of_passes(unit.target, item) for item in range(len(unit.target.items))]
    assert {tuple(one["order"]) for one in told if one is not None and "order" in one} == {(1, 3, 0, 2)}


def test_a_sequence_without_its_last_position_is_compared_as_far_as_it_goes(ask: Any) -> None:
    answer, unit = ask("decode but the last", "whole", "tensor")
    assert (answer.origins, answer.counts.no) == ([], 0), answer.first_no
    words = " ".join(answer.settings)
    assert "5 positions in 5 passes" in words
    assert "sequences of length 5, the golden of 6: what both took is compared" in words
    compared = (unit.facts.unequal >= 0) & unit.context.shape_differs
    assert compared.sum() > 200


FAULTS = {
    ("gelu of the fourth pass", "whole"): ("Functional.gelu.1.forward", 4, 5, "Functional.gelu.7.forward"),
    ("gelu of the fourth pass", "decode"): ("Functional.gelu.1.forward", 4, 5, "Functional.gelu.7.forward"),
    ("gelu of the third micro-batch", "one batch"): ("Functional.gelu.1.forward", 3, 4, "Functional.gelu.5.forward"),
    ("gelu of a micro-batch, in another order", "one batch"): (
        "Functional.gelu.1.forward", 3, 4, "Functional.gelu.5.forward",
    ),
    ("gelu backward of the second micro-batch", "micro-batches of two"): (
        "Functional.gelu.1.backward", 2, 4, "Functional.gelu.3.backward",
    ),
}  # fmt: skip


@pytest.mark.parametrize("pair", list(FAULTS), ids=" : ".join)
def test_a_fault_in_one_pass_is_named_with_its_pass(ask: Any, pair: tuple[str, str]) -> None:
    node, number, count, call = FAULTS[pair]
    answer, _ = ask(*pair, "tensor")
    assert [(one.node, one.kind) for one in answer.origins] == [(node, "computation")]
    assert f"lies in pass {number} of the target's {count}, at {call}." in answer.origins[0].evidence
    exchanged, _ = ask(*pair[::-1], "tensor")
    assert [(one.node, one.kind) for one in exchanged.origins] == [(node, "computation")]
    assert f"lies in pass {number} of the golden's {count}, at {call}." in exchanged.origins[0].evidence


@pytest.mark.parametrize("pair", [pair for pair in FAULTS if pair[1] in ("whole", "one batch")][:2], ids=" : ".join)
def test_a_fault_in_one_pass_is_named_by_statistics(ask: Any, pair: tuple[str, str]) -> None:
    answer, _ = ask(*pair, "statistics")
    assert [(one.node, one.kind) for one in answer.origins] == [(FAULTS[pair][0], "computation")]


def test_a_cache_that_was_wrong_in_one_pass_is_no_fault_of_the_attention_that_read_it(ask: Any) -> None:
    answer, unit = ask("cached key of the fourth pass", "whole", "tensor")
    (first, *_) = answer.origins
    assert first.node == "Module.layers.1.attn.Attention.forward.0", "where the cache was written is not recorded"
    wrong = {
        item_name(unit.target, item)
        for item, verdict in zip(unit.items.target.tolist(), unit.item_opinions.verdict.tolist(), strict=True)
        if item >= 0 and verdict == 3
    }
    assert "Functional.scaled_dot_product_attention.1.forward.input.1" in wrong


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_gradients_that_add_up_to_too_much_are_told_and_the_update_is_no(ask: Any, task: str) -> None:
    answer, unit = ask("micro-batches without division", "one batch", task)
    assert "gradients of the target's passes add up to 4 times those of the golden" in " ".join(answer.settings)
    assert answer.outcome == "diverged"
    assert answer.first_no is not None
    assert answer.first_no.node == "Tensor.add_.0.forward"
    bad = unit.context.pair[unit.item_opinions.verdict == 3]
    assert (bad >= unit.context.end).all()


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_losses_that_are_means_over_other_numbers_of_words_are_told_and_not_accused(ask: Any, task: str) -> None:
    answer, unit = ask("micro-batches of padded rows", "one padded batch", task)
    assert (answer.outcome, answer.origins, answer.counts.no) == ("not_fully_judged", [], 0), answer.first_no
    assert "each is a mean over its own words" in answer.settings[-1]
    forward = unit.context.pair < unit.context.end
    assert (unit.item_opinions.verdict[forward] == 0).sum() > 200


def test_a_dry_run_pairs_what_would_be_put_together(dumps: Any) -> None:
    sides = [discover(dumps(name, "tensor")) for name in ("prefill and decode", "whole")]
    (found,), _ = preview_layouts(sides[0], sides[1], Options())
    assert (found.left, found.methods) == ([], {"exact": found.pairs})


def test_a_server_stores_what_was_put_together_and_judges_it_again(
    dumps: Any,
    early: list[bool],  # noqa: F811
    tmp_path: Path,
) -> None:
    sides = [dumps(name, "tensor") for name in ("gelu of the fourth pass", "whole")]
    settings = Settings(data_dir=tmp_path / "server", roots=[side.parent for side in sides], executor="processes:2")
    with TestClient(create_app(settings), base_url=BASE) as client:
        base = f"/api/comparisons/{ask_while_read(client, tmp_path / 'gate', *sides)}"
        assert early == [True], "what was put together is stored after it was compared"
        (origin,) = client.get(f"{base}/origins").json()["items"]
        assert origin["node"] == "Functional.gelu.1.forward"
        assert "lies in pass 4 of the target's 5, at Functional.gelu.7.forward." in origin["evidence"]
        node = client.get(f"{base}/nodes/{origin['node']}").json()
        (output,) = [pair for pair in node["items"] if pair["role"] == "output"]
        assert output["target_leaf"]["shape"] == output["golden_leaf"]["shape"] == [1, 6, 32]
        assert client.get(f"{base}/figures/histogram", params={"pair": output["id"]}).status_code == 200
        before = client.get(f"{base}/summary").json()
        for policy in ("msprobe", "default"):
            assert client.patch(base, json={"policy": policy}).status_code == 200
            settled(client, base)
        assert client.post(f"{base}/matching/apply").status_code == 202
        settled(client, base)
        after = client.get(f"{base}/summary").json()
        assert (after["counts"], after["settings"]) == (before["counts"], before["settings"])
        assert "6 positions in 5 passes" in after["settings"][0]
        assert len(client.get("/api/dumps").json()["items"]) == 2, "what was put together is listed nowhere"
        assert client.delete(base).status_code == 204
