"""What was set differently in two runs and their dumps. Said beside the answer: no verdict can make up for it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np

from dumpscope.analysis.passes import describe_passes
from dumpscope.domain.context import Context
from dumpscope.domain.facts import Facts, Outcome
from dumpscope.domain.records import Direction, Header, NodeKind, RankDump, Role
from dumpscope.domain.run import Run
from dumpscope.match.amounts.data import find_amounts
from dumpscope.match.amounts.kept import find_kept
from dumpscope.match.amounts.last import find_last
from dumpscope.texts import Phrase, Value, phrase
from dumpscope.verdict.coverage import MISSING_KINDS, kinds_of_calls
from dumpscope_format.run import NOTE_KINDS

OWN_SENTENCE: Final = ("precision", "risk_level", "data_mode")
"""Settings of a dump that have advice of their own."""
_HARMLESS: Final = ("python",)
"""Versions of what computes nothing."""
_NO_KERNELS: Final = (*_HARMLESS, "numpy")
"""Versions of what computes nothing in a model."""
_EVERYWHERE: Final = ("deterministic_algorithms", "float32_matmul_precision", "default_dtype")
_PROCESSOR: Final = ("threads", "cpu_capability")
"""Switches that matter only on the processor. Those that stand in neither tuple matter only on accelerators."""
NAMED: Final = 5
_EXPLAIN_CALLS: Final = ("setting.risk_level", "setting.selection")
"""Sentences that explain why one side lacks kinds of calls."""


def find_setting_differences(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """One phrase per difference in the way the two sides were dumped."""
    of_runs = find_run_differences(target.header.run, golden.header.run)
    of_runs += describe_notes({"target": target.header.run, "golden": golden.header.run})
    out = [*_describe_headers(target.header, golden.header), *of_runs]
    kept = _describe_kept(target, golden, context, facts) or _describe_last(target, golden, context, facts)
    own = target.ref.passes or golden.ref.passes or kept  # the loop around passes, or the cache, makes calls of its own
    if not own and not any(one["id"] in _EXPLAIN_CALLS for one in of_runs):
        out += _describe_missing_calls(target, golden)
    if target.header.task == golden.header.task and not any(one["id"] == "setting.data_mode" for one in of_runs):
        out += _describe_missing_parts(target, golden)
    out += describe_passes(target, golden, context, facts)
    out += _describe_amounts(target, golden, context, facts)
    out += kept
    dtypes = _describe_dtypes(context, facts)
    return [*out, dtypes] if dtypes else out


def _describe_amounts(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """The runs took other amounts of the same data: how much, in how many passes, and what of it is compared."""
    amounts = find_amounts(target, golden, context) if context.shape_differs.any() else None
    if amounts is None:
        return []
    word, sizes = ("rows", amounts.rows) if amounts.rows[0] != amounts.rows[1] else ("length", amounts.length)
    node = target.items.node[context.target[amounts.row]], golden.items.node[context.golden[amounts.row]]
    passes = [_count_passes(dump, int(one)) for dump, one in zip((target, golden), node, strict=True)]
    seen = (facts.unequal >= 0) & context.shape_differs
    stored = target.header.data_dir and golden.header.data_dir
    said = "compared" if seen.any() else "apart" if stored else "unseen"
    told = phrase(f"setting.{word}", target=sizes[0], golden=sizes[1], common=[phrase(f"amounts.{said}")])
    if passes[0] == passes[1]:
        return [told]
    return [told, phrase("setting.passes", target=passes[0], golden=passes[1])]


def _describe_kept(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """One side keeps its cache at full length: how long that is, and what of it is compared."""
    kept = find_kept(target, golden, context) if context.shape_differs.any() else None
    if kept is None:
        return []
    said = "compared" if (facts.unequal[kept.rows] >= 0).any() else "unseen"
    sides = [phrase(f"side.{side}") for side in ("target", "golden")]
    side, other = sides if kept.larger == "target" else sides[::-1]
    return [phrase("setting.kept", side=[side], other=[other], length=kept.length, common=[phrase(f"kept.{said}")])]


def _describe_last(target: RankDump, golden: RankDump, context: Context, facts: Facts) -> list[Phrase]:
    """One side computes all positions in each pass, the other the last one: what of it is compared."""
    last = find_last(target, golden, context)
    if last is None:
        return []
    said = "compared" if (facts.unequal[last.rows] >= 0).any() else "unseen"
    sides = [phrase(f"side.{side}") for side in ("target", "golden")]
    side, other = sides if last.larger == "target" else sides[::-1]
    return [phrase("setting.last", side=[side], other=[other], common=[phrase(f"last.{said}")])]


def _count_passes(dump: RankDump, node: int) -> int:
    """How often the first call was made."""
    nodes = dump.nodes
    same = (nodes.label == nodes.label[node]) & (nodes.direction == Direction.FORWARD)
    return int(same.sum())


def _describe_headers(target: Header, golden: Header) -> list[Phrase]:
    out = []
    for word, t, g in (
        ("framework", target.framework, golden.framework),
        ("task", target.task, golden.task),
        ("level", target.level, golden.level),
        ("summary", target.summary, golden.summary),
    ):
        if t != g:
            out.append(phrase(f"setting.{word}", target=t or "?", golden=g or "?"))
    return out


def _describe_missing_calls(target: RankDump, golden: RankDump) -> list[Phrase]:
    """One side has all kinds of calls that the other has and several more: another risk level, list or scope."""
    sides = [kinds_of_calls(dump) for dump in (target, golden)]
    more = {"target": sorted(sides[0] - sides[1]), "golden": sorted(sides[1] - sides[0])}
    if not all(sides) or all(more.values()):
        return []
    return [
        phrase("setting.calls", side=[phrase(f"side.{side}")], count=len(names), names=", ".join(names[:NAMED]))
        for side, names in more.items()
        if len(names) >= MISSING_KINDS
    ]


def _describe_missing_parts(target: RankDump, golden: RankDump) -> list[Phrase]:
    """A side holds no forward or backward calls at all, or no inputs or outputs, where the other one does."""
    held = [_parts_of(dump) for dump in (target, golden)]
    if not all(held):
        return []
    missing = {"target": held[1] - held[0], "golden": held[0] - held[1]}
    return [
        phrase("setting.parts", side=[phrase(f"side.{side}")], parts=[phrase(f"part.{part}") for part in sorted(parts)])
        for side, parts in missing.items()
        if parts
    ]


def _parts_of(dump: RankDump) -> set[str]:
    """Which of the parts that data_mode chooses from the dump holds."""
    calls = np.isin(dump.nodes.kind, (NodeKind.API, NodeKind.MODULE))
    found = {
        word
        for word, code in (("forward", Direction.FORWARD), ("backward", Direction.BACKWARD))
        if (dump.nodes.direction[calls] == code).any()
    }
    roles = set(np.unique(dump.items.role[calls[dump.items.node]]).tolist())
    if roles & {Role.INPUT, Role.KWARG}:
        found.add("input")
    if Role.OUTPUT in roles:
        found.add("output")
    return found


def _describe_dtypes(context: Context, facts: Facts) -> Phrase | None:
    """Dtypes differ in more than a quarter of the tensors: then precision differs everywhere."""
    tensors = np.flatnonzero((facts.outcome == Outcome.COMPARED) & (context.t_dtype >= 0) & (context.g_dtype >= 0))
    differing = tensors[facts.dtype_differs[tensors] == 1]
    if not len(tensors) or len(differing) <= 0.25 * len(tensors):
        return None
    pairs = Counter(zip(context.t_dtype[differing].tolist(), context.g_dtype[differing].tolist(), strict=True))
    (t, g), _ = pairs.most_common(1)[0]
    return phrase(
        "setting.dtypes",
        count=len(differing),
        total=len(tensors),
        target=context.dtypes[t],
        golden=context.dtypes[g],
    )


def find_run_differences(target: Run | None, golden: Run | None) -> list[Phrase]:
    """One phrase per group of settings that differ; none where a side does not tell how it was run."""
    if target is None or golden is None:
        return []
    numerics = [name for name in _common_names(target.numerics, golden.numerics) if _matters(name, target, golden)]
    versions = [name for name in _common_names(target.versions, golden.versions) if name not in _HARMLESS]
    variables = sorted(target.environment.keys() | golden.environment.keys()) if _name_variables(target, golden) else []
    settings = _common_names(target.settings, golden.settings)
    out = [
        *_describe_group("versions", target.versions, golden.versions, versions),
        *_describe_devices(target, golden),
        *_describe_group("seed", target.seeds, golden.seeds, _common_names(target.seeds, golden.seeds)),
        *_describe_group("numerics", target.numerics, golden.numerics, numerics),
        *_describe_group("environment", target.environment, golden.environment, variables),
    ]
    for name in OWN_SENTENCE:
        if name in settings and target.settings[name] != golden.settings[name]:
            out.append(phrase(f"setting.{name}", target=target.settings[name], golden=golden.settings[name]))
    others = [name for name in settings if name not in OWN_SENTENCE]
    return [*out, *_describe_group("selection", target.settings, golden.settings, others)]


def have_other_kernels(target: Run | None, golden: Run | None) -> bool:
    """Whether the runs tell of versions, devices or switches with which equal bits cannot be expected of the same call."""
    if target is None or golden is None:
        return False
    versions = (name for name in _common_names(target.versions, golden.versions) if name not in _NO_KERNELS)
    numerics = (name for name in _common_names(target.numerics, golden.numerics) if _matters(name, target, golden))
    return (
        any(target.versions[name] != golden.versions[name] for name in versions)
        or any(target.numerics[name] != golden.numerics[name] for name in numerics)
        or bool(_describe_devices(target, golden))
    )


def describe_notes(runs: Mapping[str, Run | None]) -> list[Phrase]:
    """What a capture says of its own dump, by side: one phrase where both sides say the same."""
    noted = {side: run.notes for side, run in runs.items() if run is not None}
    out: list[Phrase] = []
    for kind in NOTE_KINDS:
        said = {side: notes[kind] for side, notes in noted.items() if notes.get(kind)}
        if len(said) > 1 and len(set(said.values())) == 1:
            said = {"both": next(iter(said.values()))}
        out += [
            phrase(f"setting.note.{kind}", side=[phrase(f"side.{side}")], names=names) for side, names in said.items()
        ]
    return out


def _matters(name: str, target: Run, golden: Run) -> bool:
    if target.accelerators or golden.accelerators:
        return name not in _PROCESSOR
    return name in _PROCESSOR or name in _EVERYWHERE


def _name_variables(*runs: Run) -> bool:
    """Whether all of them name the variables that are set: an older capture did not, and recorded no seeds either."""
    return all(run.seeds for run in runs)


def _common_names(target: dict[str, str], golden: dict[str, str]) -> list[str]:
    return [name for name in target if name in golden]


def _describe_group(word: str, target: dict[str, str], golden: dict[str, str], names: Iterable[str]) -> list[Phrase]:
    changes = [
        phrase("setting.change", name=name, target=_value(target.get(name)), golden=_value(golden.get(name)))
        for name in names
        if target.get(name) != golden.get(name)
    ]
    return [phrase(f"setting.{word}", changes=changes)] if changes else []


def _value(text: str | None) -> Value:
    return [phrase("setting.unset")] if text in (None, "") else str(text)


def _describe_devices(target: Run, golden: Run) -> list[Phrase]:
    """Accelerators that differ; processors are compared by what they can do (see `numerics`)."""
    if not target.devices or not golden.devices or target.accelerators == golden.accelerators:
        return []
    names = [", ".join(run.accelerators) or "cpu" for run in (target, golden)]
    return [phrase("setting.devices", target=names[0], golden=names[1])]
