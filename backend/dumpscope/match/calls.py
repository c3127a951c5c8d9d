"""Pairs the nodes of the target with the nodes of the golden.

Forward calls are aligned module by module, so that an inserted call never shifts the calls of another module. Backward
nodes follow their forward call; the remaining nodes are matched by name, then by position.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator

from dumpscope.domain.facts import Method
from dumpscope.domain.records import Direction, NodeKind, RankDump
from dumpscope.match.align import align
from dumpscope.match.gaps import computing, find_gaps
from dumpscope.match.matching import Matching
from dumpscope.match.operators.aten import find_operators, is_operator
from dumpscope.match.operators.fusion import find_fusions
from dumpscope.match.operators.fusion_rules import Rule
from dumpscope.match.operators.operations import operation
from dumpscope.match.renames.mapping_files import LayerNames, Mapping, rename_labels
from dumpscope.match.renames.rename_rules import rename
from dumpscope.match.sides import (
    Side,
    common_names,
    is_another_call,
    is_call,
    module_path,
    prepare,
    relative_label,
    similarity,
    takes_same,
)
from dumpscope.match.strangers import are_strangers, count_calls, pair_modules
from dumpscope.match.wrappers import take_off

Key = tuple[int, str, bool]


def match_calls(
    target: RankDump, golden: RankDump, mapping: Mapping, rules: Iterable[Rule], *, fuzzy: bool = False
) -> Matching:
    """Match all entries of two sides; item mappings are applied later (dumpscope.match.items).

    If calls are so similar that several pairings are equally good, the choice must not depend on which side is called
    target. So the sides are put into a fixed order first; only the user's renames have a direction.
    """
    if not mapping.renames and _order(golden) < _order(target):
        return _matched(golden, target, mapping, rules, fuzzy=fuzzy).flipped()
    return _matched(target, golden, mapping, rules, fuzzy=fuzzy)


def _order(dump: RankDump) -> tuple[list[str], bytes]:
    """Key that orders two dumps. It differs for all dumps that can match in more than one way."""
    return dump.tree.names, dump.tree.parent.tobytes()


def _matched(target: RankDump, golden: RankDump, mapping: Mapping, rules: Iterable[Rule], *, fuzzy: bool) -> Matching:
    flat = target.tree.inferred or golden.tree.inferred
    matching = Matching(target=prepare(target, flat=flat), golden=prepare(golden, flat=flat))
    if not mapping.renames and _identical(target, golden):
        matching.pair_all()
        return matching
    take_off(matching.target, matching.golden)
    if mapping.renames:
        _rename(matching, mapping)
    if matching.layers is not None:
        _match_paths(matching, matching.layers)
    _match_below(matching, deque([(-1, -1)]))
    if not mapping.renames and are_strangers(matching):
        matching = _without_modules(matching)
    _match_spellings(matching)
    find_operators(matching)
    find_fusions(matching, rules)
    _match_backward(matching)
    _match_below(matching, deque(_backward_parents(matching)))
    _match_backward_leftovers(matching)
    _match_names(matching)
    if fuzzy:
        _match_fuzzy(matching)
    return matching


def _without_modules(within: Matching) -> Matching:
    """The calls matched in the order in which they ran, whatever module made them, and modules by their calls; `within`, the
    match inside the modules, where it has as many calls."""
    sides = within.target.dump, within.golden.dump
    matching = Matching(target=prepare(sides[0], flat=True), golden=prepare(sides[1], flat=True))
    _match_below(matching, deque([(-1, -1)]))
    if count_calls(matching) <= count_calls(within):
        return within
    pair_modules(matching)
    return matching


def _rename(matching: Matching, mapping: Mapping) -> None:
    """Labels renamed by the user's files (modules), then by the rename rules (modules and all other labels)."""
    side = matching.target
    modules = {x for x, kind in zip(side.label, side.kind, strict=True) if kind == NodeKind.MODULE}
    plain = {old: label for label, old in matching.golden.wrapped.items()}
    matching.layers = LayerNames(modules, mapping.layers) if mapping.layers else None
    matching.renamed = rename_labels(modules, mapping, matching.layers)
    labels = [label for label in dict.fromkeys(side.label) if label not in matching.renamed]
    written = {side.wrapped[label]: label for label in labels if label in side.wrapped}
    for label, (fresh, rule) in rename([*labels, *written], mapping.rules).items():
        own = written.get(label, label)  # a rule may be written for the name that stands in the dump
        if plain.get(fresh, fresh) != own:
            matching.renamed.setdefault(own, plain.get(fresh, fresh))
            matching.ruled.setdefault(own, rule)


