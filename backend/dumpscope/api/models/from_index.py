"""From what the index answers to what travels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from dumpscope.api.models import dataflow, schemas
from dumpscope.api.models.sentences import optional_phrases, phrases, problems
from dumpscope.api.replies import moment, real
from dumpscope.domain import job as domain_job
from dumpscope.domain.facts import (
    CAUSES,
    CLASS_WORDS,
    ERROR_BINS,
    Origin as DomainOrigin,
    TensorFacts,
    unmatched_sentence,
)
from dumpscope.domain.result import Answer, Reference
from dumpscope.index.comparisons.catalogue import ComparisonRow, StoredUnit
from dumpscope.index.comparisons.distances import Standing
from dumpscope.index.dump_queries.nodes import Producer
from dumpscope.index.dumps.catalogue import DumpRow
from dumpscope.index.dumps.leaves import Leaf
from dumpscope.index.pair_queries.dataflow import NodeFlow, Passed, Received
from dumpscope.index.pair_queries.item_pairs import ItemPairRow
from dumpscope.index.pair_queries.node_pairs import NodePairRow
from dumpscope.index.trees.trees import TreeRow
from dumpscope.texts import Phrase, phrase, said_of

ORIGINS: Final = 100
"""Origins sent at once."""

SENT_FRAMES: Final = 200
"""Frames of one call stack sent at once."""

HIGH: Final = 0.8
MEDIUM: Final = 0.5
"""Confidence from which an origin is called high or medium."""

NAMED_POLICY: Final = 60
"""A policy text longer than this is a file's, not a name."""

BINS: Final = [0.0, 0.0, *(float(f"1e{int(edge)}") for edge in ERROR_BINS)]


def dump(row: DumpRow) -> schemas.Dump:
    return schemas.Dump(
        id=row.id,
        name=row.name,
        path=row.path,
        status=row.status,  # type: ignore[arg-type]
        job=row.job,
        error=error(row.error),
        framework=row.framework,
        task=row.task,
        level=row.level,
        summary=row.summary,
        steps=row.steps,
        ranks=row.ranks,
        nodes=row.nodes,
        items=row.items,
        bytes=row.bytes,
        created=moment(row.created),
        problems=problems(row.problems),
    )


def error(body: dict[str, Any] | None) -> schemas.Error | None:
    return None if body is None else schemas.Error(**body)


def leaf(row: Leaf) -> schemas.Leaf:
    high, low, mean, norm = (real(value) for value in row.stats)
    return schemas.Leaf(
        name=row.name,
        role=row.role,
        path=row.path,
        type=row.type,
        dtype=row.dtype,
        shape=row.shape,
        max=high,
        min=low,
        mean=mean,
        norm=norm,
        requires_grad=row.requires_grad,
        md5=row.hash,
        value=row.value,
        data_name=row.data_name,
    )


def dump_leaf(row: Leaf, made: Producer | None) -> dataflow.DumpLeaf:
    producer = None if made is None else dataflow.Producer(**asdict(made))
    return dataflow.DumpLeaf(**dict(leaf(row)), producer=producer)


def tree_row(row: TreeRow) -> schemas.TreeRow:
    counts = None
    if row.verdict is not None:
        counts = schemas.TreeCounts(no=row.no, warning=row.warning, yes=row.yes, na=row.na, origin=row.origin)
    return schemas.TreeRow(
        entry=row.entry,
        name=row.name,
        address=row.address,
        label=row.label,
        parent=row.parent,
        order=row.order,
        kind=row.kind,  # type: ignore[arg-type]
        direction=row.direction,  # type: ignore[arg-type]
        children=row.children,
        nodes=row.nodes,
        verdict=row.verdict,  # type: ignore[arg-type]
        cls=row.cls,
        match=row.match,
        confidence=row.confidence,
        leftover=row.leftover,
        counts=counts,
    )


