"""NaN and infinity over all ranks of a step: what one rank sent is not born in the communication of those that received it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from dumpscope.analysis.overflow.births import NodeOverflow, Overflow
from dumpscope.domain.unread.communication import PREFIX, RECEIVING, SENDING
from dumpscope.texts import as_ranges, phrase

_WORDS: Final = ("nan", "inf", "-inf")
"""Contents that spread through a communication, as findings name them."""


def join_ranks(found: Sequence[Overflow]) -> list[Overflow]:
    """The findings of all ranks, those of a communication with the ranks that sent into it what is not finite.

    Calls of several ranks are one communication where they have the same name: the same function, called as often before. A
    message between two ranks is left as it is.
    """
    senders = _find_senders(found)
    return [
        replace(
            one,
            findings=[
                _receive(finding, [rank for rank in senders.get((one.step, finding.node), ()) if rank != one.rank])
                for finding in one.findings
            ],
        )
        for one in found
    ]


def waits_for_others(found: Overflow) -> bool:
    """What other ranks sent may change these findings of one rank."""
    return any(_may_have_come_from_others(one) and _is_collective(one.node) for one in found.findings)


def _find_senders(found: Sequence[Overflow]) -> dict[tuple[int, str], list[int]]:
    """By step and node of a communication, the ranks that gave it what is not finite."""
    senders: dict[tuple[int, str], list[int]] = {}
    for one in found:
        for finding in one.findings:
            if _is_collective(finding.node) and set(finding.inputs) & set(_WORDS):
                senders.setdefault((one.step, finding.node), []).append(one.rank)
    return senders


def _receive(finding: NodeOverflow, senders: list[int]) -> NodeOverflow:
    """A communication whose own rank gave only finite numbers received what others sent."""
    if not senders or not _may_have_come_from_others(finding):
        return finding
    went = [phrase(f"overflow.word.{word}") for word in finding.outputs]
    ranks = as_ranges(senders)
    return replace(
        finding,
        part="propagated",
        level="high",
        said=(phrase("overflow.received", ranks=ranks, went=went),),
        advised=(phrase("overflow.advice.sender", ranks=ranks),),
    )


def _may_have_come_from_others(finding: NodeOverflow) -> bool:
    """It seems to begin in this call, whose own rank gave only finite numbers."""
    return finding.part == "origin" and not set(finding.inputs) & set(_WORDS)


def _is_collective(node: str) -> bool:
    if not node.startswith(PREFIX):
        return False
    api = node.removeprefix(PREFIX).split(".")[0]
    return api not in SENDING and api not in RECEIVING and api != "batch_isend_irecv"
