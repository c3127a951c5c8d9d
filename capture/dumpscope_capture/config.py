"""Configuration of a capture: config.json and constructor arguments, checked once and frozen after that.

Every error names the key, the value it has and what is allowed. `ConfigWatcher` tells when the file has changed.
"""

from __future__ import annotations

import json
import math
import os
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, fields
from typing import Any, Final, NamedTuple

from dumpscope_format.interventions import InterventionError, check_pattern
from dumpscope_format.older_python import dataclass

TASKS: Final = ("statistics", "tensor", "structure", "overflow_check", "acc_check")
LEVELS: Final = ("L0", "L1", "L2", "mix", "debug")
SUMMARIES: Final = ("statistics", "md5", "xor")
PRECISIONS: Final = ("low", "high")
RISKS: Final = ("ALL", "CORE", "FOCUS")
DATA_MODES: Final = ("all", "forward", "backward", "input", "output")
BACKWARDS: Final = ("own", "msprobe")
COMPILED: Final = ("graph", "eager")
NUMBERINGS: Final = ("own", "msprobe")
ENDS: Final = ("never", "after_nan")
EXPLANATIONS: Final = ("off", "table", "nan", "anomaly")
NUMBER_LIMIT: Final = 1_000_000
MODES_LIMIT: Final = 4
CUSTOM_NAMESPACES: Final = ("*",)
"""Namespaces of `torch.ops` whose operators are nodes by default: all but torch's own."""

_ELSEWHERE: Final = {
    "run_ut": "it is called acc_check now; it records nothing",
    "free_benchmark": "inputs are not perturbed here",
    "grad_probe": "parameter gradients are recorded by task statistics at level L0 or mix",
    "exception_dump": "it exists for MindSpore only; a run that dies keeps its records with every task",
    "nan_check": "every statistics record counts NaN and Inf; `dumpscope overflow` reads them",
    "diff_check": "it is task tensor with bench_path",
}
_PREFIXES: Final = r"[A-Za-z_][\w.\-]*"
_API: Final = re.compile(rf"{_PREFIXES}\..*\.[0-9]+\.(forward|backward)")
_MODULE: Final = re.compile(r"(Module|Cell)\..*\.(forward|backward)\.[0-9]+")
_RANGE: Final = re.compile(r"([0-9]+)-([0-9]+)(?::([1-9][0-9]*))?")


class ConfigError(ValueError):
    """A configuration that cannot be used: key, value and what is allowed instead."""

    def __init__(self, key: str, value: object, allowed: str) -> None:
        super().__init__(f"{key} is {value!r}; allowed: {allowed}")
        self.key = key
        self.value = value
        self.allowed = allowed


class Slice(NamedTuple):
    """Elements `begin` to before `end` of dimension `dim`, in tensors whose size there is `size`.

    size: None for every size; begin, end: as in Python, so -1 counts from the end; end: None for the rest
    """

    dim: int = 0
    size: int | None = None
    begin: int = 0
    end: int | None = None

    def __str__(self) -> str:
        sized = "" if self.size is None else f" of size {self.size}"
        return f"dim {self.dim}{sized}: {self.begin} to {'the end' if self.end is None else self.end}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Which steps stay on disk: those around the first that crosses a limit.

    loss, grad_norm: limits, None for none; nan: whether one of them that is not a number crosses
    keep: steps before it; steps: steps recorded from it on; end: "after_nan" ends the job after the first NaN
    """

    loss: float | None = None
    grad_norm: float | None = None
    nan: bool = True
    keep: int = 2
    steps: int = 1
    end: str = "never"


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """What is captured and where it goes. Fields are the keys of config.json and of the section of its task.

    compiled: "graph" lets compiled code run compiled, each region as one node; "eager" runs it eagerly to see inside
    backward: "own" records the gradient of every argument, "msprobe" all gradients of the last autograd node, as msprobe does
    numbering: "own" keeps the numbers of a run without activation checkpointing, "msprobe" counts calls made again as new ones
    explain_backward: how the call behind a failing backward is found
    save_calls: names or patterns of calls that are saved with all arguments before they run
    list: substrings of names to keep
    optimizer: whether the calls of an optimizer's step are recorded
    frozen: whether parameters that require no gradient get tensor files
    trigger: the steps that stay on disk, None for all
    source_files: whether the user's files in call stacks are kept beside the dump
    max_gb: GiB of tensor files after which no more are written; None for no limit
    slice: parts of tensors that are recorded in place of the whole; request_id: of a server, whose tokens alone are recorded
    """

    task: str = "statistics"
    dump_path: str = "./dump_path"
    level: str = "L1"
    rank: tuple[int, ...] = ()
    step: tuple[int, ...] = ()
    precision: str = "low"
    async_dump: bool = False
    extra_info: bool = True
    dump_enable: bool | None = None
    risk_level: str = "FOCUS"
    custom_op_namespaces: tuple[str, ...] = CUSTOM_NAMESPACES
    compiled: str = "graph"
    backward: str = "own"
    numbering: str = "own"
    wrap_ops: str | None = None
    save_calls: tuple[str, ...] = ()
    explain_backward: str = "off"
    optimizer: bool = True
    frozen: bool = True
    source_files: bool = True
    max_gb: float | None = None
    trigger: Trigger | None = None
    scope: tuple[str, ...] = ()
    list: tuple[str, ...] = ()
    data_mode: tuple[str, ...] = ("all",)
    summary_mode: str = "statistics"
    tensor_list: tuple[str, ...] = ()
    slice: tuple[Slice, ...] = ()
    request_id: str | None = None
    bench_path: str | None = None
    diff_nums: int = 1
    overflow_nums: int = 1
    white_list: tuple[str, ...] = ()
    black_list: tuple[str, ...] = ()
    error_data_path: str = "./"
    source: str | None = field(default=None, compare=False)

    @property
    def functions(self) -> bool:
        """Whether calls of functions are nodes."""
        return self.level in ("L1", "mix")

    @property
    def modules(self) -> bool:
        return self.level in ("L0", "mix")

    def non_defaults(self) -> dict[str, Any]:
        """Settings that are not the default, for run.json."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        blank = Config()
        changed = {key: value for key, value in given.items() if value != getattr(blank, key) and key != "source"}
        if self.trigger is not None:
            changed["trigger"] = {item.name: getattr(self.trigger, item.name) for item in fields(self.trigger)}
        if self.slice:
            changed["slice"] = [one._asdict() for one in self.slice]
        return changed