def comparison(row: ComparisonRow) -> schemas.Comparison:
    answer = row.answer
    first = answer.origins[0] if answer and answer.origins else None
    options = row.options.to_json()
    return schemas.Comparison(
        id=row.id,
        name=row.name,
        status=row.status,  # type: ignore[arg-type]
        job=row.job,
        error=error(row.error),
        target=row.target,
        golden=row.golden,
        target_name=row.target_name,
        golden_name=row.golden_name,
        policy=answer.policy if answer else _policy_name(row.options.policy),
        mode=row.mode,
        counts=schemas.Counts(**asdict(answer.counts)) if answer else None,
        verdict=row.verdict,  # type: ignore[arg-type]
        origin=schemas.OriginBrief(node=first.node, kind=first.kind, step=first.step, rank=first.rank)
        if first
        else None,
        created=moment(row.created),
        options=options,
        reference=row.reference,
        reference_name=row.reference_name,
    )


def _policy_name(text: str) -> str:
    return text if len(text) <= NAMED_POLICY and "\n" not in text else "custom"


def origin(found: DomainOrigin) -> schemas.Origin:
    return schemas.Origin(
        step=found.step,
        rank=found.rank,
        node=found.node,
        kind=found.kind,
        confidence=found.confidence,
        confidence_word="high" if found.confidence >= HIGH else "medium" if found.confidence >= MEDIUM else "low",
        evidence=found.evidence,
        advice=found.advice,
        evidence_said=phrases(found.evidence_said),
        advice_said=phrases(found.advice_said),
        explains=found.explains,
        path=found.path,
        ranks=found.ranks,
        spread=[schemas.Reached(rank=one.rank, node=one.node) for one in found.spread],
        stack=found.stack[:SENT_FRAMES],
        pair=found.pair,
    )


def summary(answer: Answer, units: Sequence[StoredUnit]) -> schemas.Summary:
    classes: dict[str, int] = {}
    for unit in units:
        for word, count in unit.counts["classes"].items():
            classes[word] = classes.get(word, 0) + count
    first = answer.first_no
    return schemas.Summary(
        schema_=1,
        mode=answer.mode,
        policy=answer.policy,
        target=schemas.Side(**asdict(answer.target)),
        golden=schemas.Side(**asdict(answer.golden)),
        counts=schemas.Counts(**asdict(answer.counts)),
        first_no=None
        if first is None
        else schemas.FirstNo(
            step=first.step,
            rank=first.rank,
            node=first.node,
            item=first.item,
            metrics={name: real(value) for name, value in first.metrics.items()},
            reason=first.reason,
            reason_said=phrases(first.reason_said),
            stack=first.stack[:SENT_FRAMES],
        ),
        origins=[origin(found) for found in answer.origins[:ORIGINS]],
        problems=problems(answer.problems),
        problem_count=len(answer.problems),
        settings=answer.settings,
        settings_said=phrases(answer.settings_said),
        classes=classes,
        reference=None if answer.reference is None else _reference(answer.reference),
        units=[
            schemas.UnitBrief(
                step=unit.step,
                rank=unit.rank,
                verdict=unit.verdict,  # type: ignore[arg-type]
                no=unit.counts["no"],
                origins=sum(unit.counts["classes"][CLASS_WORDS[cause]] for cause in CAUSES),
                inferred=unit.inferred,
            )
            for unit in units
        ],
    )


def _reference(found: Reference) -> schemas.Reference:
    return schemas.Reference(
        side=schemas.Side(**asdict(found.side)),
        target_farther=found.target_farther,
        golden_farther=found.golden_farther,
        alike=found.alike,
        not_measured=found.not_measured,
        golden_off=[
            schemas.GoldenOff(
                step=one.step,
                rank=one.rank,
                node=one.node,
                target=real(one.target),
                golden=real(one.golden),
                ratio=real(one.ratio),
                measure=one.measure,  # type: ignore[arg-type]
                stack=one.stack[:SENT_FRAMES],
                pair=one.pair,
            )
            for one in found.golden_off[:ORIGINS]
        ],
    )


def node_fields(row: NodePairRow) -> dict[str, Any]:
    return {
        "pair": row.pair,
        "order": row.order,
        "name": row.name,
        "address": row.address,
        "golden_name": row.golden_name,
        "match": row.match,
        "confidence": row.confidence,
        "leftover": row.leftover,
        "beside": row.beside,
        "kind": row.kind,
        "direction": row.direction,
        "api": row.api,
        "verdict": row.verdict,
        "cls": row.cls,
        "in_score": real(row.in_score),
        "out_score": real(row.out_score),
        "in_error": real(row.in_error),
        "out_error": real(row.out_error),
        "entry": row.entry,
        "standing": standing(row.standing),
    }


