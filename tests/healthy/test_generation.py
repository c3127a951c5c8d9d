"""The same words generated with a cache that grows, one of full length, and none: healthy pairs agree, faults are named."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from pipeline.comparing import compare  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

from dumpscope.domain.facts import Outcome  # noqa: E402
from dumpscope.domain.records import Kind  # noqa: E402
from dumpscope.parallel.passes.relation import Place, find_place  # noqa: E402
from healthy.generation import NEW, Behind, Full, Generator, Growing, WrongPlace, generate  # noqa: E402
from healthy.recording import recorded  # noqa: E402
from healthy.test_passes import without_tensors  # noqa: E402
from healthy.tokens import Fault  # noqa: E402

RUNS: dict[str, tuple[Any, Any, dict[str, Any]]] = {  # what runs, its fault, what model and record are like
    "growing": (generate(Growing), None, {}),
    "full": (generate(Full), None, {}),
    "loop": (generate(None), None, {}),
    "chunks": (generate(Growing, (3, 1)), None, {}),
    "growing, eager": (generate(Growing), None, {"eager": True}),
    "full, eager": (generate(Full), None, {"eager": True}),
    "loop, eager": (generate(None), None, {"eager": True}),
    "chunks, eager": (generate(Growing, (3, 1)), None, {"eager": True}),
    "growing, two rows": (generate(Growing, rows=2), None, {"eager": True}),
    "full, two rows": (generate(Full, rows=2), None, {"eager": True}),
    "loop, two rows": (generate(None, rows=2), None, {"eager": True}),
    "growing, encoder": (generate(Growing), None, {"encoder": True}),
    "full, encoder": (generate(Full), None, {"encoder": True}),
    "loop, encoder": (generate(None), None, {"encoder": True}),
    "growing, modules": (generate(Growing), None, {"level": "L0"}),
    "full, modules": (generate(Full), None, {"level": "L0"}),
    "loop, modules": (generate(None), None, {"level": "L0"}),
    "growing, functions": (generate(Growing), None, {"level": "L1", "encoder": True}),
    "loop, functions": (generate(None), None, {"level": "L1", "encoder": True}),
    "behind": (generate(Behind), None, {}),
    "behind, modules": (generate(Behind), None, {"level": "L0"}),
    "behind, gelu": (generate(Behind), ("gelu", 5), {}),
    "full, gelu": (generate(Full), ("gelu", 5), {}),  # of the second layer, in the third pass
    "full, eager, softmax": (generate(Full), ("_softmax", 5), {"eager": True}),
    "full, eager, place": (generate(Full), WrongPlace, {"eager": True}),
    "loop, gelu": (generate(None), ("gelu", 5), {}),
    "loop, eager, softmax": (generate(None), ("_softmax", 5), {"eager": True}),
    "chunks, eager, softmax": (generate(Growing, (3, 1)), ("_softmax", 7), {"eager": True}),
    "loop, encoder, gelu": (generate(None), ("gelu", 6), {"encoder": True}),
    "full, encoder, gelu": (generate(Full), ("gelu", 0), {"encoder": True}),
}


@pytest.fixture(scope="module")
def dumps(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A dump of a run, made when it is first asked for."""
    root, made = tmp_path_factory.mktemp("generation"), dict[tuple[str, str], Path]()

    def dump(name: str, task: str) -> Path:
        if task == "statistics" and (name, task) not in made:
            made[name, task] = without_tensors(dump(name, "tensor"), root / f"{len(made)}")
        elif (name, task) not in made:
            run, fault, keys = RUNS[name]
            torch.manual_seed(4)
            model = Generator(eager=keys.get("eager", False), encoder=keys.get("encoder", False))

            def step() -> None:
                with nullcontext() if fault is None else WrongPlace(5) if fault is WrongPlace else Fault(*fault):
                    run(model)

            level = keys.get("level", "mix")
            made[name, task] = recorded(root / f"{len(made)}", step, model=model, task="tensor", level=level)
        return made[name, task]

    return dump


KEPT = "keeps the keys and values of its cache at their full length of 9 positions"
ANEW = "took all that the one before had taken, and more (a loop without a cache)"
LAST = "computes all positions again in each pass"
PASSES = "the passes are put together"
HEALTHY = {
    ("full", "growing"): (KEPT,),
    ("full, eager", "growing, eager"): (KEPT,),
    ("growing, two rows", "full, two rows"): (KEPT,),
    ("full, encoder", "growing, encoder"): (KEPT,),
    ("full, modules", "growing, modules"): (),
    ("loop", "growing"): (ANEW, PASSES),
    ("growing, eager", "loop, eager"): (ANEW, PASSES),
    ("loop, two rows", "growing, two rows"): (ANEW, PASSES),
    ("loop, encoder", "growing, encoder"): (ANEW, PASSES),
    ("loop, modules", "growing, modules"): (ANEW, PASSES),
    ("loop, functions", "growing, functions"): (ANEW, PASSES),
    ("loop, eager", "full, eager"): (ANEW, PASSES),
    ("loop", "full"): (ANEW, PASSES),
    ("loop", "behind"): (LAST,),
    ("loop, modules", "behind, modules"): (LAST,),
    ("chunks", "growing"): (PASSES,),
    ("chunks, eager", "growing, eager"): (PASSES,),
    ("full, eager", "chunks, eager"): (PASSES,),
    ("chunks, eager", "loop, eager"): (ANEW, PASSES),
}