def _match_paths(matching: Matching, names: LayerNames) -> None:
    """Align the calls in modules whose paths a layer_mapping makes equal, by the functions' names alone: frameworks put other
    words before them (`Mint.cos`, `Torch.cos`), and an entry may move a call into another module."""
    target, golden = matching.target, matching.golden
    there = _by_module(_calls_in_modules(golden))
    for module, ts in _by_module((entry, names.path(path)) for entry, path in _calls_in_modules(target)).items():
        gs = there.get(module, [])
        t_keys = [(function, target.again(entry)) for entry, function in ts]
        g_keys = [(function, golden.again(entry)) for entry, function in gs]
        for i, j in align(
            t_keys,
            g_keys,
            lambda i, j, ts=ts, gs=gs: similarity(target, golden, ts[i][0], gs[j][0]),  # type: ignore[misc]
        ):
            t, g = ts[i][0], gs[j][0]
            matching.pair(t, g, None if target.label[t] == golden.label[g] else Method.MAPPED)


def _by_module(calls: Iterable[tuple[int, str]]) -> dict[str, list[tuple[int, str]]]:
    """Entry and function of each call, by the path of its module."""
    found: dict[str, list[tuple[int, str]]] = {}
    for entry, path in calls:
        module, _, function = path.rpartition(".")
        found.setdefault(module, []).append((entry, function))
    return found


def _calls_in_modules(side: Side) -> Iterator[tuple[int, str]]:
    """Forward calls of functions inside modules, in order of time, each with its path: the module's and the function's name."""
    for parent, entries in side.children.items():
        if parent < 0 or side.kind[parent] != NodeKind.MODULE:
            continue
        for entry in entries:
            if side.kind[entry] == NodeKind.API and is_call(side, entry):
                yield entry, f"{module_path(side.label[parent])}.{side.label[entry].rpartition('.')[2]}"


def _identical(target: RankDump, golden: RankDump) -> bool:
    if len(target.tree) != len(golden.tree) or not (target.tree.parent == golden.tree.parent).all():
        return False
    return common_names(target) == common_names(golden)


def _match_below(matching: Matching, queue: deque[tuple[int, int]]) -> None:
    """Align the forward children of every matched parent, outermost first."""
    target, golden = matching.target, matching.golden
    while queue:
        t_parent, g_parent = queue.popleft()
        ts = [t for t in target.children.get(t_parent, ()) if is_call(target, t) and matching.free_target(t)]
        gs = [g for g in golden.children.get(g_parent, ()) if is_call(golden, g) and matching.free_golden(g)]
        if not ts or not gs:
            continue
        t_keys = [_key(target, t, t_parent, matching.renamed) for t in ts]
        g_keys = [_key(golden, g, g_parent, {}) for g in gs]
        for i, j in align(t_keys, g_keys, lambda i, j, ts=ts, gs=gs: similarity(target, golden, ts[i], gs[j])):  # type: ignore[misc]
            matching.pair(ts[i], gs[j])
        _pair_by_name(matching, ts, gs)
        _pair_renamed_modules(matching, ts, gs)
        queue.extend((t, matching.partner[t]) for t in ts if t in matching.partner and t in target.children)


def _key(side: Side, entry: int, parent: int, renamed: dict[str, str]) -> Key:
    """What two calls that are partners have in common. A call that checkpointing made again has no first call as its partner."""
    kind, label, again = side.kind[entry], side.label[entry], side.again(entry)
    if kind != NodeKind.MODULE:
        return kind, renamed.get(label, label) if kind == NodeKind.API else side.name(entry), again
    if label in renamed:
        parent_label = renamed.get(side.label[parent], side.label[parent]) if parent >= 0 else None
        return kind, relative_label(renamed[label], parent_label), again
    return kind, relative_label(label, side.label[parent] if parent >= 0 else None), again


def _pair_by_name(matching: Matching, ts: Iterable[int], gs: Iterable[int]) -> None:
    """Two calls that changed places keep their names: pair them before anything is guessed."""
    names = {matching.golden.name(g): g for g in gs if matching.free_golden(g)}
    for t in ts:
        g = names.get(matching.target.name(t))
        if g is not None and not is_another_call(matching.target, matching.golden, t, g):
            matching.pair(t, g)