def standing(found: Standing | None) -> schemas.Standing | None:
    if found is None:
        return None
    return schemas.Standing(
        target=real(found.target),
        golden=real(found.golden),
        measure=found.measure,  # type: ignore[arg-type]
        ratio=real(found.ratio),
        inverse=real(found.inverse),
    )


def node_row(row: NodePairRow) -> schemas.NodeRow:
    return schemas.NodeRow(**node_fields(row))


def flow(found: NodeFlow) -> dataflow.Flow:
    return dataflow.Flow(
        node=node_row(found.node),
        inputs=[
            dataflow.FlowInput(
                **_end(one),
                producer=None if one.producer is None else node_row(one.producer),
                made=one.made,
                untold=one.untold,
            )
            for one in found.inputs
        ],
        input_count=found.input_count,
        consumers=[
            dataflow.FlowConsumer(**_end(one), consumer=node_row(one.consumer), made=one.made)
            for one in found.consumers
        ],
        consumer_count=found.consumer_count,
        source=None
        if found.source is None
        else dataflow.FlowSource(node=node_row(found.source.node), way=found.source.way, rank=found.source.rank),
    )


def _end(found: Received | Passed) -> dict[str, Any]:
    return {
        "pair": found.pair,
        "item": found.leaf.name,
        "role": found.leaf.role,
        "path": found.leaf.path,
        "verdict": found.verdict,
        "score": real(found.score),
    }


def reason(row: NodePairRow, worst: ItemPairRow | None) -> list[Phrase]:
    """Why the node got its verdict: the sentence of its worst item."""
    if row.leftover is not None:
        return unmatched_sentence(row.leftover, row.beside)
    if worst is None:
        return [phrase("node.no_partner" if row.match == "none" else "node.nothing")]
    role = [phrase(f"role.{worst.role}")]
    if worst.verdict == "yes":
        return [phrase("node.agrees", items=row.items, role=role), *worst.said]
    return [phrase("node.worst", role=role, path=_path(worst)), *worst.said]


def _path(row: ItemPairRow) -> str:
    leaf_row = row.target or row.golden
    return leaf_row.path if leaf_row else ""


def pair_fields(row: ItemPairRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "node": row.node,
        "target": row.target.name if row.target else None,
        "golden": row.golden.name if row.golden else None,
        "role": row.role,
        "match": row.match,
        "verdict": row.verdict,
        "rule": row.rule,
        "score": real(row.score),
        "message": row.message,
        "target_leaf": leaf(row.target) if row.target else None,
        "golden_leaf": leaf(row.golden) if row.golden else None,
        "metrics": {name: real(value) for name, value in row.metrics.items()},
        "producer": row.producer,
        "standing": standing(row.standing),
    }


def pair(row: ItemPairRow) -> schemas.Pair:
    return schemas.Pair(**pair_fields(row))


def pair_with_detail(row: ItemPairRow) -> schemas.PairWithDetail:
    return schemas.PairWithDetail(
        **pair_fields(row), detail=_detail(row.detail) if row.detail else None, message_said=phrases(row.said)
    )


def _detail(facts: TensorFacts) -> schemas.PairDetail:
    return schemas.PairDetail(
        worst_index=list(facts.worst_index) if facts.worst_index is not None else None,
        worst_target=real(facts.worst_target),
        worst_golden=real(facts.worst_golden),
        abs_histogram=list(facts.abs_histogram),
        rel_histogram=list(facts.rel_histogram),
        bins=BINS,
    )


def job(row: domain_job.Job) -> schemas.Job:
    return schemas.Job(
        id=row.id,
        kind=row.kind,  # type: ignore[arg-type]
        subject=row.subject,
        status=row.status,
        progress=row.progress,
        message=row.message,
        said=optional_phrases(said_of(row.message)),
        eta=row.eta,
        error=error(row.error),
        created=moment(row.created),
        started=moment(row.started) if row.started is not None else None,
        finished=moment(row.finished) if row.finished is not None else None,
    )
