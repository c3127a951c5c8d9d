"""Elements in another order, which only the last digits of a sum show: named with the doubt that is left, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pipeline.comparing import compare
from pipeline.written_runs import Array, Recording, random

from dumpscope.domain.facts import Origin
from dumpscope.domain.result import Answer


def in_order(array: Array, other: bool) -> Array:
    """The rows in their order or in another, with sums taken in that order, in 32 bits as kernels do."""
    return np.ascontiguousarray(array[::-1]) if other else array


def summed(run: Recording, array: Array) -> dict[str, object]:
    """A record with the mean as a kernel in 32 bits sums it, one element after another."""
    kept = run.record(array)
    kept["Mean"] = float(np.cumsum(array.reshape(-1), dtype=np.float32)[-1] / np.float32(array.size))
    return kept


def net(
    folder: Path, *, cut: bool = False, inside: bool = False, kernel: float = 1.0, begun: int = 0, noise: float = 0.0
) -> Path:
    """Patches, to which positions are added, and a product.

    cut: the call that makes the patches puts them out in another order; inside: they change places in between, unseen
    kernel: factor of the product; begun: equal products before it; noise: of the patches
    """
    run = Recording(folder, level="mix")
    x = random(0, 16, 32)
    for call in range(begun):
        own = random(50 + call, 32, 32)
        run.call(f"Functional.linear.{call}.forward", [x, own], [x := (x @ own / 6).astype(np.float32)])
    own = random(1, 32, 32)
    made = in_order((x @ own / 6 * (1 + noise)).astype(np.float32), cut)
    module = "Module.block.Block.forward.0"
    run.call("Functional.conv2d.0.forward", [x, own], [summed(run, made)], within=None)
    taken = in_order(made, inside)
    places = random(2, 16, 32) / np.float32(3)
    put = (taken + places).astype(np.float32)
    run.call("Tensor.__add__.0.forward", [summed(run, taken), places], [put], within=module)
    last = random(3, 32, 32)
    left = (put @ last / 6 * kernel).astype(np.float32)
    run.call("Functional.linear.9.forward", [put, last], [left], within=module)
    run.call(module, [summed(run, made)], [left])
    return run.done()


def ask(tmp_path: Path, **how: float | bool) -> Answer:
    begun = int(how.get("begun", 0))
    return compare(net(tmp_path / "t", **how), net(tmp_path / "g", begun=begun))[0]  # type: ignore[arg-type]


def first(tmp_path: Path, **how: float | bool) -> Origin:
    return ask(tmp_path, **how).origins[0]


def test_the_call_that_put_them_out_is_named_also_where_nothing_rounded_before_it(tmp_path: Path) -> None:
    origin = first(tmp_path, cut=True)
    assert (origin.node, origin.kind) == ("Functional.conv2d.0.forward", "computation")
    assert "the same elements in another order" in origin.evidence
    assert "Tensor.__add__.0.forward is the first call at which values differ" in origin.evidence
    assert origin.confidence < 0.6


@pytest.mark.parametrize("begun", [0, 4])
def test_what_no_dumped_call_exchanged_is_told_as_a_doubt(tmp_path: Path, begun: int) -> None:
    origin = first(tmp_path, inside=True, begun=begun)
    assert (origin.node, origin.kind) == ("Tensor.__add__.0.forward", "computation")
    assert "No dumped call changed the order" in origin.evidence
    assert "its own kernel may be at fault too" in origin.evidence
    assert "tensors" in origin.advice
    assert origin.confidence < 0.5


@pytest.mark.parametrize("how", [{"kernel": 1.1}, {"kernel": 1.1, "begun": 4}])
def test_an_ordinary_fault_keeps_its_confidence(tmp_path: Path, how: dict[str, float]) -> None:
    origin = first(tmp_path, **how)
    assert (origin.node, origin.confidence) == ("Functional.linear.9.forward", 0.85)


def test_other_digits_of_all_elements_are_no_other_order(tmp_path: Path) -> None:
    """Rounding changes the extremes too: the fault behind it stays where it is."""
    origin = first(tmp_path, noise=3e-7, kernel=1.1)
    assert origin.node == "Functional.linear.9.forward"
    assert "another order" not in origin.evidence
