"""Dumps of small functions, made here by our own capture, and the answer to a pair of them."""

from __future__ import annotations

import json
from collections.abc import Callable
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


def verdicts(unit: Unit) -> dict[str, str]:
    """Rule of every item that the target has, by name."""
    rules = unit.item_opinions.rule.tolist()
    return {
        item_name(unit.target, item): VERDICT_RULES[rule]
        for item, rule in zip(unit.items.target.tolist(), rules, strict=True)
        if item >= 0
    }
