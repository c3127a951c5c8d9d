"""The report of a comparison in memory: its leading figures, the worst pairs, the calls without a partner."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, Protocol

import numpy as np

from dumpscope import __version__
from dumpscope.domain.facts import CLASS_WORDS, LEFTOVER_WORDS, Class, Method, Outcome, Verdict, unmatched_sentence
from dumpscope.domain.records import Direction
from dumpscope.domain.result import Answer, Unit
from dumpscope.export.report import TOP_ROWS, Drawing, Report, TopRow
from dumpscope.export.table.unit_table import Table
from dumpscope.plots.run.distribution import ApiDistribution, api_distribution_data, api_distribution_phrases
from dumpscope.plots.run.order import ErrorOrder, error_order_data, error_order_phrases
from dumpscope.plots.svg import api_distribution_svg, error_order_svg
from dumpscope.texts import rendered, say, tell

DRAWN: Final = 4
"""Units that get figures: those with origins first."""


class Units(Protocol):
    """All units of a comparison, by step and rank; each access may load one."""

    @property
    def places(self) -> list[tuple[int, int]]: ...
    def __getitem__(self, place: int, /) -> Unit: ...
    def __iter__(self) -> Iterator[Unit]: ...


def report(answer: Answer, units: Units) -> Report:
    """Everything `report_html` shows. Looks at one unit at a time, some of them several times."""
    classes: Counter[str] = Counter()
    alone: dict[bool, list[str]] = {False: [], True: []}
    for unit in units:
        for code, count in Counter(unit.node_opinions.cls.tolist()).items():
            classes[CLASS_WORDS[Class(code)]] += count
        for golden, names in alone.items():
            names.extend(unmatched(unit, golden=golden))
    return Report(
        title=tell("report.title", target=answer.target.path, golden=answer.golden.path),
        answer=answer,
        version=__version__,
        drawings=_drawings(answer, units),
        top=_top(units),
        unmatched_target=alone[False],
        unmatched_golden=alone[True],
        classes=dict(classes),
    )


def pair_name(unit: Unit, pair: int) -> str:
    """Name of a node pair: the target's, where it has one."""
    target = int(unit.pairs.target[pair])
    if target >= 0:
        return unit.target.nodes.names[target]
    return unit.golden.nodes.names[int(unit.pairs.golden[pair])]


def unmatched(unit: Unit, *, golden: bool) -> list[str]:
    """The calls that only one side made, in the run's order, each with the likely cause; none of those inside a fused call."""
    pairs = unit.pairs
    missing = (pairs.target < 0 if golden else pairs.golden < 0) & (pairs.method != Method.FUSED)
    return [f"{pair_name(unit, pair)}: {_cause(unit, pair)}" for pair in np.flatnonzero(missing).tolist()]


def _cause(unit: Unit, pair: int) -> str:
    word, beside = LEFTOVER_WORDS[unit.pairs.leftover[pair]], int(unit.pairs.beside[pair])
    return (
        rendered(unmatched_sentence(word, pair_name(unit, beside) if beside >= 0 else None)) if word is not None else ""
    )


def order_of(unit: Unit, selected: int | None = None, origins: Sequence[int] = ()) -> ErrorOrder:
    """Error of every node pair in call order. selected, origins: node pair numbers."""
    names = [pair_name(unit, pair) for pair in range(len(unit.pairs))]
    target, golden = unit.pairs.target, unit.pairs.golden
    backward = np.zeros(len(names), bool)
    for codes, directions in (
        (target, unit.target.nodes.direction),
        (golden, unit.golden.nodes.direction),
    ):
        has = codes >= 0
        backward[has] = directions[codes[has]] == Direction.BACKWARD
    first = np.flatnonzero(backward)
    return error_order_data(
        np.arange(len(names)),
        unit.node_opinions.in_score,
        unit.node_opinions.out_score,
        names,
        selected=selected,
        origins=origins,
        backward=int(first[0]) if len(first) else None,
    )


def calls_of(unit: Unit, pair: int) -> ApiDistribution:
    """Output error of every call of the API of node pair `pair`, in the same direction."""
    label, direction = _label(unit, pair)
    same = [other for other in range(len(unit.pairs)) if _label(unit, other) == (label, direction)]
    return api_distribution_data(
        f"{label} {direction.name.lower()}" if direction is not Direction.NONE else label,
        same,
        unit.node_opinions.out_score[same],
        [pair_name(unit, other) for other in same],
        pair=same,
        current=same.index(pair),
    )


def _label(unit: Unit, pair: int) -> tuple[str, Direction]:
    target = int(unit.pairs.target[pair])
    nodes, node = (unit.target.nodes, target) if target >= 0 else (unit.golden.nodes, int(unit.pairs.golden[pair]))
    code = int(nodes.label[node])
    return (nodes.labels[code] if code >= 0 else nodes.names[node]), Direction(int(nodes.direction[node]))


def _drawings(answer: Answer, units: Units) -> list[Drawing]:
    drawings: list[Drawing] = []
    causes: dict[tuple[int, int], list[int]] = {}
    for origin in answer.origins:
        if origin.pair >= 0:
            causes.setdefault((origin.step, origin.rank), []).append(origin.pair)
    places = units.places
    for place in sorted(range(len(places)), key=lambda place: places[place] not in causes)[:DRAWN]:
        unit = units[place]
        pairs = causes.get((unit.step, unit.rank), [])
        where = say("pipeline.step_rank_2", step=unit.step, rank=unit.rank)
        order = order_of(unit, pairs[0] if pairs else None, pairs)
        drawings.append(
            Drawing(
                title=tell("report.error_in_order", where=where),
                svg=error_order_svg(order),
                text=rendered(error_order_phrases(order)),
            )
        )
        for pair in pairs[:1]:
            calls = calls_of(unit, pair)
            drawings.append(
                Drawing(
                    title=tell("report.every_call", api=calls.api, where=where),
                    svg=api_distribution_svg(calls),
                    text=rendered(api_distribution_phrases(calls)),
                )
            )
    return drawings


def _top(units: Units) -> list[TopRow]:
    """Rows with verdict No in the run's order."""
    found: list[TopRow] = []
    for unit in units:
        if (unit.item_opinions.verdict == Verdict.NO).any():
            found += _top_of(Table(unit), TOP_ROWS - len(found))
        if len(found) >= TOP_ROWS:
            break
    return found


def _top_of(table: Table, limit: int) -> list[TopRow]:
    rows = np.flatnonzero(table.verdict == Verdict.NO)[:limit]
    measured = [(name, series.values(rows)) for name, series in table.metrics()]
    scalar = (table.row_outcome[rows] == Outcome.SCALAR).tolist()
    names = (table.target.names(rows), table.golden.names(rows), table.sentences(rows))
    return [
        TopRow(
            target=target or "",
            golden=golden or "",
            verdict=Verdict.NO,
            metrics={
                name: values[place]
                for name, values in measured
                if values[place] is not None and (name == "score" or not scalar[place])
            },
            message=message,
        )
        for place, (target, golden, message) in enumerate(zip(*names, strict=True))
    ]
