"""A result as JUnit XML for continuous integration: a suite that holds the form of the answer and what of it was judged, then a
suite per step and rank, a case per call, a failure per No, an error per call of which something that matters was not judged."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from dumpscope.domain.coverage import GROUPS, LOST, NOT_FULLY_JUDGED, Reason
from dumpscope.domain.facts import CAUSES, CLASS_WORDS, Verdict
from dumpscope.domain.records import Bool, Int8, Int64
from dumpscope.domain.result import Answer
from dumpscope.export.stack_frames import locate_call
from dumpscope.export.table.unit_table import Table
from dumpscope.texts import english
from dumpscope.verdict.coverage import describe_reason, find_reasons, missing

SHOWN: Final = 20
"""Items whose reasons a failure lists; a count stands for the others."""

_UNFIT: Final = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 cannot hold, even escaped."""


def junit_text(tables: Iterable[Table], name: str, answer: Answer | None = None) -> Iterator[str]:
    """The document, a few thousand calls at a time. name: of the comparison; answer: None for its calls alone

    A call fails if its verdict is No; it is an error if it is an origin without a No (a call of one side only), or if something
    that matters of it was not judged; it is skipped if nothing else of it was, and passes with a text on stdout for a Warning.
    """
    yield f'<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name={_attribute(name)}>\n'
    if answer is not None:
        yield _whole(answer)
    for table in tables:
        yield from _suite(table)
    yield "</testsuites>\n"


def _whole(answer: Answer) -> str:
    """The suite of the comparison as a whole: an error for each part of the input that could not be compared."""
    facts = {"outcome": answer.outcome}
    if answer.coverage is not None:
        facts |= {f"items.{group}": str(answer.coverage.group(group)) for group in GROUPS}
        facts |= {f"items.{one['group']}.{one['reason']}": str(one["items"]) for one in answer.coverage.counted()}
    properties = "".join(
        f"<property name={_attribute(key)} value={_attribute(value)}/>\n" for key, value in facts.items()
    )
    lost = [problem for problem in answer.problems if problem.kind in LOST]
    cases = "".join(
        f'<testcase classname="comparison" name={_attribute(problem.loc or problem.kind)}>'
        f'<error type="{NOT_FULLY_JUDGED}" message={_attribute(problem.message)}/></testcase>\n'
        for problem in lost
    )
    counts = f'tests="{len(lost)}" failures="0" errors="{len(lost)}" skipped="0"'
    return f'<testsuite name="comparison" {counts}>\n<properties>\n{properties}</properties>\n{cases}</testsuite>\n'


def _suite(table: Table) -> Iterator[str]:
    pairs, first = np.unique(table.pair, return_index=True)
    verdicts = table.unit.node_opinions.verdict[pairs]
    place = f"step{table.step}.rank{table.rank}"
    unjudged = _unjudged(table)
    failed = verdicts == Verdict.NO
    errors = np.array([pair in unjudged for pair in pairs.tolist()], bool)
    errors = (errors | np.isin(table.unit.node_opinions.cls[pairs], CAUSES)) & ~failed
    skipped = (verdicts == Verdict.NA) & ~failed & ~errors
    counts = f'failures="{int(failed.sum())}" errors="{int(errors.sum())}" skipped="{int(skipped.sum())}"'
    yield f'<testsuite name="{place}" tests="{len(pairs)}" {counts}>\n'
    last = np.append(first[1:], len(table))
    for start in range(0, len(pairs), 1024):
        some = slice(start, start + 1024)
        names = table.nodes(first[some])
        told = (verdicts[some] == Verdict.NO) | (verdicts[some] == Verdict.WARNING)
        told |= np.isin(table.unit.node_opinions.cls[pairs[some]], CAUSES)
        reasons = _reasons(table, first[some], last[some], verdicts[some], told)
        rows = zip(pairs[some].tolist(), names, verdicts[some].tolist(), first[some].tolist(), reasons, strict=True)
        yield "".join(_case(table, place, unjudged.get(row[0]), *row) for row in rows)
    yield "</testsuite>\n"


def _unjudged(table: Table) -> dict[int, str]:
    """Why something that matters was not judged, by node pair."""
    reasons = find_reasons(table.unit)
    pairs, first = np.unique(table.unit.items.pair[missing(reasons)], return_index=True)
    rows = np.flatnonzero(missing(reasons))[first]
    return {
        pair: english(describe_reason(table.unit, row, Reason(int(reasons[row]))))
        for pair, row in zip(pairs.tolist(), rows.tolist(), strict=True)
    }


def _case(
    table: Table, place: str, unjudged: str | None, pair: int, name: str, verdict: int, first: int, lines: list[str]
) -> str:
    """unjudged: why something of the call that matters was not judged, None where all was; first: row; lines: its reasons"""
    head = f"<testcase classname={_attribute(place)} name={_attribute(name)}"
    cls = CLASS_WORDS[table.unit.node_opinions.cls[pair]]
    if verdict != Verdict.NO and table.unit.node_opinions.cls[pair] in CAUSES:
        return f'{head}><error type="{cls}" message={_attribute(lines[0] if lines else cls)}/></testcase>\n'
    if verdict != Verdict.NO and unjudged is not None:
        return f'{head}><error type="{NOT_FULLY_JUDGED}" message={_attribute(unjudged)}/></testcase>\n'
    if verdict == Verdict.YES:
        return f"{head}/>\n"
    if verdict == Verdict.NA:
        return f"{head}><skipped/></testcase>\n"
    summary, text = _attribute(lines[0] if lines else cls), _text("\n".join(lines))
    if verdict == Verdict.NO:
        text = _text("\n".join([*lines, *_places(table, first)]))
        return f'{head}><failure type="{cls}" message={summary}>{text}</failure></testcase>\n'
    return f"{head}><system-out>Warning: {text}</system-out></testcase>\n"


def _places(table: Table, first: int) -> list[str]:
    """The module around the call whose first row this is, and the line that made the call, where these are known."""
    row = np.array([first])
    module, stack = (series.table[int(series.codes(row)[0])] for series in (table.modules, table.stack))
    where = locate_call(stack) if stack else ""
    return [f"in module {module}"] * bool(module) + [f"called at {where}"] * bool(where)


def _reasons(table: Table, first: Int64, last: Int64, verdicts: Int8, told: Bool) -> list[list[str]]:
    """For calls whose rows go from `first` to before `last`, one behind the other: why a call has no partner, and the reasons of
    the items with the call's verdict, all looked up at once; nothing for a call that is not `told`."""
    owner = np.repeat(np.arange(len(first)), last - first)
    rows = np.arange(first[0], last[-1])
    same = told[owner] & (table.verdict[rows] == verdicts[owner])
    owner, rows = owner[same], rows[same]
    counts = np.bincount(owner, minlength=len(first))
    place = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    messages = iter(table.messages(rows[place < SHOWN]))
    alone = iter(table.leftovers(first[told]))
    out: list[list[str]] = []
    for count, wanted in zip(counts.tolist(), told.tolist(), strict=True):
        said = [next(alone)] if wanted else []
        said += islice(messages, min(count, SHOWN))
        if count > SHOWN:
            said.append(f"and {count - SHOWN} more")
        out.append([line for line in said if line])
    return out


def _attribute(text: str) -> str:
    return quoteattr(_UNFIT.sub("�", text))


def _text(text: str) -> str:
    return escape(_UNFIT.sub("�", text))
