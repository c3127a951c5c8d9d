"""A dry run of a policy on one step and rank: what would change. Nothing is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dumpscope.domain.facts import VERDICT_WORDS, Verdict
from dumpscope.domain.result import Unit
from dumpscope.index.comparisons.catalogue import StoredUnit
from dumpscope.index.comparisons.load_unit import load_unit
from dumpscope.index.store.database import Database
from dumpscope.pipeline.compare.conclusion import Conclusion
from dumpscope.pipeline.compare.unit import judge_unit

SHOWN: Final = 50
"""Calls that are listed by name: those with the largest errors."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedVerdict:
    """name: of the call; before, after: verdict words; score: its worst error in units of the new floor, nan where none"""

    name: str
    before: str
    after: str
    score: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDryRun:
    """before, after: calls by verdict word; changed: how many get another verdict, `rows` the worst of them"""

    before: dict[str, int]
    after: dict[str, int]
    changed: int
    rows: list[ChangedVerdict]


def dry_run_policy(database: Database, unit: StoredUnit, policy: str) -> PolicyDryRun:
    """Judge a stored unit's calls by another policy (a name or the text of a file). Raises UsageError for one that is none."""
    held = load_unit(database, unit.id)
    then = Conclusion(policy).add(judge_unit(held, policy))
    old, new = held.node_opinions.verdict, then.node_opinions.verdict
    (changed,) = np.nonzero(old != new)
    scores = np.full(len(held.pairs), np.nan)
    np.fmax.at(scores, held.items.pair, then.item_opinions.score)
    worst = changed[np.argsort(-np.nan_to_num(scores[changed], nan=-1.0), kind="stable")[:SHOWN]]
    return PolicyDryRun(
        before=_counts(old),
        after=_counts(new),
        changed=len(changed),
        rows=[
            ChangedVerdict(
                name=_name(held, pair),
                before=VERDICT_WORDS[old[pair]],
                after=VERDICT_WORDS[new[pair]],
                score=float(scores[pair]),
            )
            for pair in worst.tolist()
        ],
    )


def _counts(verdicts: np.ndarray[tuple[int], np.dtype[np.int8]]) -> dict[str, int]:
    found = np.bincount(verdicts, minlength=len(Verdict))
    return {word: int(found[code]) for code, word in enumerate(VERDICT_WORDS)}


def _name(unit: Unit, pair: int) -> str:
    target, golden = int(unit.pairs.target[pair]), int(unit.pairs.golden[pair])
    return unit.target.nodes.names[target] if target >= 0 else unit.golden.nodes.names[golden]