_COMMON: Final = (
    "task", "dump_path", "level", "rank", "step", "precision", "async_dump", "extra_info", "dump_enable", "risk_level",
    "custom_op_namespaces", "compiled", "backward", "numbering", "wrap_ops", "save_calls", "explain_backward",
    "optimizer", "frozen", "source_files", "max_gb", "trigger",
)  # fmt: skip
_SECTION: Final = (
    "scope", "list", "data_mode", "summary_mode", "tensor_list", "bench_path", "diff_nums", "overflow_nums",
    "white_list", "black_list", "error_data_path", "slice", "request_id",
)  # fmt: skip


def load(config_path: str | os.PathLike[str] | None = None, **arguments: Any) -> tuple[Config, list[str]]:
    """Read and check a configuration. Returns it and notes on ignored keys.

    arguments: constructor arguments; those that are not None override the file.
    Raises ConfigError; the file itself missing or broken is one too.
    """
    data = _read(config_path) if config_path is not None else {}
    data = {**data, **{key: value for key, value in arguments.items() if value is not None}}
    notes: list[str] = []
    task = _word("task", data.get("task", "statistics"), TASKS, _ELSEWHERE)
    section = data.get(task, {})
    if section is None:
        section = {}
    if not isinstance(section, Mapping):
        raise ConfigError(task, section, "an object with the keys of this task")
    values: dict[str, Any] = {key: data[key] for key in _COMMON if key in data and data[key] is not None}
    values.update({key: section[key] for key in _SECTION if key in section and section[key] is not None})
    notes += [f"key {key!r} has no meaning here and is ignored" for key in _unknown_keys(data, section, task)]
    config = _check_values(values, str(config_path) if config_path is not None else None)
    return _adjust(config, notes), notes


def _read(config_path: str | os.PathLike[str]) -> dict[str, Any]:
    if not isinstance(config_path, (str, os.PathLike)):
        raise ConfigError("config_path", config_path, "a path of a .json file")
    path = os.fspath(config_path)
    if not path.endswith(".json") or not os.path.isfile(path):
        raise ConfigError("config_path", path, "an existing .json file")
    try:
        with open(path, encoding="utf-8") as stream:
            data = json.load(stream)
    except (OSError, ValueError) as error:
        raise ConfigError("config_path", path, f"a readable JSON file ({error})") from error
    if not isinstance(data, dict):
        raise ConfigError("config_path", path, "a JSON object")
    return data


def _unknown_keys(data: Mapping[str, Any], section: Mapping[str, Any], task: str) -> Iterable[str]:
    for key in data:
        if key not in _COMMON and key not in TASKS and key not in _ELSEWHERE:
            yield key
    for key in section:
        if key not in _SECTION:
            yield f"{task}.{key}"


