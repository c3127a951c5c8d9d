"""Wrappers around a model or a part of it (data parallel, compile, checkpoint, LoRA): often only one of two runs has them.

A wrapper puts a word into the paths of all modules inside it, and adds a module of its own. Words are taken off where the modules
of both sides then have the same names; the wrapper's own calls have no partner, and what they call counts as called by the
module around them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from dumpscope.domain.records import UNKNOWN_CLASS, Direction, NodeKind
from dumpscope.match.sides import Side, module_path

ANYWHERE: Final = frozenset(
    {
        "_orig_mod", "_fsdp_wrapped_module", "_fpw_module", "_checkpoint_wrapped_module", "_forward_module",
        "_offload_wrapped_module",
    }
)  # fmt: skip
"""Words that only wrappers use."""
OFTEN: Final = "module"
"""Word of wrappers that a model may use as well."""
LEADING: Final = frozenset({"module", "model", "base_model"})
"""Words that a wrapper may put before all paths."""

INNER: Final = "base_layer"
"""Word under which an adapter keeps the layer in whose place it stands; its class may have that layer's name."""

Unwrap = Callable[[str], str]
"""Label of a module -> its label without wrappers."""


def take_off(target: Side, golden: Side) -> None:
    """Rename the modules of both sides to the names that they have without wrappers, where these are the same on more of them;
    and set the calls of wrappers that only one side has aside. Where one side does not know classes, paths alone count."""
    bare = [side.dump.ref.traits.bare_modules for side in (target, golden)]
    if any(bare):
        for side in (target, golden):
            _rename(side, _without_class)
    labels = _module_labels(target), _module_labels(golden)
    if labels[0] == labels[1] or not any(_has_words(label) for side in labels for label in side):
        return
    chosen = choose(*labels)
    if chosen is None:
        return
    plain = [{unwrap(label) for label in some} for unwrap, some in zip(chosen, labels, strict=True)]
    for side, unwrap, other in zip((target, golden), chosen, plain[::-1], strict=True):
        _set_aside(side, unwrap, other)
    for side, unwrap in zip((target, golden), chosen, strict=True):
        _rename(side, unwrap)


def _module_labels(side: Side) -> set[str]:
    pairs = zip(side.kind, side.label, strict=True)
    return {label for kind, label in pairs if kind in (NodeKind.MODULE, NodeKind.GRADIENT)}


def _has_words(label: str) -> bool:
    return any(word in ANYWHERE or word in LEADING or word == INNER for word in label.split("."))


def choose(target: set[str], golden: set[str]) -> tuple[Unwrap, Unwrap] | None:
    """The renames of both sides after which most labels agree, and fewest others are left; None where the labels as they stand do
    as well."""
    best: tuple[Unwrap, Unwrap] | None = None
    most = len(target & golden), -len(target) - len(golden)
    sides = [[(unwrap, {unwrap(label) for label in side}) for unwrap in _candidates(side)] for side in (target, golden)]
    for first, mine in sides[0]:
        for second, theirs in sides[1]:
            common = len(mine & theirs)
            agree = common, -len(mine) - len(theirs)
            if agree > most and 2 * common >= min(len(mine), len(theirs)):
                best, most = (first, second), agree
    return best


def _candidates(labels: set[str]) -> Iterator[Unwrap]:
    """Renames that keep all labels apart, those that change least first. An adapter may have the label of its layer."""
    chain = _leading_words(labels)
    few = [frozenset[str](), ANYWHERE, ANYWHERE | {OFTEN}]
    for words in [*few, *(words | {INNER} for words in few)]:
        apart = labels - _adapters(labels) if INNER in words else labels
        for count in range(len(chain) + 1):
            unwrap = _unwrapper(words, chain[:count])
            if len({unwrap(label) for label in apart}) == len(apart):
                yield unwrap


def _adapters(labels: set[str]) -> set[str]:
    """Labels of modules that keep a layer under the word of adapters."""
    kept = {
        module_path(label).removesuffix(f".{INNER}") for label in labels if module_path(label).endswith(f".{INNER}")
    }
    return {label for label in labels if module_path(label) in kept}


def _leading_words(labels: Iterable[str]) -> list[str]:
    """The longest run of words of wrappers that begins a path. A module beside the wrapped one (a head) may lack it."""
    longest: list[str] = []
    for label in labels:
        run: list[str] = []
        for word in module_path(label).split("."):
            if word in ANYWHERE:
                continue
            if word not in LEADING:
                break
            run.append(word)
        longest = max(longest, run, key=len)
    return longest


def _unwrapper(anywhere: frozenset[str], leading: list[str]) -> Unwrap:
    def unwrap(label: str) -> str:
        *path, name = label.split(".")
        path = [word for word in path if word not in anywhere]
        for word in leading:
            if not path or path[0] != word:
                break
            path = path[1:]
        return ".".join([*path, name])

    return unwrap


def _without_class(label: str) -> str:
    path = module_path(label)
    return f"{path}.{UNKNOWN_CLASS}" if path else label


def _set_aside(side: Side, unwrap: Unwrap, other: set[str]) -> None:
    """Mark the calls of wrappers, and hand what they call to the module around them. other: labels of the other side"""
    inner = {module_path(unwrap(label)) for label in _module_labels(side) if unwrap(label) in other}
    adapters = _adapters(_module_labels(side)) if unwrap(f"a.{INNER}.B") == "a.B" else set()
    for entry, (kind, label) in enumerate(zip(side.kind, side.label, strict=True)):
        if kind not in (NodeKind.MODULE, NodeKind.GRADIENT) or (unwrap(label) in other and label not in adapters):
            continue
        path = module_path(unwrap(label))
        if (path in inner or not path) and _wraps(side, entry, label):
            side.wrappers.add(entry)
    for entries in list(side.children.values()):
        entries[:] = _without_wrappers(side, entries)
    for entry in side.wrappers:
        side.children.pop(entry, None)


def _wraps(side: Side, entry: int, label: str) -> bool:
    """Whether the word that a wrapper gives to what is inside it follows this module's path, or ends it."""
    head = f"{module_path(label)}." if module_path(label) else ""
    if head and (head[:-1].rpartition(".")[2] in ANYWHERE | LEADING):
        return True
    words = (other[len(head) :].partition(".")[0] for other in side.label if other.startswith(head))
    return (
        any(word in ANYWHERE or word in LEADING or word == INNER for word in words)
        and side.direction[entry] != Direction.NONE
    )


def _without_wrappers(side: Side, entries: list[int]) -> list[int]:
    found: list[int] = []
    for entry in entries:
        found += _without_wrappers(side, side.children.get(entry, [])) if entry in side.wrappers else [entry]
    return found


def _rename(side: Side, unwrap: Unwrap) -> None:
    names = list(side.names)
    for entry, kind in enumerate(side.kind):
        if kind not in (NodeKind.MODULE, NodeKind.GRADIENT) or unwrap(side.label[entry]) == side.label[entry]:
            continue
        plain = unwrap(side.label[entry])
        side.wrapped[plain] = side.wrapped.get(side.label[entry], side.label[entry])
        head, label, tail = names[entry].partition(side.label[entry])
        names[entry] = f"{head}{plain}{tail}" if label else names[entry]
        side.label[entry] = plain
    side.names = names
