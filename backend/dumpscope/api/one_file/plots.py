"""Which plots a file holds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

from dumpscope.api.one_file.asking import Held
from dumpscope.api.one_file.calls import Row, Unit

OF_TENSOR: Final = ("histogram", "pair-density", "difference-map", "error-histogram")
OF_RUN: Final = ("error-order", "api-errors")
"""Plots that are kept once without a mark, for all calls whose own the file does not hold."""
OF_CALL: Final = ("error-order", "api-distribution", "call-runs")
SCALED: Final = ("histogram", "pair-density", "error-histogram", "error-order", "api-distribution", "api-errors")
"""Plots that are kept in both scales."""
WINDOWS: Final = ((7, 5), (15, 9))
"""Rows and columns of values around an element; `windowSize` of frontend/src/widgets/plots/ValueBox.tsx."""
TENSORS: Final = 3
"""Tensors of a suspect that have plots: the worst first."""

Node = Mapping[str, Any]


def take_run_plots(held: Held, top: str, unit: Unit) -> None:
    """Plots of all calls of a step and rank."""
    for name in OF_RUN:
        _take(held, top, unit, None, name, None)


def take_plots(held: Held, top: str, unit: Unit, row: Row, node: Node) -> None:
    """All plots of a call, as the page asks for them."""
    for name in OF_CALL:
        _take(held, top, unit, row, name, None)
    for place, pair in enumerate(tensors(node)[:TENSORS]):
        for name in OF_TENSOR:
            _take(held, top, unit, row, name, pair)
            if place == 0 and name == "histogram":
                _figure(held, top, unit, row, name, pair, ecdf=True)
        for rows, columns in WINDOWS:
            held.take(f"{top}/pairs/{pair}/values", rows=rows, columns=columns)


def take_first_plot(held: Held, top: str, unit: Unit, row: Row, node: Node, mode: str) -> None:
    """The plot that the page shows first, if it is about the call alone; as `PlotPanel` of the page chooses it."""
    worst = tensors(node)[:1]
    if mode == "tensor" and node["match"] != "none":
        _figure(held, top, unit, row, "histogram", worst[0] if worst else None)


def _take(held: Held, top: str, unit: Unit, row: Row | None, name: str, pair: int | None) -> None:
    drawn = _figure(held, top, unit, row, name, pair)
    if drawn is None or drawn["figure"] is None or name not in SCALED:
        return
    _figure(held, top, unit, row, name, pair, log=not drawn["log"])
    same = {**_query(unit, row, pair), "log": drawn["log"]}
    held.keep(f"{top}/figures/{name}", same, 200, json.dumps(drawn, ensure_ascii=False).encode("utf-8", "replace"))


def _figure(held: Held, top: str, unit: Unit, row: Row | None, name: str, pair: int | None, **more: Any) -> Any:
    return held.take(f"{top}/figures/{name}", **_query(unit, row, pair), **more)


def _query(unit: Unit, row: Row | None, pair: int | None) -> dict[str, Any]:
    return {**unit.query, "node": None if row is None else row["address"], "pair": pair, "reduce": "max"}


def tensors(node: Node) -> list[int]:
    """Numbers of a call's pairs of tensors, the one first that the page shows first: the worst output, else the worst."""
    pairs = [one for one in node["items"] if _shape(one) is not None]
    outputs = [one for one in pairs if one["role"] in ("output", "parameters_grad")]
    best = sorted(outputs or pairs, key=_score, reverse=True)
    rest = sorted((one for one in pairs if one not in best), key=_score, reverse=True)
    return [one["id"] for one in (*best, *rest)]


def _shape(pair: Mapping[str, Any]) -> Any:
    leaf = pair["target_leaf"] or pair["golden_leaf"]
    return None if leaf is None else leaf["shape"]


def _score(pair: Mapping[str, Any]) -> float:
    score = pair["score"]
    if score is None:
        return -1.0
    number = float(score)
    return math.inf if math.isnan(number) else number
