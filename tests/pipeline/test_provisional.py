"""While many tensors are read, the job's message names the first origin that the statistics tell."""

from __future__ import annotations

from pathlib import Path

import pytest

from dumpscope.domain.options import Options
from dumpscope.pipeline.compare import provisional
from dumpscope.pipeline.compare.unit import compare_rank
from dumpscope.readers import discover, read_rank


def told(target: Path, golden: Path) -> list[str]:
    messages: list[str] = []
    compare_rank(
        read_rank(discover(target).ranks[0]),
        read_rank(discover(golden).ranks[0]),
        step=0,
        rank=0,
        options=Options(),
        progress=lambda _done, text: messages.append(text),
    )
    return messages


@pytest.mark.parametrize(
    ("target", "node"),
    [("target_fault", "Functional.softmax.1.forward"), ("target_nan", "Functional.gelu.0.forward")],
)
def test_every_message_names_it_until_the_tensors_are_read(
    dumps: Path, monkeypatch: pytest.MonkeyPatch, target: str, node: str
) -> None:
    monkeypatch.setattr(provisional, "WORTH", 1)
    messages = told(dumps / target, dumps / "golden")
    assert messages[0] == f"reading tensors; provisional: {node}"
    assert all(message.endswith(f"; provisional: {node}") for message in messages)


def test_where_the_statistics_agree_no_node_is_named(dumps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provisional, "WORTH", 1)
    assert all("provisional" not in message for message in told(dumps / "golden", dumps / "golden"))


def test_a_pair_that_is_read_at_once_gets_no_early_answer(dumps: Path) -> None:
    assert all("provisional" not in message for message in told(dumps / "target_fault", dumps / "golden"))
