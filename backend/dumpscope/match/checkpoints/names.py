"""Pairs the names of two checkpoints: without wrappers, by rules of the user, by prefixes that many names share, by words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from dumpscope.domain.checkpoints.differences import Match
from dumpscope.domain.checkpoints.tensors import Shape
from dumpscope.match.renames.rename_rules import Rename, rename
from dumpscope.match.renames.rule_texts import mask_numbers
from dumpscope.match.wrappers import choose

MOST_CANDIDATES: Final = 20
"""Names with one ending that are looked at for a prefix."""
MOST_PREFIXES: Final = 40
"""Changes of prefix that are tried, each the one that pairs most names."""
MOST_TEMPLATES: Final = 400
"""Forms of names on each side that are compared by words."""
_PLAIN_ENDS: Final = frozenset({"weight", "bias"})
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d+")

Shapes = Mapping[str, Shape | None]
"""Names and their shapes; None for one that is not known (shards that are not joined yet)."""


@dataclass(slots=True, kw_only=True)
class Names:
    """pairs: name of the target -> the golden's; methods: how they were found; rules: "transformer.h -> model.layers"
    plain: name of the target -> the name that the golden would have it by, also where the golden has none such
    """

    target: Shapes
    golden: Shapes
    pairs: dict[str, str] = field(default_factory=dict)
    methods: dict[str, Match] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    plain: dict[str, str] = field(default_factory=dict)
    plain_golden: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def add(self, one: str, other: str, method: Match) -> None:
        self.pairs[one] = other
        self.methods[one] = method
        self.taken.add(other)

    def free_targets(self) -> list[str]:
        return [name for name in self.target if name not in self.pairs]

    def free_goldens(self) -> list[str]:
        return [name for name in self.golden if name not in self.taken]


def match_names(target: Shapes, golden: Shapes, renames: Sequence[Rename] = ()) -> Names:
    """Pairs by name, without wrappers, by rules and by prefixes."""
    found = Names(target=target, golden=golden)
    ruled = {name: fresh for name, (fresh, _) in rename(target, renames).items()}
    mine = {name: ruled.get(name, name) for name in target}
    other_names = {name: name for name in golden}
    if _has_megatron(target) != _has_megatron(golden):
        mine = {name: _without_megatron(fresh) for name, fresh in mine.items()}
        other_names = {name: _without_megatron(name) for name in golden}
        found.rules.append("Megatron -> Hugging Face")
    elif _has_fused_norms(target) != _has_fused_norms(golden):
        mine = {name: _without_fused_norms(fresh) for name, fresh in mine.items()}
        other_names = {name: _without_fused_norms(name) for name in golden}
        found.rules.append("linear_*.layer_norm_ -> *layernorm.")
    unwraps = (
        choose(set(mine.values()), set(other_names.values()))
        if set(mine.values()) != set(other_names.values())
        else None
    )
    plain = {name: unwraps[0](fresh) if unwraps else fresh for name, fresh in mine.items()}
    theirs = {name: unwraps[1](fresh) if unwraps else fresh for name, fresh in other_names.items()}
    found.plain, found.plain_golden = plain, theirs
    by_plain: dict[str, str] = {}
    for name, fresh in theirs.items():
        by_plain.setdefault(fresh, name)
    for name, fresh in plain.items():
        other = by_plain.get(fresh)
        if other is not None and other not in found.taken:
            found.add(name, other, _method(name, other, mine[name], name in ruled))
    if unwraps:
        _tell_wrappers(found)
    _match_prefixes(found)
    return found


def _method(name: str, other: str, fresh: str, ruled: bool) -> Match:
    if name == other:
        return "exact"
    return "rule" if ruled else "unwrapped" if fresh == name else "renamed"


_MEGATRON: Final = tuple(
    (re.compile(pattern), words)
    for pattern, words in (
        (r"^embedding\.word_embeddings\.", "model.embed_tokens."),
        (r"^decoder\.final_layernorm\.", "model.norm."),
        (r"^output_layer\.", "lm_head."),
        (r"^decoder\.layers\.", "model.layers."),
        (r"\.self_attention\.linear_qkv\.layer_norm_", ".input_layernorm."),
        (r"\.mlp\.linear_fc1\.layer_norm_", ".post_attention_layernorm."),
        (r"\.pre_mlp_layernorm\.", ".post_attention_layernorm."),
        (r"\.self_attention\.linear_proj\.", ".self_attn.o_proj."),
        (r"\.self_attention\.linear_qkv\.", ".self_attn.linear_qkv."),
        (r"\.self_attention\.", ".self_attn."),
        (r"\.mlp\.linear_fc2\.", ".mlp.down_proj."),
    )
)
"""Names of Megatron's core, and those of Hugging Face's decoders."""


def _has_megatron(names: Iterable[str]) -> bool:
    return any("decoder.layers." in name and ".linear_" in name for name in names)


def _without_megatron(name: str) -> str:
    for pattern, words in _MEGATRON:
        name = pattern.sub(words, name)
    return name


_FUSED_NORMS: Final = (
    (".self_attention.linear_qkv.layer_norm_", ".input_layernorm."),
    (".mlp.linear_fc1.layer_norm_", ".pre_mlp_layernorm."),
)
"""Norms of Megatron's core inside of the layer behind them, as Transformer Engine and distributed checkpoints have them, and by
themselves."""


def _has_fused_norms(names: Iterable[str]) -> bool:
    return any(fused in name for name in names for fused, _ in _FUSED_NORMS)


def _without_fused_norms(name: str) -> str:
    for fused, alone in _FUSED_NORMS:
        name = name.replace(fused, alone)
    return name


def _tell_wrappers(found: Names) -> None:
    """Which words were taken off, as rules."""
    gone: Counter[str] = Counter()
    for one, other in found.pairs.items():
        if found.methods[one] == "unwrapped":
            less = Counter(one.split(".")) - Counter(other.split("."))
            more = Counter(other.split(".")) - Counter(one.split("."))
            gone.update([f"{word}. -> " for word in less] + [f" -> {word}." for word in more])
    found.rules += [rule for rule, _ in gone.most_common(8)]


def fit(one: Shape | None, other: Shape | None) -> bool:
    """Whether two shapes can be those of one tensor: equal, one the other turned round or laid out otherwise, or longer in one
    dimension (padding, shards)."""
    if one is None or other is None or one == other:
        return True
    if len(one) == len(other):
        apart = sum(a != b for a, b in zip(one, other, strict=True))
        return apart <= 1 or sorted(one) == sorted(other)
    return _count(one) == _count(other)


def _count(shape: Shape) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def _match_prefixes(found: Names) -> None:
    """Pair names that have one ending, by the change of prefix that most of them have in common."""
    for _ in range(MOST_PREFIXES):
        free = {found.plain_golden[name]: name for name in found.free_goldens()}
        endings: dict[tuple[str, ...], list[str]] = {}
        for fresh in free:
            words = tuple(fresh.split("."))
            for begin in range(len(words)):
                endings.setdefault(words[begin:], []).append(fresh)
        votes: Counter[tuple[str, str]] = Counter()
        mine = {name: found.plain[name] for name in found.free_targets()}
        for name, fresh in mine.items():
            votes.update(_prefixes(found, name, fresh, endings, free))
        if not votes:
            return
        best, _ = min(votes.items(), key=lambda one: (-one[1], len(one[0][0]), one[0]))
        made = 0
        for name, fresh in mine.items():
            moved = _moved(fresh, *best)
            other = free.get(moved) if moved is not None else None
            if other is not None and other not in found.taken and fit(found.target[name], found.golden[other]):
                found.add(name, other, "renamed")
                made += 1
        if not made:
            return
        found.rules.append(f"{best[0] or '(nothing)'} -> {best[1] or '(nothing)'}")


def _prefixes(
    found: Names, name: str, fresh: str, endings: Mapping[tuple[str, ...], list[str]], free: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Changes of prefix that give one name a free partner with its longest ending."""
    words = fresh.split(".")
    for begin in range(len(words)):
        ending = tuple(words[begin:])
        others = endings.get(ending)
        if others is None:
            continue
        if len(ending) == 1 and ending[0] in _PLAIN_ENDS:
            return []
        head = ".".join(words[:begin])
        fits = [other for other in others[:MOST_CANDIDATES] if fit(found.target[name], found.golden[free[other]])]
        heads = [other[: len(other) - len(".".join(ending))].rstrip(".") for other in fits]
        return [(head, one) for one in heads if mask_numbers(one) != mask_numbers(head)]  # another layer is no rename
    return []


