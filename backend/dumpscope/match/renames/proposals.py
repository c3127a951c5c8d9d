"""Rename rules proposed for unmatched calls: derived from the labels of both sides, and tested by matching with them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from dumpscope.domain.options import Options
from dumpscope.domain.records import NodeKind, RankDump
from dumpscope.match import match_nodes
from dumpscope.match.align import align
from dumpscope.match.matching import Matching
from dumpscope.match.preview import Preview, count_pairs, preview
from dumpscope.match.renames.rule_texts import RuleText, general, write_rules
from dumpscope.match.sides import Side, is_call, similarity

MOST_LABELS: Final = 200
"""Labels of a side, numbers aside, that are laid beside the other's; the first ones are."""
INSTANCES: Final = 3
"""Calls of two labels that are compared with each other."""
ENOUGH: Final = 5.0
"""Weight from which two labels are taken for one: equal shapes and numbers, or equal shapes and half of the words."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """now: the matching without the rules; after: with all of them, `after.rules` says what each makes; rules: with examples"""

    now: Preview
    after: Preview
    rules: list[RuleText]


def propose(target: RankDump, golden: RankDump, options: Options, *, step: int, rank: int) -> Proposals:
    """Rules to add to those of `options`, none where they would make no pair more. Raises UsageError as `preview` does."""
    matching, pairs, _, _ = match_nodes(target, golden, options)
    now = count_pairs(matching, pairs, options, step=step, rank=rank)
    rules = write_rules(_wanted(matching)) if now.left else []
    while rules:
        after = preview(target, golden, _with(options, rules), step=step, rank=rank)
        useful = [rule for rule, made in zip(rules, after.rules[len(options.rename) :], strict=True) if made.pairs > 0]
        if after.pairs > now.pairs and len(useful) == len(rules):
            return Proposals(now=now, after=after, rules=rules)
        if len(useful) == len(rules):
            break
        rules = useful
    return Proposals(now=now, after=now, rules=[])


def _with(options: Options, rules: list[RuleText]) -> Options:
    return replace(options, rename=(*options.rename, *(rule.text for rule in rules)))


def _wanted(matching: Matching) -> dict[str, str]:
    """Label of the target -> what it should be, one label for all that differ in numbers only.

    A label that is paired already is to be what its partner is: a rule must not part it.
    """
    found: dict[str, tuple[str, str]] = {}
    for t, g in (*matching.partner.items(), *_laid_out(matching)):
        if matching.target.kind[t] in (NodeKind.MODULE, NodeKind.API):
            label = matching.target.label[t]
            found.setdefault(general(label), (label, matching.golden.label[g]))
    return dict(found.values())


def _laid_out(matching: Matching) -> Iterator[tuple[int, int]]:
    """First calls of labels of both sides that are likely one, among the calls without a partner, in order of time."""
    target, golden = matching.target, matching.golden
    ts = _free(target, [t for t in range(len(target.kind)) if matching.free_target(t)])
    gs = _free(golden, [g for g in range(len(golden.kind)) if matching.free_golden(g)])
    weights: dict[tuple[int, int], float] = {}

    def weigh(i: int, j: int) -> float:
        if (i, j) not in weights:
            weights[i, j] = _weight(target, golden, ts[i], gs[j])
        return weights[i, j]

    for i, j in align([target.kind[one[0]] for one in ts], [golden.kind[one[0]] for one in gs], weigh):
        if weigh(i, j) >= ENOUGH:
            yield ts[i][0], gs[j][0]


def _free(side: Side, entries: list[int]) -> list[list[int]]:
    """The first forward calls of every label, numbers aside, in order of time."""
    calls: dict[str, list[int]] = {}
    order = side.dump.tree.order
    for entry in sorted(entries, key=lambda entry: int(order[entry])):
        if is_call(side, entry):
            calls.setdefault(general(side.label[entry]), []).append(entry)
    return [found[:INSTANCES] for found in list(calls.values())[:MOST_LABELS]]


def _weight(target: Side, golden: Side, ts: list[int], gs: list[int]) -> float:
    """How likely two labels are one: the similarity of their calls, and the words that their names share."""
    shapes = [target.signature(t)[0] == golden.signature(g)[0] for t, g in zip(ts, gs, strict=False)]
    if not all(shapes):
        return 0.01
    alike = min(similarity(target, golden, t, g) for t, g in zip(ts, gs, strict=False))
    mine, theirs = _words(target.label[ts[0]]), _words(golden.label[gs[0]])
    shared = len(mine & theirs) / max(1, min(len(mine), len(theirs)))
    return max(0.01, alike - 5.0 if not target.signature(ts[0])[1] else alike) + 4.0 * shared


def _words(label: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(label))
