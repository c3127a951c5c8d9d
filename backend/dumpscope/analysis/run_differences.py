"""What was set differently in two runs, each where it can explain a result."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dumpscope.domain.run import Run
from dumpscope.texts import Phrase, Value, phrase

OWN_SENTENCE: Final = ("precision", "risk_level", "data_mode")
"""Settings of a dump that have advice of their own."""
_HARMLESS: Final = ("python",)
"""Versions that compute nothing."""
_EVERYWHERE: Final = ("deterministic_algorithms", "float32_matmul_precision", "default_dtype")
_PROCESSOR: Final = ("threads", "cpu_capability")
"""Switches that matter only where the processor computes; all others that are not named here only on accelerators."""


def differences(target: Run | None, golden: Run | None) -> list[Phrase]:
    """One phrase per group of settings that differ; nothing where a side does not tell how it was run."""
    if target is None or golden is None:
        return []
    numerics = [name for name in _both(target.numerics, golden.numerics) if _matters(name, target, golden)]
    versions = [name for name in _both(target.versions, golden.versions) if name not in _HARMLESS]
    variables = sorted(target.environment.keys() | golden.environment.keys()) if _modern(target, golden) else []
    settings = _both(target.settings, golden.settings)
    out = [
        *_group("versions", target.versions, golden.versions, versions),
        *_devices(target, golden),
        *_group("seed", target.seeds, golden.seeds, _both(target.seeds, golden.seeds)),
        *_group("numerics", target.numerics, golden.numerics, numerics),
        *_group("environment", target.environment, golden.environment, variables),
    ]
    for name in OWN_SENTENCE:
        if name in settings and target.settings[name] != golden.settings[name]:
            out.append(phrase(f"setting.{name}", target=target.settings[name], golden=golden.settings[name]))
    others = [name for name in settings if name not in OWN_SENTENCE]
    return [*out, *_group("selection", target.settings, golden.settings, others)]


def _matters(name: str, target: Run, golden: Run) -> bool:
    if target.accelerators or golden.accelerators:
        return name not in _PROCESSOR
    return name in _PROCESSOR or name in _EVERYWHERE


def _modern(*runs: Run) -> bool:
    """Whether all of them would name a variable that is set: an older capture did not, and told no seeds either."""
    return all(run.seeds for run in runs)


def _both(target: dict[str, str], golden: dict[str, str]) -> list[str]:
    return [name for name in target if name in golden]


def _group(word: str, target: dict[str, str], golden: dict[str, str], names: Iterable[str]) -> list[Phrase]:
    changes = [
        phrase("setting.change", name=name, target=_value(target.get(name)), golden=_value(golden.get(name)))
        for name in names
        if target.get(name) != golden.get(name)
    ]
    return [phrase(f"setting.{word}", changes=changes)] if changes else []


def _value(text: str | None) -> Value:
    return [phrase("setting.unset")] if text in (None, "") else str(text)


def _devices(target: Run, golden: Run) -> list[Phrase]:
    """Said of accelerators; processors are told apart by what they can do (see `numerics`)."""
    if not target.devices or not golden.devices or target.accelerators == golden.accelerators:
        return []
    names = [", ".join(run.accelerators) or "cpu" for run in (target, golden)]
    return [phrase("setting.devices", target=names[0], golden=names[1])]