def _check_values(values: dict[str, Any], source: str | None) -> Config:
    checks: dict[str, Any] = {
        "task": lambda key, value: _word(key, value, TASKS, _ELSEWHERE),
        "dump_path": _path,
        "level": lambda key, value: _word(key, value, LEVELS),
        "rank": numbers,
        "step": numbers,
        "precision": lambda key, value: _word(key, value, PRECISIONS),
        "risk_level": lambda key, value: _word(key, value, RISKS),
        "compiled": lambda key, value: _word(key, value, COMPILED),
        "backward": lambda key, value: _word(key, value, BACKWARDS),
        "numbering": lambda key, value: _word(key, value, NUMBERINGS),
        "explain_backward": lambda key, value: _word(key, value, EXPLANATIONS),
        "summary_mode": lambda key, value: _word(key, value, SUMMARIES),
        "data_mode": _data_mode,
        "diff_nums": _count,
        "overflow_nums": _count,
        "bench_path": _path,
        "wrap_ops": _path,
        "error_data_path": _path,
        "slice": _slices,
        "request_id": _text,
    }
    checks["max_gb"] = _gigabytes
    checks["trigger"] = _trigger
    for key in ("async_dump", "extra_info", "dump_enable", "optimizer", "frozen", "source_files"):
        checks[key] = _flag
    checks["save_calls"] = patterns
    for key in ("custom_op_namespaces", "scope", "list", "tensor_list", "white_list", "black_list"):
        checks[key] = _texts
    config = Config(**{key: checks[key](key, value) for key, value in values.items()}, source=source)
    _check_scope(config)
    return config


def _adjust(config: Config, notes: list[str]) -> Config:
    """Apply the rules between keys."""
    changes: dict[str, Any] = {}
    if config.task == "acc_check":
        notes.append("task acc_check configures a check of single operators and not a capture: nothing is recorded")
    if config.task == "structure" and config.level not in ("L0", "mix"):
        notes.append(f"task structure needs level L0 or mix, not {config.level}: mix is used")
        changes["level"] = "mix"
    elif config.level in ("L2", "debug") and config.task not in ("statistics", "tensor"):
        raise ConfigError("task", config.task, f"statistics or tensor with level {config.level}")
    if config.level == "debug" and config.tensor_list:
        notes.append("tensor_list has no meaning at level debug and is ignored")
        changes["tensor_list"] = ()
    sliced = [key for key in ("slice", "request_id") if getattr(config, key)]
    if sliced and (config.task not in ("statistics", "tensor") or config.level not in ("L0", "L1", "mix")):
        notes.append(
            f"{' and '.join(sliced)} need task statistics or tensor and level L0, L1 or mix: whole tensors are recorded"
        )
        changes.update(slice=(), request_id=None)
    if config.bench_path is not None and (config.task != "tensor" or config.summary_mode != "md5"):
        raise ConfigError("bench_path", config.bench_path, "only with task tensor and summary_mode md5")
    if config.async_dump and config.task == "tensor" and not config.list and config.level != "debug":
        raise ConfigError("async_dump", True, "with task tensor only where `list` names what to keep")
    if not changes:
        return config
    return Config(**{**{item.name: getattr(config, item.name) for item in fields(config)}, **changes})


def numbers(key: str, value: Any) -> tuple[int, ...]:
    """A list of numbers: 7, "7", "4-6" with both ends, "0-63:8" for every eighth. Sorted, each once. Raises ConfigError."""
    allowed = f'a list of numbers 0 to {NUMBER_LIMIT}, texts like "7" or ranges like "4-6" or "0-63:8"'
    if not isinstance(value, (list, tuple)):
        raise ConfigError(key, value, allowed)
    found: set[int] = set()
    for part in value:
        every = 1
        if isinstance(part, str) and part.strip().isdecimal():
            first = last = int(part)
        elif isinstance(part, str) and (ends := _RANGE.fullmatch(part.strip())):
            first, last, every = int(ends[1]), int(ends[2]), int(ends[3] or 1)
        elif isinstance(part, int) and not isinstance(part, bool):
            first = last = part
        else:
            raise ConfigError(key, part, allowed)
        if not 0 <= first <= last <= NUMBER_LIMIT:
            raise ConfigError(key, part, allowed)
        found.update(range(first, last + 1, every))
    return tuple(sorted(found))


def _word(key: str, value: Any, allowed: tuple[str, ...], elsewhere: Mapping[str, str] | None = None) -> str:
    if isinstance(value, str) and value in allowed:
        return value
    hint = f" ({elsewhere[value]})" if elsewhere and isinstance(value, str) and value in elsewhere else ""
    raise ConfigError(key, value, ", ".join(allowed) + hint)


def _path(key: str, value: Any) -> str:
    if not isinstance(value, (str, os.PathLike)) or not os.fspath(value) or "\0" in str(value):
        raise ConfigError(key, value, "a path")
    return str(os.fspath(value))


