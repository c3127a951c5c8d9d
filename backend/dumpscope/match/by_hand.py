"""Matches made by hand: the user's edits (match or unmatch a pair), applied to the result of the passes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dumpscope.domain.facts import Method
from dumpscope.errors import Problem, UsageError
from dumpscope.match.matching import Matching
from dumpscope.match.renames.mapping_files import load_yaml
from dumpscope.texts import say

MOST: Final = 10_000
"""Edits of one comparison."""
HINT: Final = say("match.write_matches_docs_matching_md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """join: match target and golden; else unmatch the one that is given (the other is None)"""

    join: bool
    target: str | None
    golden: str | None


def parse_edits(text: str | None) -> tuple[Edit, ...]:
    """Read a user's edits. Raises UsageError that names the wrong edit."""
    data = load_yaml(text, "matches", HINT)
    listed = data.get("matches", [])
    if set(data) - {"matches"} or not isinstance(listed, list) or len(listed) > MOST:
        raise UsageError(say("match.matches_must_hold_one_list_matches", most=MOST), hint=HINT)
    return tuple(_edit(number, one) for number, one in enumerate(listed, start=1))


def _edit(number: int, one: object) -> Edit:
    if isinstance(one, dict) and len(one) == 1:
        ((verb, names),) = one.items()
        known = isinstance(names, dict) and all(isinstance(name, str) for name in names.values())
        if known and verb == "match" and set(names) == {"target", "golden"}:
            return Edit(join=True, target=names["target"], golden=names["golden"])
        if known and verb == "unmatch" and set(names) in ({"target"}, {"golden"}):
            return Edit(join=False, target=names.get("target"), golden=names.get("golden"))
    raise UsageError(say("match.matches_edit_neither_match_two_names", number=number), hint=HINT)


def write_edits(edits: Sequence[Edit]) -> str:
    """Write edits as the yaml that `parse_edits` reads."""
    listed = [
        {"match" if edit.join else "unmatch": {side: name for side, name in _names(edit) if name is not None}}
        for edit in edits
    ]
    import yaml  # noqa: PLC0415

    return yaml.safe_dump({"matches": listed}, sort_keys=False, width=1000)  # ASCII: line separators survive


def _names(edit: Edit) -> tuple[tuple[str, str | None], tuple[str, str | None]]:
    return ("target", edit.target), ("golden", edit.golden)


def apply_edits(matching: Matching, edits: Sequence[Edit]) -> list[Problem]:
    """Apply the edits in order, to forward calls with their backward. Names that this rank does not have are problems."""
    if not edits:
        return []
    sides = matching.target, matching.golden
    entries = [{side.dump.tree.names[entry]: entry for entry in range(side.dumped)} for side in sides]
    problems = []
    for edit in edits:
        found = [
            None if name is None else known.get(name, -1)
            for known, (_, name) in zip(entries, _names(edit), strict=True)
        ]
        for entry, (word, name) in zip(found, _names(edit), strict=True):
            if entry == -1:
                message = say("match.not_node_match_made_by_hand", name=name, word=word)
                problems.append(Problem(loc="matches", kind="mapping", message=message))
        if -1 in found:
            continue
        _apply(matching, found[0], found[1])
        backward = [None if entry is None else side.backward(entry) for side, entry in zip(sides, found, strict=True)]
        if any(entry is not None for entry in backward) and (not edit.join or None not in backward):
            _apply(matching, backward[0], backward[1])
    return problems


def _apply(matching: Matching, t: int | None, g: int | None) -> None:
    """Take both from their partners, and pair them if both are given."""
    matching.unpair(t, g)
    if t is not None and g is not None:
        matching.pair(t, g, Method.MAPPED)