def _moved(name: str, old: str, new: str) -> str | None:
    """A name with another prefix; None where it has not the old one."""
    if not old:
        return f"{new}.{name}"
    if name != old and not name.startswith(f"{old}."):
        return None
    return f"{new}{name[len(old) :]}".lstrip(".")


def match_forms(found: Names, known: Iterable[tuple[str, str]] = ()) -> None:
    """Pair what is left by form: names that differ in their numbers only are one form, and two forms are paired that have equal
    numbers, fitting shapes and the most words in common. known: pairs of names whose forms are known to be the same."""
    forms = _forms(found.free_targets(), found.plain), _forms(found.free_goldens(), found.plain_golden)
    told = {(mask_numbers(found.plain[one]), mask_numbers(found.plain_golden[other])) for one, other in known}
    scores: dict[tuple[str, str], float] = {}
    for mine, names in list(forms[0].items())[:MOST_TEMPLATES]:
        for theirs, others in list(forms[1].items())[:MOST_TEMPLATES]:
            if (mine, theirs) in told:
                scores[mine, theirs] = 2.0
            elif names.keys() == others.keys() and all(
                fit(found.target[names[key]], found.golden[others[key]]) for key in names
            ):
                same = all(found.target[names[key]] == found.golden[others[key]] for key in names)
                scores[mine, theirs] = _likeness(mine, theirs) * (1.0 if same else 0.5)
    done: set[str] = set()
    gone: set[str] = set()
    for (mine, theirs), score in sorted(scores.items(), key=lambda one: -one[1]):
        if score <= 0 or mine in done or theirs in gone:
            continue
        rivals = [
            value
            for (one, other), value in scores.items()
            if (one == mine) != (other == theirs) and one not in done and other not in gone
        ]
        if rivals and max(rivals) >= score:
            continue
        done.add(mine)
        gone.add(theirs)
        for key, name in forms[0][mine].items():
            other = forms[1][theirs].get(key)
            if other is not None:
                found.add(name, other, "content" if score == 2.0 else "aligned")
        found.rules.append(f"{mine} -> {theirs}")


def _forms(names: Iterable[str], plain: Mapping[str, str]) -> dict[str, dict[tuple[str, ...], str]]:
    """Name by its numbers, by form."""
    found: dict[str, dict[tuple[str, ...], str]] = {}
    for name in names:
        fresh = plain[name]
        numbers = tuple(word for word in fresh.split(".") if word.isdecimal())
        found.setdefault(mask_numbers(fresh), {}).setdefault(numbers, name)
    return found


def _likeness(mine: str, theirs: str) -> float:
    """Share of the words that two forms have in common; 0 where only plain endings agree, or the endings do not."""
    if mine.rpartition(".")[2] != theirs.rpartition(".")[2]:
        return 0.0
    first, second = _words(mine), _words(theirs)
    common = first & second
    return len(common) / len(first | second) if common else 0.0


def _words(form: str) -> set[str]:
    return {word.lower() for word in _WORDS.findall(form)} - _PLAIN_ENDS - {"model", "layers", "layer"}
