"""Writes rename rules for pairs of labels: as few as possible, and no rule that gives another label a wrong name."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from dumpscope.match.renames.rename_rules import Rename, parse_renames

MOST_RULES: Final = 40
MOST_GROUPS: Final = 9
"""Groups that a replacement can name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleText:
    """text: PATTERN=REPLACEMENT; examples: a few (label, new label)"""

    text: str
    examples: tuple[tuple[str, str], ...]


def mask_numbers(label: str) -> str:
    """The label with "#" for every number between dots: "layers.0.mlp.Mlp" -> "layers.#.mlp.Mlp"."""
    return ".".join("#" if part.isdecimal() else part for part in label.split("."))


def write_rules(wanted: Mapping[str, str], *, most: int = MOST_RULES) -> list[RuleText]:
    """Write rules that give labels the names that they should have, the rule for most labels first.

    wanted: label -> the label it should get; labels that map to themselves must not change
    """
    left = {label: fresh for label, fresh in wanted.items() if label != fresh}
    texts = sorted({text for label, fresh in left.items() for text in _candidates(label, fresh)}, key=_plainness)
    covers: dict[str, frozenset[str]] = {}
    for text in texts:
        found = _covered(parse_renames([text])[0], wanted)
        if found:
            covers[text] = found
    rules: list[RuleText] = []
    while left and len(rules) < most:
        best = max(covers, key=lambda text: len(covers[text] & left.keys()), default=None)
        now = sorted(covers[best] & left.keys()) if best is not None else []
        if best is None or not now:
            break
        rules.append(RuleText(text=best, examples=tuple((label, left[label]) for label in now[:3])))
        for label in now:
            del left[label]
    return rules


def _plainness(text: str) -> tuple[int, str]:
    return len(text), text


def _covered(rule: Rename, wanted: Mapping[str, str]) -> frozenset[str]:
    """Labels to which the rule gives the right name; none if it gives another label a wrong name."""
    found = []
    for label, fresh in wanted.items():
        made = rule.apply(label)
        if made is None or made == label:
            continue
        if made != fresh:
            return frozenset()
        found.append(label)
    return frozenset(found)


def _candidates(label: str, fresh: str) -> Iterator[str]:
    """Rules that turn one label into another: one for the differing middle part, and one for the whole label."""
    old, new = label.split("."), fresh.split(".")
    if "=" in fresh:  # the last "=" separates pattern and replacement
        return
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    spans = {(head, tail), (max(0, head - 1), tail), (0, 0)}
    for first, last in spans:
        mine, theirs = old[first : len(old) - last], new[first : len(new) - last]
        text = _rule(mine, theirs, at_start=first == 0, at_end=last == 0)
        if text is not None:
            yield text


def _rule(old: list[str], new: list[str], *, at_start: bool, at_end: bool) -> str | None:
    """A rule from parts to parts; numbers become groups, so that one rule works for all layers."""
    numbers = [part for part in old if part.isdecimal()]
    if numbers != [part for part in new if part.isdecimal()]:
        return None
    if len(numbers) > MOST_GROUPS or (at_end and not new):
        return None
    plain = [part.replace("\\", "\\\\") for part in new]
    if not old:
        return f"^(.)={'.'.join(plain)}.\\1" if at_start and not numbers else None
    groups = iter(range(1, 1 + len(numbers)))
    pattern = r"\.".join(r"(\d+)" if part.isdecimal() else re.escape(part) for part in old)
    result = ".".join(f"\\{next(groups)}" if part.isdecimal() else part for part in plain)
    before, after = ("", "^") if at_start else (".", r"\."), ("", "$") if at_end else (".", r"\.")
    words = before[0] + result + after[0] if result else before[0]
    return f"{before[1]}{pattern}{after[1]}={words}"
