"""The advisor's three lines beside a ptdbg table: line, suspect and advice. The suspect is the cause that data flow finds."""

from __future__ import annotations

import re
from typing import Final

import numpy as np

from dumpscope.domain.facts import Origin, confidence_word
from dumpscope.domain.records import Role
from dumpscope.domain.result import Answer
from dumpscope.export.table.unit_table import Table
from dumpscope.ptdbg.export.marks import as_floats
from dumpscope.ptdbg.export.table import failing_rows

_AT_INPUT: Final = ("input", "weight", "configuration", "communication")
"""Kinds of causes that show in what a call received."""

_RANDOM_ORDER: Final = re.compile(r"(?:conv2d|conv3d|matmul|nll_loss|layer_norm|lstm).*ward[._]output")
_RUNNING: Final = re.compile(r"batch_norm.*forward[._]input\.[12]\b")


def advice(answer: Answer, table: Table) -> str:
    """Text of the file, the first No last. Line: of the suspect in the csv, where the heading is line 1; NA without a suspect.

    Further independent causes follow the first, with commas; what they only spread to is never named.
    """
    return _suspects(answer, table) + _first_no(table)


def _suspects(answer: Answer, table: Table) -> str:
    own = [origin for origin in answer.origins if (origin.step, origin.rank) == (table.step, table.rank)]
    if own:
        found = [_find_suspect(table, origin) for origin in own]
        lines = ", ".join(str(line) if line else "NA" for line, _ in found)
        names = ", ".join(name for _, name in found)
        advised = [_describe(origin) + _hint(name) for origin, (_, name) in zip(own, found, strict=True)]
        return _text(lines, names, " ".join(advised))
    elsewhere = [origin for origin in answer.origins if any(one.rank == table.rank for one in origin.spread)]
    if elsewhere:
        first = elsewhere[0]
        said = f"What differs here came from {first.node} of step {first.step} rank {first.rank}. {_describe(first)}"
        return _text("NA", first.node, said)
    return _text("NA", "NA", _explain_no_suspect(table))


def _text(line: str, suspects: str, said: str) -> str:
    return f"Line: {line}\nSuspect Nodes: {suspects}\nExpert Advice: {' '.join(said.split())}\n"


def _first_no(table: Table) -> str:
    """The first value of both sides whose Accuracy is No: what readers of ptdbg's advice know as its answer; "" without one."""
    rows = np.flatnonzero(failing_rows(table) & table.present(golden=True) & table.present(golden=False))
    if not len(rows):
        return ""
    line = int(table.present(golden=False)[: rows[0] + 1].sum()) + 1
    return f"First No: line {line}, {table.target.names(rows[:1])[0]}\n"


def _describe(origin: Origin) -> str:
    sure = f"{confidence_word(origin.confidence)} ({100 * origin.confidence:.0f} %)"
    return f"{origin.evidence} {origin.advice} Confidence: {sure}."


def _hint(name: str) -> str:
    """What is known of the operator whose value is the suspect."""
    if _RANDOM_ORDER.search(name):
        return " Its kernels may add in another order each time: repeat both runs with seed_all(mode=True) to tell."
    if _RUNNING.search(name):
        return " Its running statistics took part: hold them fixed on both sides, or repeat both runs with seed_all(mode=True)."
    return ""


def _find_suspect(table: Table, origin: Origin) -> tuple[int | None, str]:
    """Line in the csv and name of the value at which a cause shows most."""
    shown = np.cumsum(table.present(golden=False)) + 1
    rows = np.flatnonzero((table.pair == origin.pair) & table.present(golden=False))
    if not len(rows):
        return None, origin.node
    given = np.isin(table.role[rows], (Role.INPUT, Role.KWARG, Role.PARAMETER))
    wanted = given if origin.kind in _AT_INPUT else ~given
    if wanted.any():
        rows = rows[wanted]
    score = as_floats(table.score, rows)
    row = int(rows[np.argmax(np.where(np.isnan(score), -1.0, score))])
    name = table.target.names(np.array([row]))[0]
    return int(shown[row]), name or origin.node


def _explain_no_suspect(table: Table) -> str:
    """Why nothing is suspect."""
    both = table.present(golden=True) & table.present(golden=False)
    if not both.any():
        return "No value of one side met one of the other: nothing was compared. Check that both ran the same model."
    if table.mode != "structure" and not (both & ~table.ruled("X-3", "X-4")).any():
        return "No number of one side met one of the other: nothing was compared. Name the folders of tensors as well."
    bad = int((failing_rows(table) & both).sum())
    if bad:
        return f"{bad} values are beyond the limits, and no single call is their cause: they differ everywhere, or too little."
    unlike = both & (table.ruled("V-1") | table.ruled("P-4") & (as_floats(table.score, np.arange(len(table))) > 1))
    if unlike.any():
        first = table.target.names(np.flatnonzero(unlike)[:1])[0]
        others = f"The others are within the limits.{_count_not_compared(table)}"
        return f"{int(unlike.sum())} values differ and no label says so, the first is {first}. {others}"
    return f"All values that were compared are within the limits.{_count_not_compared(table)}"


def _count_not_compared(table: Table) -> str:
    """What the limits say nothing about: values that have no partner, or no number that its partner has too."""
    target, golden = table.present(golden=False), table.present(golden=True)
    counts = int((target & ~golden).sum()), int((golden & ~target).sum())
    bare = int((target & golden & table.ruled("X-3", "X-4")).sum()) if table.mode != "structure" else 0
    said = f" {bare} values hold no number that both sides have and were not compared." if bare else ""
    if not any(counts):
        return said
    return (
        f"{said} {counts[0]} values of the NPU side and {counts[1]} of the bench have no partner and were not compared."
    )
