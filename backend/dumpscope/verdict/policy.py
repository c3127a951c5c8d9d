"""Policies: what error a dtype is allowed, and which rule book turns numbers into Yes and No (docs/verdicts.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import re2
import yaml

from dumpscope.errors import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Floor:
    """Error that a healthy run on other hardware may show, as a plain ratio.

    bulk: of the norm, of the mean scaled by norm/sqrt(N), and of the relative L2 distance
    peak: of the largest single element against the largest magnitude of the tensor
    """

    bulk: float
    peak: float


FLOORS: Final[dict[str, Floor]] = {
    "torch.float64": Floor(bulk=1e-9, peak=1e-8),
    "torch.complex128": Floor(bulk=1e-9, peak=1e-8),
    "torch.float32": Floor(bulk=1e-4, peak=1e-3),
    "torch.complex64": Floor(bulk=1e-4, peak=1e-3),
    "torch.float16": Floor(bulk=2e-3, peak=4 * 2.0**-10),
    "torch.bfloat16": Floor(bulk=1e-2, peak=4 * 2.0**-7),
    "torch.float8_e4m3fn": Floor(bulk=6e-2, peak=4 * 2.0**-3),
    "torch.float8_e4m3fnuz": Floor(bulk=6e-2, peak=4 * 2.0**-3),
    "torch.float8_e5m2": Floor(bulk=1.2e-1, peak=4 * 2.0**-2),
    "torch.float8_e5m2fnuz": Floor(bulk=1.2e-1, peak=4 * 2.0**-2),
}
"""Floors by dtype; dtypes that are not here (integers, bool) must be equal."""

TINY: Final = 1e-12
"""Near-zero guard: differences below this root-mean-square are rounding, whatever their ratio."""

UNINITIALISED: Final = frozenset(
    {"empty", "empty_like", "empty_strided", "empty_with_format", "new_empty", "new_empty_strided"}
)
"""Calls whose output is uninitialised memory: never judged."""

RULE_BOOKS: Final = ("default", "ptdbg", "msprobe")
_OPTIONS = re2.Options()
_OPTIONS.log_errors = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """base: rule book; warn: score up to which a difference is only a warning
    ignore: node names (regex, see `compile_pattern`) never judged
    scale: (regex, factor) pairs that widen the floors of matching nodes, first hit wins
    """

    name: str = "default"
    base: str = "default"
    floors: dict[str, Floor] = field(default_factory=lambda: dict(FLOORS))
    warn: float = 3.0
    ignore: tuple[str, ...] = ()
    scale: tuple[tuple[str, float], ...] = ()


_SCIENTIFIC: Final = re.compile(r"[0-9]+([.][0-9]*)?[eE][+-]?[0-9]+")
"""Numbers that yaml 1.1 reads as text: 1e-4."""

_VALUE_TYPES: Final = (
    ("name", str, "a text"),
    ("base", str, "the name of a rule book"),
    ("floors", dict, "{dtype: {bulk: number, peak: number}}"),
    ("ignore", list, "a list of regular expressions"),
    ("scale", dict, "{regular expression: factor}"),
)
"""Key of a policy file, type of its value, and its description in an error."""


def load_policy(text: str) -> Policy:
    """A policy by name, or from the text of a yaml file: keys base, floors, warn, ignore, scale.

    Raises UsageError that names the key, the value and what is allowed.
    """
    if text in RULE_BOOKS:
        return Policy(name=text, base=text)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError("the policy file is not valid yaml", hint=str(error).splitlines()[0]) from error
    except (ValueError, RecursionError) as error:  # an impossible date, nesting without end
        raise UsageError("the policy file cannot be read as yaml", hint="see docs/verdicts.md") from error
    if not isinstance(data, dict):
        raise UsageError(f"unknown policy {text!r}", hint=f"allowed: {', '.join(RULE_BOOKS)}, or a yaml file")
    known = {"name", "base", "floors", "warn", "ignore", "scale"}
    for key in data:
        if key not in known:
            raise UsageError(f"policy: unknown key {key!r}", hint=f"allowed: {', '.join(sorted(known))}")
    for key, kind, form in _VALUE_TYPES:
        if not isinstance(data.get(key), kind | None):
            raise UsageError(f"policy: {key} is a {type(data[key]).__name__}", hint=f"write {form}")
    base = data.get("base") or "default"
    if base not in RULE_BOOKS:
        raise UsageError(f"policy: base is {base!r}", hint=f"allowed: {', '.join(RULE_BOOKS)}")
    policy = Policy(name=data.get("name") or "custom", base=base)
    return replace(
        policy,
        floors={**FLOORS, **_read_floors(data.get("floors") or {})},
        warn=_read_positive("warn", data.get("warn", policy.warn)),
        ignore=tuple(_read_pattern("ignore", x) for x in data.get("ignore") or ()),
        scale=tuple(
            (_read_pattern("scale", k), _read_positive("scale", v)) for k, v in (data.get("scale") or {}).items()
        ),
    )


def _read_floors(data: dict[str, Any]) -> dict[str, Floor]:
    floors = {}
    for dtype, body in data.items():
        name = dtype if str(dtype).startswith("torch.") else f"torch.{dtype}"
        if not isinstance(body, dict) or not {"bulk", "peak"} >= set(body):
            raise UsageError(f"policy: floors.{dtype} is {_shorten(body)}", hint="write {bulk: number, peak: number}")
        old = FLOORS.get(name, FLOORS["torch.float32"])
        floors[name] = Floor(
            bulk=_read_positive(f"floors.{dtype}.bulk", body.get("bulk", old.bulk)),
            peak=_read_positive(f"floors.{dtype}.peak", body.get("peak", old.peak)),
        )
    return floors


def _read_positive(key: str, value: Any) -> float:
    if isinstance(value, str) and _SCIENTIFIC.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"policy: {key} is {_shorten(value)}", hint="it must be a number above 0")
    return float(value)


def _shorten(value: Any) -> str:
    """A value for a message; of a collection only the type, since a few yaml aliases unfold to gigabytes."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict | set) else repr(value)[:200]


def _read_pattern(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"policy: {key} holds {_shorten(value)}", hint="write a regular expression as text")
    compile_pattern(value, key)
    return value


def compile_pattern(pattern: str, where: str) -> Callable[[str], bool]:
    """A function that says whether a text holds the pattern somewhere. where: key that holds it, for the error.

    A user writes these, so they run in time linear in the text (RE2, no backtracking).
    Raises UsageError that names both for what is no regular expression, or one that cannot be run in linear time
    (backreferences, looking around).
    """
    try:
        search = re2.compile(pattern, _OPTIONS).search
    except (re2.error, UnicodeEncodeError) as error:
        why = error.args[0]
        raise UsageError(
            f"policy: {where} holds {pattern[:200]!r}, which cannot be used as a regular expression"
            f" ({why.decode('utf-8', 'replace') if isinstance(why, bytes) else error})",
            hint="write it in RE2's syntax, which has no backreferences and no (?=, (?!, (?<",
        ) from error
    return lambda text: search(text.encode("utf-8", "replace").decode()) is not None
