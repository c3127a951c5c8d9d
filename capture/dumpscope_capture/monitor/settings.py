"""What a monitor watches, also from a configuration of msprobe's TrainerMon."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from fnmatch import fnmatchcase
from typing import Any, Final

from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG
from dumpscope_capture.monitor.rules import RULES
from dumpscope_format.monitor import STATISTICS
from dumpscope_format.older_python import dataclass

DEFAULT_PATH: Final = "./monitor"
_ARGUMENTS: Final = ("config_path", "task", "dump_path", "level")
"""Arguments of PrecisionDebugger."""
_USED: Final = frozenset(
    ("targets", "start_step", "step_interval", "collect_times", "module_ranks", "xy_distribution", "all_xy",
     "forward_only", "backward_only", "wg_distribution", "mv_distribution", "param_distribution", "ur_distribution",
     "ops", "eps", "dump")
)  # fmt: skip
_NEEDLESS: Final = frozenset(("format", "ndigits", "step_count_per_record"))
"""Keys on the form of msprobe's files, which ours have not."""
_ALWAYS: Final = frozenset(("shape", "dtype", "id"))
"""Operations of msprobe that are no statistic: shape and dtype of each parameter are in the header of the file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpSettings:
    """The recorder that starts after an anomaly.

    recorder: the PrecisionDebugger that the script drives; None for one of the monitor's own, made with `arguments`
    on: rules that start it, of RULES; steps: how many are recorded each time; times: how often
    """

    recorder: Any = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    on: tuple[str, ...] = RULES
    steps: int = 1
    times: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class MonitorSettings:
    """What is watched.

    path: folder of the files
    parameters: patterns of names, `*.mlp.*`, or beginnings of names if `prefixes`; empty for all
    statistics: of gradients as the optimizer gets them, of activations and of whole parameters
    reduced: whether gradients are watched at all; unreduced, unclipped: statistics of gradients before they are reduced over
        ranks and before they are clipped; empty for none
    moments: statistics of exp_avg and exp_avg_sq; moments_every, update_every: each parameter once in so many steps, 0 for never
    weights: whether parameters themselves are measured, before and after the step
    activations: patterns of names of modules whose results are measured; activation_inputs: also what they receive;
        activation_gradients: also the gradients of their results; forward: False for gradients only
    every, start, times: steps that are recorded: from `start` on, every so many, at most so many
    ranks: which ranks record, empty for all
    msprobe_words: whether gradients before clipping are called `grad_unreduced` in a run of one rank, as in msprobe
    flush_every: steps whose numbers wait on the device; eps: numbers below it count as zeros
    dump: the recorder that starts after an anomaly, None for none
    """

    path: str = DEFAULT_PATH
    parameters: tuple[str, ...] = ()
    prefixes: bool = False
    statistics: tuple[str, ...] = STATISTICS
    reduced: bool = True
    unreduced: tuple[str, ...] = ("norm",)
    unclipped: tuple[str, ...] = ("norm",)
    moments: tuple[str, ...] = ("norm", "min", "max")
    moments_every: int = 10
    update_every: int = 10
    weights: bool = False
    activations: tuple[str, ...] = ()
    activation_inputs: bool = False
    activation_gradients: bool = False
    forward: bool = True
    every: int = 1
    start: int = 0
    times: int = 10**8
    ranks: tuple[int, ...] = ()
    msprobe_words: bool = False
    flush_every: int = 20
    eps: float = 1e-8
    dump: DumpSettings | None = None

    def takes_parameter(self, name: str) -> bool:
        """Whether a parameter of this name is watched."""
        if not self.parameters:
            return True
        if self.prefixes:
            return name.startswith(self.parameters)
        return any(fnmatchcase(name, pattern) for pattern in self.parameters)

    def takes_module(self, name: str) -> bool:
        """Whether results of a module of this name are watched."""
        return any(fnmatchcase(name, pattern) for pattern in self.activations)

    def takes_step(self, step: int) -> bool:
        """Whether a step is recorded."""
        return step >= self.start and (step - self.start) % self.every == 0


def check(settings: MonitorSettings) -> MonitorSettings:
    """The settings. Raises ConfigError for a value that cannot be used."""
    for key in ("statistics", "unreduced", "unclipped", "moments"):
        unknown = [one for one in getattr(settings, key) if one not in STATISTICS]
        if unknown:
            raise ConfigError(key, unknown[0], ", ".join(STATISTICS))
    for key, least in (
        ("every", 1), ("flush_every", 1), ("start", 0), ("times", 0), ("moments_every", 0), ("update_every", 0)
    ):  # fmt: skip
        value = getattr(settings, key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise ConfigError(key, value, f"a whole number, {least} or more")
    if not isinstance(settings.eps, (int, float)) or not settings.eps > 0:
        raise ConfigError("eps", settings.eps, "a number above 0")
    return replace(settings, dump=read_dump(settings.dump))


def read_dump(given: Any) -> DumpSettings | None:
    """What starts after an anomaly. given: a PrecisionDebugger, the path of its configuration, or an object with the keys of
    `DumpSettings` and arguments of PrecisionDebugger. Raises ConfigError."""
    if given is None or isinstance(given, DumpSettings):
        return given
    if isinstance(given, (str, os.PathLike)):
        return DumpSettings(arguments={"config_path": os.fspath(given)})
    if not isinstance(given, Mapping):
        return DumpSettings(recorder=given)
    known = {"recorder", "on", "steps", "times", *_ARGUMENTS}
    for key in given:
        if key not in known:
            raise ConfigError(f"dump.{key}", given[key], "one of " + ", ".join(sorted(known)))
    arguments = {key: given[key] for key in _ARGUMENTS if given.get(key) is not None}
    on = given.get("on", RULES)
    on = (on,) if isinstance(on, str) else tuple(on)
    for rule in on:
        if rule not in RULES:
            raise ConfigError("dump.on", rule, "some of " + ", ".join(RULES))
    for key in ("steps", "times"):
        value = given.get(key, 1)
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise ConfigError(f"dump.{key}", value, "a whole number, 1 or more")
    recorder = given.get("recorder")
    if recorder is not None and arguments:
        raise ConfigError("dump.recorder", sorted(arguments), "no " + " or ".join(_ARGUMENTS) + " beside it")
    return DumpSettings(
        recorder=recorder, arguments=arguments, on=on, steps=given.get("steps", 1), times=given.get("times", 1)
    )


def read_msprobe(config: str | os.PathLike[str] | Mapping[str, Any], path: str | None = None) -> MonitorSettings:
    """Settings from a configuration of msprobe's TrainerMon: the same things are watched, at the same moments.

    config: the JSON file, or what it holds; path: folder of our files, by default that of msprobe (`MONITOR_OUTPUT_DIR`)
    Keys without a meaning here are logged. Raises ConfigError.
    """
    data = _load(config)
    for key in sorted(set(data) - _USED - _NEEDLESS):
        if data[key]:
            LOG.warning("monitor: the key %r has no meaning here and is ignored", key)
    statistics = _operations(data.get("ops", []))
    targets = data.get("targets") or {}
    if not isinstance(targets, Mapping):
        raise ConfigError("targets", targets, "an object with names of modules as keys")
    names = tuple(_without_stage(name) for name in targets if name)
    modules = ("*",) if data.get("all_xy") or not names else names
    gradients, moments, updates = (
        bool(data.get(key, False)) for key in ("wg_distribution", "mv_distribution", "ur_distribution")
    )
    both = bool(data.get("forward_only")) and bool(data.get("backward_only"))
    activations = bool(data.get("xy_distribution", False)) and not both
    return check(
        MonitorSettings(
            path=path or os.environ.get("MONITOR_OUTPUT_DIR", "./monitor_output"),
            parameters=names,
            prefixes=True,
            statistics=statistics,
            reduced=gradients,
            unreduced=statistics if gradients else (),
            unclipped=statistics if gradients else (),
            moments=statistics if moments else (),
            moments_every=1 if moments else 0,
            update_every=1 if updates else 0,
            weights=bool(data.get("param_distribution", False)),
            activations=modules if activations else (),
            activation_inputs=activations,
            activation_gradients=activations and not data.get("forward_only"),
            forward=not data.get("backward_only"),
            every=data.get("step_interval", 1),
            start=data.get("start_step", 0),
            times=int(data.get("collect_times", 10**8)),
            ranks=tuple(data.get("module_ranks") or ()),
            msprobe_words=True,
            eps=data.get("eps", 1e-8),
            dump=read_dump(data.get("dump")),
        )
    )


def _load(config: str | os.PathLike[str] | Mapping[str, Any]) -> Mapping[str, Any]:
    if isinstance(config, Mapping):
        return config
    try:
        with open(config, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError, TypeError) as error:
        raise ConfigError("config", str(config), f"a readable JSON file ({error})") from error
    if not isinstance(data, dict):
        raise ConfigError("config", str(config), "a JSON object")
    return data


def _operations(given: Any) -> tuple[str, ...]:
    """msprobe's `ops`; norm alone where none of them is a statistic."""
    if not isinstance(given, Sequence) or isinstance(given, str):
        raise ConfigError("ops", given, "a list of " + ", ".join(STATISTICS))
    for one in given:
        if one not in STATISTICS and one not in _ALWAYS:
            LOG.warning("monitor: the operation %r of `ops` is unknown and is ignored", one)
    return tuple(one for one in dict.fromkeys(given) if one in STATISTICS) or ("norm",)


def _without_stage(name: str) -> str:
    """A target without the number of its pipeline stage: `0:layers.1` names `layers.1`."""
    stage, colon, rest = name.partition(":")
    return rest if colon and stage.isdecimal() else name
