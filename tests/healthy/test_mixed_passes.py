"""Passes that are none of the whole's, or make values of all their rows: neither put together nor accused."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from dumpscope.domain.options import Options  # noqa: E402
from dumpscope.domain.result import Answer  # noqa: E402
from healthy.recording import recorded  # noqa: E402
from healthy.test_passes import without_tensors  # noqa: E402
from healthy.tokens import IDS, Fault, Model, decode, train, whole  # noqa: E402

OTHER = torch.randint(3, 40, (4, 6), generator=torch.Generator().manual_seed(9))
Run = Callable[[nn.Module], None]


class Watched(Model):
    """Beside its logits it makes what a training loop logs, and what a router of experts makes of all words."""

    def forward(self, ids: torch.Tensor, cache: Any = None) -> torch.Tensor:
        logits = super().forward(ids)
        words = logits.flatten(0, 1)
        loss = F.cross_entropy(words, ids.flatten())
        shares = words.softmax(-1)
        (shares.mean(0) * (shares > 0.03).float().mean(0)).sum()
        for made in (
            words.norm(),
            words.std(),
            words.abs().max() / 127,
            loss.exp(),
            words.logsumexp(0),
            words.softmax(0),
        ):
            made * 2
        ids.flatten().bincount(minlength=40), ids.unique(), (words > 0.5).nonzero()
        words.sort(0)
        (words > 0).cumsum(0)
        logits * words.sum().item()
        return logits


class Trained(Model):
    """Its loss is made of all rows of a pass: with a balance of experts, or between rows."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind, self.gate = kind, nn.Linear(40, 4)

    def forward(self, ids: torch.Tensor, cache: Any = None) -> torch.Tensor:
        logits = super().forward(ids)
        if self.kind == "rows":
            rows = F.normalize(logits.mean(1), dim=-1)
            return F.cross_entropy(rows @ rows.T / 0.1, torch.arange(len(rows)))
        shares = self.gate(logits).softmax(-1).flatten(0, 1)
        balance = (shares.mean(0) * F.one_hot(shares.argmax(-1), 4).float().mean(0)).sum()
        return F.cross_entropy(logits.flatten(0, 1), ids.roll(-1, 1).flatten()) + 0.1 * balance


