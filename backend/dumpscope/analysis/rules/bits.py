"""Part of O-1: a call whose hashes agree before and differ after.

Where nothing else differs by anything that counts, only hashes show it. Between two devices other bits are usual, so the runs
must be equal to the bit up to this call, and a call of the same kind must have been so before. Where hashes are all that was
stored, the call is named, and what is known of the two runs decides how much that is worth.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

from dumpscope.analysis.rules.rule import Finding
from dumpscope.analysis.setting_differences import have_other_kernels
from dumpscope.analysis.unit.case import Case
from dumpscope.analysis.unit.noise import REPRODUCIBLE
from dumpscope.domain.facts import Verdict
from dumpscope.domain.records import Bool, Kind, NodeKind, State
from dumpscope.texts import Phrase, phrase

BITS = "bits"
"""Variant of a computation: equal hashes went in, another came out."""

Reason = Literal["", "alone", "kernels"]
"""Why differing hashes prove little: nothing else of its kind gave the same bits; the runs have other kernels."""


def doubt_hashes(case: Case, finding: Finding) -> Reason:
    """Why a finding may be another rounding of the last bit; empty where more than hashes shows it, or equal bits were due."""
    rows = list(finding.items)
    absent = (case.context.t_state[rows] == State.ABSENT).all(axis=1)
    if not rows or not (_are_hashed(case)[rows] & absent & ~case.exact[rows]).all():
        return ""
    runs = case.target.header.run, case.golden.header.run
    if have_other_kernels(*runs):
        return "kernels"
    known = all(run is not None and run.versions for run in runs)
    return "" if known or _was_equal_before(case, finding.pair) else "alone"


def find_other_bits(case: Case) -> list[Finding]:
    """The first such call; nothing where the runs are not known to be equal to the bit before it."""
    columns, context = case.columns, case.context
    if not columns.quiet or case.history.differs:
        return []
    differs = _are_hashed(case) & (case.facts.equal == 0) & (case.opinions.verdict == Verdict.NO)
    if not differs.any():
        return []
    leaf = columns.leaf & ~columns.alone & (columns.kind != NodeKind.GRADIENT)
    pairs = np.unique(context.pair[differs & leaf[context.pair]])
    if not len(pairs):
        return []
    pair = int(pairs[0])
    shown = [row for row in case.items_of(pair).tolist() if differs[row]]
    if case.received[shown].any() or columns.argument[pair] or not _was_equal_before(case, pair):
        return []
    return [Finding(pair=pair, kind="computation", rule="O-1", items=tuple(shown), variant=BITS)]


def describe_bits(case: Case, finding: Finding) -> Phrase:
    """That the runs agree to the bit before it."""
    return phrase("origin.bits", calls=int(_count_equal(case, finding.pair).sum()))


def _are_hashed(case: Case) -> Bool:
    """By item pair: both sides stored a hash, and nothing read the tensors."""
    context = case.context
    t_hash, g_hash = case.target.items.hash, case.golden.items.hash
    if not len(t_hash) or not len(g_hash):
        return np.zeros(len(context), bool)
    hashed = (t_hash[context.target] >= 0) & (g_hash[context.golden] >= 0)
    found: Bool = context.both & (context.kind == Kind.TENSOR) & hashed & (case.facts.unequal < 0)
    return found


def _count_equal(case: Case, before: int) -> Bool:
    """By node: a call before this one that rounds and put out the same bits."""
    rows = np.flatnonzero(_are_hashed(case) & (case.facts.equal == 1) & ~case.received & (case.context.pair < before))
    found = np.zeros(len(case.columns), bool)
    found[case.context.pair[rows]] = True
    rounds = np.array([label.rpartition(".")[2] not in REPRODUCIBLE for label in case.columns.labels], bool)
    counted: Bool = found & rounds & case.columns.leaf
    return counted


def _was_equal_before(case: Case, pair: int) -> bool:
    """A call of the same API or class put out the same bits before."""
    kinds = [label.rpartition(".")[2] for label in case.columns.labels]
    return any(kinds[one] == kinds[pair] for one in np.flatnonzero(_count_equal(case, pair)).tolist())
