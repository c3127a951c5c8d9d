"""Matching: pairs each node and item of the target with one of the golden, and says how sure each pair is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dumpscope.domain.facts import ItemPairs, Method, NodePairs
from dumpscope.domain.options import Options
from dumpscope.domain.records import RankDump
from dumpscope.domain.result import ResultTree
from dumpscope.errors import Problem
from dumpscope.match.by_hand import apply_edits, parse_edits
from dumpscope.match.calls import match_calls
from dumpscope.match.items import Assigned, find_items, pair_items
from dumpscope.match.matching import Matching
from dumpscope.match.operators.fusion_rules import load_rules
from dumpscope.match.renames.mapping_files import Mapping, parse_mapping
from dumpscope.match.result_tree import node_pairs, result_tree
from dumpscope.texts import say


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    pairs: NodePairs
    items: ItemPairs
    tree: ResultTree
    problems: list[Problem]


def match(target: RankDump, golden: RankDump, options: Options) -> Matched:
    """Match two ranks. Raises UsageError if a rule or file is wrong; entries that name nothing are problems."""
    matching, pairs, mapped, problems = match_nodes(target, golden, options)
    items = pair_items(target, golden, pairs.target, pairs.golden, _assigned(matching, pairs, mapped))
    return Matched(pairs=pairs, items=items, tree=result_tree(matching, pairs), problems=problems)


def check_options(options: Options) -> None:
    """Raise UsageError if a rule or file is wrong."""
    parse_mapping(options)
    load_rules(options.fusion)
    parse_edits(options.matches)


def match_nodes(
    target: RankDump, golden: RankDump, options: Options
) -> tuple[Matching, NodePairs, dict[int, int], list[Problem]]:
    """Like `match`, but only nodes are paired. Third result: item pairs that the user gave."""
    mapping = parse_mapping(options)
    matching = match_calls(target, golden, mapping, load_rules(options.fusion), fuzzy=options.fuzzy)
    by_hand = apply_edits(matching, parse_edits(options.matches))
    mapped, problems = _map_items(matching, mapping)
    problems += _unused_layers(matching, mapping)
    return matching, node_pairs(matching), mapped, [*by_hand, *problems]


def _unused_layers(matching: Matching, mapping: Mapping) -> list[Problem]:
    """A problem for each entry of a layer_mapping that names no module and no call of the target."""
    if matching.layers is None:
        return []
    ref = matching.target.dump.ref
    return [
        Problem(
            loc="layer_mapping",
            kind="mapping",
            message=say("match.layer_names_nothing", cls=cls, path=path, step=ref.step, rank=ref.number),
        )
        for cls, table in mapping.layers.items()
        for path in table
        if (cls, path) not in matching.layers.used
    ]


def _map_items(matching: Matching, mapping: Mapping) -> tuple[dict[int, int], list[Problem]]:
    """Apply a data_mapping: item pairs, and the nodes that hold them."""
    if not mapping.data:
        return {}, []
    target, golden = matching.target.dump, matching.golden.dump
    t_items = find_items(target, set(mapping.data))
    g_items = find_items(golden, set(mapping.data.values()))
    problems: list[Problem] = []
    mapped: dict[int, int] = {}
    for t_name, g_name in mapping.data.items():
        t, g = t_items.get(t_name), g_items.get(g_name)
        if t is None or g is None:
            side, name = ("target", t_name) if t is None else ("golden", g_name)
            problems.append(
                Problem(
                    loc="data_mapping",
                    kind="mapping",
                    message=say("match.not_item_check_spelling", name=name, side=side),
                )
            )
            continue
        mapped[t] = g
        t_node, g_node = int(target.items.node[t]), int(golden.items.node[g])
        if matching.partner.get(t_node) == g_node:
            if matching.method[t_node] is not Method.EXACT:
                matching.method[t_node] = Method.MAPPED
        else:
            matching.pair(t_node, g_node, Method.MAPPED)
    return mapped, problems


def _assigned(matching: Matching, pairs: NodePairs, mapped: dict[int, int]) -> Assigned:
    """Item pairs given by the user or by the boundary of a fused call."""
    assigned = Assigned()
    if not mapped and not matching.fusions:
        return assigned
    row_of = np.full(matching.target.dumped, -1, np.int64)
    has = pairs.target >= 0
    row_of[pairs.target[has]] = np.flatnonzero(has)
    taken = set(mapped.values())
    owner = matching.target.dump.items.node
    chosen = [(t, g, int(row_of[owner[t]])) for t, g in mapped.items()]
    for fusion in matching.fusions:
        row = int(row_of[fusion.target])
        assigned.split.append(row)
        chosen += [(t, g, row) for t, g in fusion.items if t not in mapped and g not in taken]
    for t, g, row in chosen:
        assigned.target.append(t)
        assigned.golden.append(g)
        assigned.row.append(row)
    return assigned
