"""The causal rules in the order in which they are asked: ours, then those of installed packages (`dumpscope.rules`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from dumpscope import extensions
from dumpscope.analysis.rules.arguments import Arguments
from dumpscope.analysis.rules.computation import Computation
from dumpscope.analysis.rules.drift import GrowingError
from dumpscope.analysis.rules.modules import Modules
from dumpscope.analysis.rules.rule import Rule
from dumpscope.analysis.rules.sources import Sources
from dumpscope.analysis.rules.structure import Structure
from dumpscope.analysis.rules.weights import Weights
from dumpscope.errors import DumpscopeError

RULES: Final[tuple[Rule, ...]] = (
    Weights(),
    Computation(),
    Arguments(),
    Modules(),
    Structure(),
    Sources(),
    GrowingError(),
)
"""A rule sees what those before it found: what was loaded, then what calls did, then data that nothing dumped made."""
OURS: Final = frozenset(rule.id for rule in RULES)


@cache
def all_rules() -> dict[str, Rule]:
    """By id, in the order in which they are asked.

    Raises DumpscopeError where an installed object is no rule, or its id is taken.
    """
    rules = {rule.id: rule for rule in RULES}
    for entry in extensions.load(extensions.RULES):
        rule = entry() if isinstance(entry, type) else entry
        if not isinstance(rule, Rule):
            raise DumpscopeError(
                f"the extension {rule!r} is no causal rule", hint="derive it from dumpscope.analysis.rules.rule.Rule"
            )
        if rule.id in rules:
            raise DumpscopeError(f"two causal rules have the id {rule.id!r}", hint="give the installed one another id")
        rules[rule.id] = rule
    return rules


def rule_of(rule_id: str) -> Rule:
    """The rule that words a finding."""
    return all_rules()[rule_id]