def _flag(key: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise ConfigError(key, value, "true or false")
    return value


def _count(key: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or (value < 1 and value != -1):
        raise ConfigError(key, value, "a number above 0, or -1 for no limit")
    return value


def _gigabytes(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < float("inf"):
        raise ConfigError(key, value, "a number of GiB above 0")
    return float(value)


def _trigger(key: str, value: Any) -> Trigger:
    allowed = (
        'an object like {"loss": 10.0, "grad_norm": 100.0, "nan": true, "keep": 2, "steps": 1, "end": "after_nan"}'
    )
    if not isinstance(value, Mapping) or not all(name in _TRIGGER for name in value):
        raise ConfigError(key, value, allowed)
    found = Trigger(**{name: _TRIGGER[name](f"{key}.{name}", part) for name, part in value.items() if part is not None})
    if found.loss is None and found.grad_norm is None and not found.nan:
        raise ConfigError(key, value, f"at least one of loss, grad_norm and nan: {allowed}")
    return found


def _limit(key: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(key, value, "a number")
    return float(value)


def _from(least: int) -> Callable[[str, Any], int]:
    def check(key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ConfigError(key, value, f"a whole number from {least}")
        return value

    return check


_TRIGGER: Final[dict[str, Callable[[str, Any], Any]]] = {
    "loss": _limit, "grad_norm": _limit, "nan": _flag, "keep": _from(0), "steps": _from(1),
    "end": lambda key, value: _word(key, value, ENDS),
}  # fmt: skip


def _texts(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, str) and part for part in value):
        raise ConfigError(key, value, "a list of texts")
    return tuple(value)


def _text(key: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise ConfigError(key, value, "a text")
    return value


def _slices(key: str, value: Any) -> tuple[Slice, ...]:
    allowed = 'a list of objects like {"dim": 0, "size": 512, "begin": 0, "end": 128}, with dim and size from 0'
    if not isinstance(value, (list, tuple)):
        raise ConfigError(key, value, allowed)
    found = []
    for part in value:
        if not isinstance(part, Mapping) or not all(name in Slice._fields for name in part):
            raise ConfigError(key, part, allowed)
        given = {name: number for name, number in part.items() if number is not None}
        if (
            any(type(number) is not int for number in given.values())
            or min(given.get("dim", 0), given.get("size", 0)) < 0
        ):
            raise ConfigError(key, dict(part), allowed)
        if given:
            found.append(Slice(**given))
    return tuple(found)


def patterns(key: str, value: Any) -> tuple[str, ...]:
    """A list of names or patterns of calls. Raises ConfigError."""
    found = _texts(key, value)
    for pattern in found:
        try:
            check_pattern(pattern)
        except InterventionError as error:
            raise ConfigError(key, pattern, str(error)) from None
    return found


def _data_mode(key: str, value: Any) -> tuple[str, ...]:
    words = _texts(key, value) or ("all",)
    for word in words:
        _word(key, word, DATA_MODES)
    if ("all" in words and len(words) > 1) or len(words) > MODES_LIMIT:
        raise ConfigError(key, list(words), '["all"], or any of the other words')
    return words


def _check_scope(config: Config) -> None:
    if not config.scope:
        return
    if len(config.scope) != 2:
        raise ConfigError("scope", list(config.scope), "an empty list, or the first and the last node name")
    kinds = [("module" if _MODULE.fullmatch(name) else "api" if _API.fullmatch(name) else "") for name in config.scope]
    wanted = {"L0": ("module",), "L1": ("api",), "L2": ("api",)}.get(config.level, ("api", "module"))
    for name, kind in zip(config.scope, kinds):
        if kind not in wanted:
            forms = {"module": "Module.path.Class.forward.0", "api": "Functional.relu.0.forward"}
            raise ConfigError(
                "scope",
                name,
                f"whole node names at level {config.level}, like " + " or ".join(forms[one] for one in wanted),
            )


_ON_SECONDS: Final = 0.5
_OFF_SECONDS: Final = 3.0


class ConfigWatcher:
    """Checks time and size of the config file, at most every 0.5 s while recording is on and every 3 s while it is off."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._last_mark = self._mark()
        self._last = time.monotonic()

    def has_changed(self, *, enabled: bool) -> bool:
        """Whether the file has changed since the last check."""
        now = time.monotonic()
        if now - self._last < (_ON_SECONDS if enabled else _OFF_SECONDS):
            return False
        self._last = now
        mark = self._mark()
        if mark == self._last_mark:
            return False
        self._last_mark = mark
        return True

    def _mark(self) -> tuple[int, int] | None:
        try:
            state = os.stat(self.path)
        except OSError:
            return None
        return state.st_mtime_ns, state.st_size