def _pair_renamed_modules(matching: Matching, ts: Iterable[int], gs: Iterable[int]) -> None:
    """Pair unmatched modules of the same parent if they run the same calls; else if they have the same name and another
    class; else if they have the same class and input shapes."""
    target, golden = matching.target, matching.golden
    traits: tuple[Callable[[Side, int], Hashable], ...] = (
        lambda side, entry: tuple(_content(side, entry)),
        lambda side, entry: module_path(side.label[entry]).rpartition(".")[2],
        lambda side, entry: (side.label[entry].rpartition(".")[2], side.signature(entry)[0]),
    )
    for trait in traits:
        waiting: dict[Hashable, deque[int]] = {}
        for g in gs:
            if matching.free_golden(g) and golden.kind[g] == NodeKind.MODULE:
                waiting.setdefault((golden.again(g), trait(golden, g)), deque()).append(g)
        for t in ts:
            if not matching.free_target(t) or target.kind[t] != NodeKind.MODULE:
                continue
            rivals = waiting.get((target.again(t), trait(target, t)))
            if rivals:
                matching.pair(t, rivals.popleft())


def _match_spellings(matching: Matching) -> None:
    """Pair calls of one operation by two names (`x @ y` and `torch.matmul`) that stand in one place and take the same tensors.

    Operators beside functions take other arguments; `find_operators` pairs them.
    """
    target, golden = matching.target, matching.golden
    for gap in list(find_gaps(matching)):
        ts = [t for t in _functions(target, gap.target) if matching.free_target(t)]
        gs = [g for g in _functions(golden, gap.golden) if matching.free_golden(g)]
        t_keys, g_keys = [operation(target.label[t]) for t in ts], [operation(golden.label[g]) for g in gs]
        if not set(t_keys) & set(g_keys):
            continue

        def weight(i: int, j: int, ts: list[int] = ts, gs: list[int] = gs) -> float:
            return similarity(target, golden, ts[i], gs[j]) if takes_same(target, golden, ts[i], gs[j]) else 0.0

        for i, j in align(t_keys, g_keys, weight):
            if weight(i, j):
                matching.pair(ts[i], gs[j])


def _functions(side: Side, entries: list[int]) -> list[int]:
    """Those of these entries that are computing calls of functions, not of operators."""
    return [
        entry for entry in computing(side, entries) if side.kind[entry] == NodeKind.API and not is_operator(side, entry)
    ]


def _content(side: Side, entry: int, depth: int = 0) -> Iterator[str]:
    """Content of a module: labels of the calls below it, or its class and input shapes if it has no calls."""
    below = [child for child in side.children.get(entry, ()) if is_call(side, child)]
    if not below:
        shapes = side.signature(entry)[0]
        yield f"{side.label[entry].rpartition('.')[2]}{shapes}"
        return
    for child in below:
        if side.kind[child] == NodeKind.MODULE and depth < 50:
            yield from _content(side, child, depth + 1)
        else:
            yield side.label[child]


def _match_backward(matching: Matching) -> None:
    """Match backward nodes through their forward calls: if two forward calls are partners, so are their backward nodes."""
    target, golden = matching.target, matching.golden
    forward = {
        (target.label[t], target.index[t]): (golden.label[g], golden.index[g])
        for t, g in matching.partner.items()
        if target.direction[t] == Direction.FORWARD
    }
    g_forward = set(forward.values())
    others = _other_forwards(matching)
    by_call: dict[tuple[str, int], int] = {}
    gradients: dict[str, deque[int]] = {}
    for g in range(len(golden.kind)):
        if golden.kind[g] == NodeKind.GRADIENT:
            gradients.setdefault(golden.label[g], deque()).append(g)
        elif golden.direction[g] == Direction.BACKWARD:
            by_call[golden.label[g], golden.index[g]] = g
    for t in range(len(target.kind)):
        label = target.label[t]
        if target.kind[t] == NodeKind.GRADIENT:
            firings = gradients.get(matching.labels.get(label, matching.renamed.get(label, label)))
            if firings:
                g = firings.popleft()
                matching.pair(t, g, Method.EXACT if _same_firing(matching, t, g) else None)
        elif target.direction[t] == Direction.BACKWARD:
            call = (label, target.index[t])
            partner = forward.get(call)
            if partner is None and target.kind[t] == NodeKind.MODULE:
                partner = (matching.labels.get(label, matching.renamed.get(label, label)), call[1])
            elif partner is None and (matching.renamed.get(label, label), call[1]) not in g_forward:
                partner = (matching.renamed.get(label, label), call[1])
            found = by_call.get(partner) if partner else None
            if found is not None and not others(t, found):
                matching.pair(t, found)


