"""Dumps of small functions, made here by our own capture, and the answer to a pair of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import torch
from capture.conftest import forget
from model_cases.garbage import Garbage
from pipeline.comparing import compare

from dumpscope.domain.records import item_name
from dumpscope.domain.result import Answer, Unit
from dumpscope.verdict.rules import VERDICT_RULES
from dumpscope_capture import PrecisionDebugger


def recorded(
    path: Path, run: Callable[[], Any], *, seed: int = 0, model: torch.nn.Module | None = None, **keys: Any
) -> Path:
    """Dump of one step. run: what is recorded; seed: of what uninitialised memory holds"""
    forget()
    torch.manual_seed(7)
    level = "L1" if model is None else "mix"
    settings = {"task": "statistics", "dump_path": str(path), "level": level, "risk_level": "FOCUS", **keys}
    path.mkdir(parents=True)
    config = path / "settings.json"
    config.write_text(json.dumps({settings["task"]: {}, **settings}), encoding="utf-8")
    debugger = PrecisionDebugger(str(config))
    with Garbage(seed):
        debugger.start(*([] if model is None else [model]))
        try:
            run()
        finally:
            debugger.stop()
            debugger.step()
            forget()
    return path


def answer_of(folder: Path, target: Callable[[], Any], golden: Callable[[], Any], **keys: Any) -> tuple[Answer, Unit]:
    """The answer to a pair of runs whose uninitialised memory differs."""
    answer, units = compare(
        recorded(folder / "target", target, seed=1, **keys), recorded(folder / "golden", golden, seed=2, **keys)
    )
    return answer, units[0]


def answer_of_kernels(
    folder: Path,
    run: Callable[[torch.nn.Linear, torch.Tensor], Any],
    target: AbstractContextManager[Any],
    golden: AbstractContextManager[Any],
    **keys: Any,
) -> Answer:
    """The answer to a step of one layer under other kernels on each side. run: makes the loss from the layer and its rows"""
    sides = []
    for name, kernels in (("target", target), ("golden", golden)):
        torch.manual_seed(3)
        layer, rows = torch.nn.Linear(8, 16), torch.randn(6, 8)

        def step(
            layer: torch.nn.Linear = layer, rows: torch.Tensor = rows, kernels: AbstractContextManager[Any] = kernels
        ) -> None:
            with kernels:
                run(layer, rows).backward()

        sides.append(recorded(folder / name, step, model=layer, **keys))
    return compare(*sides)[0]


def verdicts(unit: Unit) -> dict[str, str]:
    """Rule of every item that the target has, by name."""
    rules = unit.item_opinions.rule.tolist()
    return {
        item_name(unit.target, item): VERDICT_RULES[rule]
        for item, rule in zip(unit.items.target.tolist(), rules, strict=True)
        if item >= 0
    }