class Experts(nn.Module):
    """Takes the words of each expert together."""

    def forward(self, words: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        _, order = torch.sort(chosen)
        made = F.silu(words[order])
        return (made * (chosen[order] + 1)[:, None])[order.argsort()]


class Routed(Model):
    def __init__(self) -> None:
        super().__init__()
        self.experts = Experts()

    def forward(self, ids: torch.Tensor, cache: Any = None) -> torch.Tensor:
        words = super().forward(ids).flatten(0, 1)
        return self.experts(words, words[:, :4].argmax(-1)).sin()


def look(rows: int) -> Run:
    def run(model: nn.Module) -> None:
        with torch.no_grad():
            for ids in IDS.split(rows):
                model(ids)

    return run


def learn(rows: int) -> Run:
    def run(model: nn.Module) -> None:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for ids in IDS.split(rows):
            (model(ids) / (4 // rows)).backward()
        optimizer.step()

    return run


def again(model: nn.Module) -> None:
    """A loop without a cache: each pass takes the whole text so far."""
    with torch.no_grad():
        for length in range(3, 7):
            model(IDS[:1, :length])


def steps(model: nn.Module) -> None:
    """Two training steps in one."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for ids in IDS.split(2):
        F.cross_entropy(model(ids).flatten(0, 1), ids.roll(-1, 1).flatten()).backward()
        optimizer.step()
        optimizer.zero_grad()


def padded(ids: torch.Tensor, rows: int) -> Run:
    def run(model: nn.Module) -> None:
        with torch.no_grad():
            for one in F.pad(ids, (0, 24)).split(rows):
                model(one)

    return run


def broken(prefill: int) -> Run:
    """The run dies in its last pass, in the second layer."""

    def run(model: Any) -> None:
        left = [7 - prefill]

        def die(*_: object) -> None:
            left[0] -= 1
            if not left[0]:
                raise ConnectionError

        handle = model.layers[1].up.register_forward_pre_hook(die)
        with suppress(ConnectionError):
            decode(prefill)(model)
        handle.remove()

    return run


RUNS: dict[str, tuple[Callable[[], nn.Module], Run, Any]] = {  # the model, what runs, its fault
    "watched whole": (Watched, look(4), None),
    "watched pairs": (Watched, look(2), None),
    "watched rows": (Watched, look(1), None),
    "balanced whole": (lambda: Trained("balance"), learn(4), None),
    "balanced pairs": (lambda: Trained("balance"), learn(2), None),
    "balanced rows": (lambda: Trained("balance"), learn(1), None),
    "balanced pairs, a fault": (lambda: Trained("balance"), learn(2), ("gelu", 2)),
    "contrasted whole": (lambda: Trained("rows"), learn(4), None),
    "contrasted pairs": (lambda: Trained("rows"), learn(2), None),
    "routed whole": (Routed, look(4), None),
    "routed pairs": (Routed, look(2), None),
    "routed rows": (Routed, look(1), None),
    "routed pairs, a fault": (Routed, look(2), ("silu", 1)),
    "without a cache": (Model, again, None),
    "one text": (Model, whole(), None),
    "broken off": (Model, broken(2), None),
    "broken off, in more passes": (Model, broken(1), None),
    "two steps": (Model, steps, None),
    "one batch": (Model, train(4), None),
    "padded pairs": (Model, train(2, padded=True), None),
    "padded rows": (Model, train(1, padded=True), None),
    "mostly padding": (Model, padded(IDS, 4), None),
    "other words, mostly padding": (Model, padded(OTHER, 2), None),
}


@pytest.fixture(scope="module")
def ask(tmp_path_factory: pytest.TempPathFactory) -> Any:
    root, made = tmp_path_factory.mktemp("mixed"), dict[tuple[str, str], Path]()

    def dump(name: str, task: str) -> Path:
        if task == "statistics" and (name, task) not in made:
            made[name, task] = without_tensors(dump(name, "tensor"), root / f"{len(made)}")
        elif (name, task) not in made:
            new, run, fault = RUNS[name]
            torch.manual_seed(3)
            model = new()

            def step() -> None:
                with nullcontext() if fault is None else Fault(*fault):
                    run(model)

            made[name, task] = recorded(root / f"{len(made)}", step, model=model, task="tensor")
        return made[name, task]

    def answer(target: str, golden: str, task: str) -> Answer:
        place = root / f"joined {target} {golden} {task}"
        return compare(dump(target, task), dump(golden, task), Options(), folder=place)[0]

    return answer


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize(
    ("target", "golden"),
    [
        ("watched pairs", "watched whole"), ("watched whole", "watched rows"), ("watched pairs", "watched rows"),
        ("balanced pairs", "balanced whole"), ("balanced rows", "balanced pairs"), ("contrasted pairs", "contrasted whole"),
        ("padded pairs", "padded rows"), ("routed pairs", "routed whole"), ("routed rows", "routed pairs"),
    ],
)  # fmt: skip
def test_what_a_pass_makes_of_all_its_rows_is_no_fault(ask: Any, target: str, golden: str, task: str) -> None:
    answer = ask(target, golden, task)
    assert [(one.node, one.kind, one.evidence) for one in answer.origins] == []
    assert answer.counts.no == 0, answer.first_no
    assert "the passes are put together" in answer.settings[0]
    words = " ".join(answer.settings)
    assert ("makes a value of all rows or positions" in words) == (target[:8] in ("balanced", "contrast"))
    assert ("each is a mean over its own words" in words) == target.startswith("padded")
    assert answer.counts.yes > 300, "what each pass makes of its rows alone is compared"


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_a_fault_is_named_beside_a_loss_that_balances_experts(ask: Any, task: str) -> None:
    (origin,) = ask("balanced pairs, a fault", "balanced whole", task).origins
    assert origin.node == "Functional.gelu.0.forward"


def test_a_fault_is_named_among_words_that_experts_take_sorted(ask: Any) -> None:
    (origin, *_) = ask("routed pairs, a fault", "routed whole", "tensor").origins
    assert origin.node == "Functional.silu.0.forward"


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_of_a_loop_without_a_cache_what_each_pass_took_more_is_compared_with_a_text(ask: Any, task: str) -> None:
    answer = ask("without a cache", "one text", task)
    assert (answer.outcome, answer.origins, answer.counts.no) == ("agrees", [], 0), answer.first_no
    assert "6 positions in 4 passes" in answer.settings[0]
    assert "a loop without a cache" in answer.settings[1]


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_training_steps_are_no_passes_of_one_batch(ask: Any, task: str) -> None:
    for sides in (("two steps", "one batch"), ("one batch", "two steps")):
        answer = ask(*sides, task)
        assert "the passes are put together" not in " ".join(answer.settings)
        assert max((one.confidence for one in answer.origins), default=0) < 0.5


@pytest.mark.parametrize("task", ["statistics", "tensor"])
def test_equal_padding_does_not_make_other_words_the_same_data(ask: Any, task: str) -> None:
    answer = ask("other words, mostly padding", "mostly padding", task)
    assert "the passes are put together" not in " ".join(answer.settings)


def test_a_last_pass_that_ended_early_is_told_and_the_pair_is_not_fully_judged(ask: Any) -> None:
    for golden in ("one text", "broken off, in more passes"):
        answer = ask("broken off", golden, "tensor")
        assert (answer.outcome, answer.origins, answer.counts.no) == ("not_fully_judged", [], 0), answer.first_no
        assert "The last pass of the target ended early" in answer.problems[0].message