def _other_forwards(matching: Matching) -> Callable[[int, int], bool]:
    """Tells whether the forward calls of two backward nodes are both recorded and are no partners by what they take."""
    target, golden = matching.target, matching.golden
    calls = [
        {
            (side.label[entry], side.index[entry]): entry
            for entry in range(side.dumped)
            if side.direction[entry] == Direction.FORWARD and side.kind[entry] == NodeKind.API
        }
        for side in (target, golden)
    ]

    def are_others(t: int, g: int) -> bool:
        mine = calls[0].get((target.label[t], target.index[t]))
        other = calls[1].get((golden.label[g], golden.index[g]))
        return mine is not None and other is not None and is_another_call(target, golden, mine, other)

    return are_others


def _same_firing(matching: Matching, t: int, g: int) -> bool:
    """`parameters_grad.0` and `.1` of the same module are the same gradient: the number counts firings of the process."""
    return matching.target.label[t] == matching.golden.label[g] and matching.target.name(t) == matching.golden.name(g)


def _backward_parents(matching: Matching) -> Iterator[tuple[int, int]]:
    """Backward modules, with recomputed forward calls (checkpointing) below them."""
    for t, g in matching.partner.items():
        if matching.target.direction[t] == Direction.BACKWARD and t in matching.target.children:
            yield t, g


def _match_backward_leftovers(matching: Matching) -> None:
    """Align backward nodes without a forward call in either dump: those below matched backward parents, and at the top."""
    target, golden = matching.target, matching.golden
    parents = [(-1, -1)] + [(t, g) for t, g in matching.partner.items() if t in target.children]
    others = _other_forwards(matching)
    known = {(target.label[t], target.index[t]) for t in matching.partner if target.direction[t] == Direction.FORWARD}
    for t_parent, g_parent in parents:
        ts = [t for t in target.children.get(t_parent, ()) if matching.free_target(t) and not is_call(target, t)]
        gs = [g for g in golden.children.get(g_parent, ()) if matching.free_golden(g) and not is_call(golden, g)]
        if not ts or not gs:
            continue
        ts = [t for t in ts if (target.label[t], target.index[t]) not in known]
        t_keys = [(target.direction[t], matching.renamed.get(target.label[t], target.label[t])) for t in ts]
        g_keys = [(golden.direction[g], golden.label[g]) for g in gs]
        for i, j in align(t_keys, g_keys, lambda i, j, ts=ts, gs=gs: similarity(target, golden, ts[i], gs[j])):  # type: ignore[misc]
            if not others(ts[i], gs[j]):
                matching.pair(ts[i], gs[j])
        _match_below(matching, deque((t, matching.partner[t]) for t in ts if t in matching.partner))


def _match_names(matching: Matching) -> None:
    """Pair nodes of the same name that are still free, anywhere in the tree.

    A call number alone proves nothing (counters shift), so a call must also look similar.
    """
    target, golden = matching.target, matching.golden
    names = {golden.name(g): g for g in range(len(golden.kind)) if matching.free_golden(g)}
    for t in range(len(target.kind)):
        g = names.get(target.name(t)) if matching.free_target(t) else None
        if g is None:
            continue
        if target.kind[t] != NodeKind.API or target.signature(t)[0] == golden.signature(g)[0]:
            matching.pair(t, g)


def _match_fuzzy(matching: Matching) -> None:
    """On the user's request: pair the k-th free call of a label with the k-th free call of the same label, whatever its index."""
    target, golden = matching.target, matching.golden
    free: dict[tuple[int, str, bool], deque[int]] = {}
    for g in range(golden.dumped):
        if matching.free_golden(g):
            free.setdefault((golden.direction[g], golden.label[g], golden.again(g)), deque()).append(g)
    for t in range(target.dumped):
        label = target.label[t]
        rivals = free.get((target.direction[t], matching.renamed.get(label, label), target.again(t)))
        if matching.free_target(t) and rivals:
            matching.pair(t, rivals.popleft(), Method.FUZZY)