@pytest.mark.parametrize("task", ["statistics", "tensor"])
@pytest.mark.parametrize("pair", list(HEALTHY), ids=" : ".join)
def test_a_healthy_pair_is_told_and_agrees(ask: Any, pair: tuple[str, str], task: str) -> None:
    answer, unit = ask(*pair, task)
    assert [(one.node, one.kind, one.evidence) for one in answer.origins] == []
    assert (answer.outcome, answer.counts.no) == ("agrees", 0), answer.first_no
    words = " ".join(answer.settings)
    assert [word for word in (KEPT, LAST, ANEW, PASSES) if word in words] == list(dict.fromkeys(HEALTHY[pair]))
    assert "another risk level" not in words
    lost = (unit.facts.outcome == Outcome.NO_DATA) & unit.context.both & (unit.context.kind == Kind.TENSOR)
    if task == "tensor":
        assert lost.sum() <= 0.03 * answer.counts.items, "keys, scores and masks are compared as far as both go"
        assert answer.counts.yes > 0.8 * answer.counts.items
    else:
        assert answer.counts.yes > 0.5 * answer.counts.items


FAULTS = {
    ("full, gelu", "growing"): ("Functional.gelu.5.forward", "computation"),
    ("full, eager, softmax", "growing, eager"): ("Functional.softmax.5.forward", "computation"),
    ("full, eager, place", "growing, eager"): ("Tensor.index_copy_.5.forward", "structure"),
    ("loop, gelu", "growing"): ("Functional.gelu.1.forward", "computation"),
    ("loop, gelu", "full"): ("Functional.gelu.1.forward", "computation"),
    ("loop, eager, softmax", "growing, eager"): ("Functional.softmax.1.forward", "computation"),
    ("chunks, eager, softmax", "growing, eager"): ("Functional.softmax.1.forward", "computation"),
    ("behind, gelu", "loop"): ("Functional.gelu.5.forward", "computation"),
    ("loop, gelu", "behind"): ("Functional.gelu.5.forward", "computation"),
    ("loop, encoder, gelu", "growing, encoder"): ("Functional.gelu.2.forward", "computation"),
    ("full, encoder, gelu", "growing, encoder"): ("Functional.gelu.0.forward", "computation"),
}


@pytest.mark.parametrize("pair", list(FAULTS), ids=" : ".join)
def test_a_fault_in_such_a_pair_is_named(ask: Any, pair: tuple[str, str]) -> None:
    for sides in (pair,) if "place" in pair[0] else (pair, pair[::-1]):  # calls of the golden alone are no structure
        answer, _ = ask(*sides, "tensor")
        assert [(one.node, one.kind) for one in answer.origins][:1] == [FAULTS[pair]]


@pytest.mark.parametrize("pair", [pair for pair in FAULTS if "gelu" in pair[0]], ids=" : ".join)
def test_statistics_name_a_fault_of_one_pass_whatever_later_passes_make_again(ask: Any, pair: tuple[str, str]) -> None:
    answer, _ = ask(*pair, "statistics")
    named = [(one.node, one.kind) for one in answer.origins][:1]
    if "behind" in " ".join(pair):  # of other shapes, so that statistics show the module of the pass around it
        assert named == [("Module.decoder.Decoder.forward.2", "computation")]
        assert "inside it made could not be compared" in answer.origins[0].evidence
        assert answer.origins[0].confidence < 0.5
    else:
        assert named == [FAULTS[pair]]


def test_a_fault_in_a_loop_without_a_cache_is_named_with_its_pass(ask: Any) -> None:
    answer, _ = ask("loop, gelu", "growing", "tensor")
    assert f"lies in pass 3 of the target's {NEW + 1}, at Functional.gelu.5.forward." in answer.origins[0].evidence


class Longer(nn.Module):
    """Two layers; between them places are put behind the words."""

    def __init__(self, places: int) -> None:
        super().__init__()
        self.places, self.one, self.two, self.three = places, *(nn.Linear(8, 8) for _ in range(3))

    def forward(self, x: Any) -> Any:
        x = torch.relu(self.one(x))
        if self.places:
            x = F.pad(x, (0, 0, 0, self.places))
        return torch.relu(self.three(torch.relu(self.two(x))))


def test_activations_that_became_longer_are_no_cache(tmp_path: Path) -> None:
    sides = []
    for name, places in (("target", 2), ("golden", 0)):
        torch.manual_seed(3)
        model, data = Longer(places), torch.randn(2, 5, 8, generator=torch.Generator().manual_seed(1))
        sides.append(recorded(tmp_path / name, lambda model=model, data=data: model(data), model=model, task="tensor"))
    answer, _ = compare(*sides)
    assert answer.outcome == "diverged"
    assert KEPT[:30] not in " ".join(answer.settings)
    assert answer.counts.no > 0


def test_places_of_what_all_passes_hold_and_of_what_each_adds_are_told_apart() -> None:
    sizes = (4, 1, 1), (3, 1, 1, 1)
    held, kept = [(2, 4, 8), (2, 5, 8), (2, 6, 8)], [(2, 9, 8)] * 3
    parts = [(2, 3, 8), (2, 1, 8), (2, 1, 8), (2, 1, 8)]
    assert find_place(held, parts, sizes, (True, False)) == Place(cut=1)
    assert find_place(kept, [(2, 6, 8)], ((4, 1, 1), (6,))) == Place(grown=1, kept=True)
    assert find_place(held, [(2, 6, 8)], ((4, 1, 1), (6,))) == Place(grown=1)
    scores = [(2, size, size) for size in (4, 5, 6)]
    assert find_place(scores, [(2, 6, 6)], ((4, 1, 1), (6,)), (True, False)) == Place(cut=1, grown=2)
    assert find_place(kept, [(2, 12, 8)], ((4, 1, 1), (6,))) is None
