"""Proposes rename rules for unmatched calls: made from the labels of both sides, and tested by matching with them."""

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
from dumpscope.match.renames.rule_texts import RuleText, mask_numbers, write_rules
from dumpscope.match.sides import Side, is_call, similarity

MOST_LABELS: Final = 200
"""Labels of a side (without numbers) that are compared with the other side's: the first ones."""
INSTANCES: Final = 3
"""Calls of two labels that are compared with each other."""
ENOUGH: Final = 5.0
"""Weight from which two labels count as one: equal shapes and numbers, or equal shapes and half of the words."""
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposals:
    """now: the matching without the rules; after: with them (`after.rules` counts the pairs of each); rules: with examples"""

    now: Preview
    after: Preview
    rules: list[RuleText]


def propose(target: RankDump, golden: RankDump, options: Options, *, step: int, rank: int) -> Proposals:
    """Rules to add to those of `options`; none if they add no pair. Raises UsageError like `preview`."""
    matching, pairs, _, _ = match_nodes(target, golden, options)
    now = count_pairs(matching, pairs, options, step=step, rank=rank)
    rules = write_rules(_wanted_labels(matching)) if now.left else []
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


def _wanted_labels(matching: Matching) -> dict[str, str]:
    """Target label -> the label that it should get. One label stands for all that differ in numbers only.

    A label that has a partner should get the partner's label: a rule must not separate the pair.
    """
    found: dict[str, tuple[str, str]] = {}
    for t, g in (*matching.partner.items(), *_laid_out(matching)):
        if matching.target.kind[t] in (NodeKind.MODULE, NodeKind.API):
            label = matching.target.label[t]
            found.setdefault(mask_numbers(label), (label, matching.golden.label[g]))
    return dict(found.values())


def _laid_out(matching: Matching) -> Iterator[tuple[int, int]]:
    """Pairs of calls without a partner whose labels are probably the same, in order of time (first call per label)."""
    target, golden = matching.target, matching.golden
    ts = _free_calls(target, [t for t in range(len(target.kind)) if matching.free_target(t)])
    gs = _free_calls(golden, [g for g in range(len(golden.kind)) if matching.free_golden(g)])
    weights: dict[tuple[int, int], float] = {}

    def weigh(i: int, j: int) -> float:
        if (i, j) not in weights:
            weights[i, j] = _weight(target, golden, ts[i], gs[j])
        return weights[i, j]

    for i, j in align([target.kind[one[0]] for one in ts], [golden.kind[one[0]] for one in gs], weigh):
        if weigh(i, j) >= ENOUGH:
            yield ts[i][0], gs[j][0]


def _free_calls(side: Side, entries: list[int]) -> list[list[int]]:
    """The first free forward calls of every label (without its numbers), in order of time."""
    calls: dict[str, list[int]] = {}
    order = side.dump.tree.order
    for entry in sorted(entries, key=lambda entry: int(order[entry])):
        if is_call(side, entry):
            calls.setdefault(mask_numbers(side.label[entry]), []).append(entry)
    return [found[:INSTANCES] for found in list(calls.values())[:MOST_LABELS]]


def _weight(target: Side, golden: Side, ts: list[int], gs: list[int]) -> float:
    """How likely two labels are the same: the similarity of their calls, and the words that their names share."""
    shapes = [target.signature(t)[0] == golden.signature(g)[0] for t, g in zip(ts, gs, strict=False)]
    if not all(shapes):
        return 0.01
    alike = min(similarity(target, golden, t, g) for t, g in zip(ts, gs, strict=False))
    mine, theirs = _words(target.label[ts[0]]), _words(golden.label[gs[0]])
    shared = len(mine & theirs) / max(1, min(len(mine), len(theirs)))
    return max(0.01, alike - 5.0 if not target.signature(ts[0])[1] else alike) + 4.0 * shared


def _words(label: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORDS.findall(label))
