"""The causal rules in the order in which they are asked: ours, then those of installed packages (`dumpscope.rules`)."""

from __future__ import annotations

from functools import cache
from typing import Final

from dumpscope import extensions
from dumpscope.analysis.rules.arguments import Arguments
from dumpscope.analysis.rules.computation import Computation
from dumpscope.analysis.rules.drift import GrowingError
from dumpscope.analysis.rules.dtypes import Dtypes
from dumpscope.analysis.rules.exchanged import Exchanged
from dumpscope.analysis.rules.modules import Modules
from dumpscope.analysis.rules.rule import Rule
from dumpscope.analysis.rules.second_causes import SecondCauses
from dumpscope.analysis.rules.sources import Sources
from dumpscope.analysis.rules.structure import Structure
from dumpscope.analysis.rules.weights import Weights
from dumpscope.errors import DumpscopeError
from dumpscope.texts import say

RULES: Final[tuple[Rule, ...]] = (
    Weights(),
    Computation(),
    Arguments(),
    Modules(),
    Structure(),
    Sources(),
    GrowingError(),
    Dtypes(),
    SecondCauses(),
    Exchanged(),
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
                say("extensions.no_rule", object=f"{rule!r}"),
                hint=say("extensions.derive_from", base="dumpscope.analysis.rules.rule.Rule"),
            )
        if rule.id in rules:
            raise DumpscopeError(say("extensions.rule_id_taken", id=f"{rule.id!r}"), hint=say("extensions.rename_rule"))
        rules[rule.id] = rule
    return rules


def rule_of(rule_id: str) -> Rule:
    """The rule that words a finding."""
    return all_rules()[rule_id]
