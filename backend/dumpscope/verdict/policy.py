"""Policies: what error a dtype is allowed, and which rule book turns numbers into Yes and No (docs/verdicts.md)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any, Final

import yaml

from dumpscope.errors import UsageError
from dumpscope.texts import say
from dumpscope.verdict.policy_patterns import compiled


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
"""Calls whose output is whatever lay in memory: never judged."""

RULE_BOOKS: Final = ("default", "ptdbg", "msprobe")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """base: rule book; warn: score up to which a difference is only a warning
    ignore: node names (regex, see `policy_patterns`) never judged
    scale: (regex, factor) pairs that widen the floors of matching nodes, first hit wins
    """

    name: str = "default"
    base: str = "default"
    floors: dict[str, Floor] = field(default_factory=lambda: dict(FLOORS))
    warn: float = 3.0
    ignore: tuple[str, ...] = ()
    scale: tuple[tuple[str, float], ...] = ()


_WRITTEN: Final = re.compile(r"[0-9]+([.][0-9]*)?[eE][+-]?[0-9]+")
"""What everybody means as a number and yaml 1.1 takes for text: 1e-4."""

FORMS: Final = (
    ("name", str, say("verdict.text")),
    ("base", str, say("verdict.name_rule_book")),
    ("floors", dict, "{dtype: {bulk: number, peak: number}}"),
    ("ignore", list, say("verdict.list_regular_expressions")),
    ("scale", dict, "{regular expression: factor}"),
)
"""Type of the values of a policy file, and how to say it."""


def load_policy(text: str) -> Policy:
    """A policy by name, or from the text of a yaml file: keys base, floors, warn, ignore, scale.

    Raises UsageError that names the key, the value and what is allowed.
    """
    if text in RULE_BOOKS:
        return Policy(name=text, base=text)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(say("verdict.policy_file_not_valid_yaml"), hint=str(error).splitlines()[0]) from error
    except (ValueError, RecursionError) as error:  # an impossible date, nesting without end
        raise UsageError(
            say("verdict.policy_file_cannot_read_yaml"), hint=say("verdict.see_docs_verdicts_md")
        ) from error
    if not isinstance(data, dict):
        raise UsageError(
            say("verdict.unknown_policy", text=f"{text!r}"),
            hint=say("verdict.allowed_yaml_file", names=", ".join(RULE_BOOKS)),
        )
    known = {"name", "base", "floors", "warn", "ignore", "scale"}
    for key in data:
        if key not in known:
            raise UsageError(
                say("verdict.policy_unknown_key", key=f"{key!r}"),
                hint=say("verdict.allowed", names=", ".join(sorted(known))),
            )
    for key, kind, form in FORMS:
        if not isinstance(data.get(key), kind | None):
            raise UsageError(
                say("verdict.policy_2", key=key, name=type(data[key]).__name__), hint=say("verdict.write", form=form)
            )
    base = data.get("base") or "default"
    if base not in RULE_BOOKS:
        raise UsageError(
            say("verdict.policy_base", base=f"{base!r}"), hint=say("verdict.allowed", names=", ".join(RULE_BOOKS))
        )
    policy = Policy(name=data.get("name") or "custom", base=base)
    return replace(
        policy,
        floors={**FLOORS, **_floors(data.get("floors") or {})},
        warn=_positive("warn", data.get("warn", policy.warn)),
        ignore=tuple(_pattern("ignore", x) for x in data.get("ignore") or ()),
        scale=tuple((_pattern("scale", k), _positive("scale", v)) for k, v in (data.get("scale") or {}).items()),
    )


def _floors(data: dict[str, Any]) -> dict[str, Floor]:
    floors = {}
    for dtype, body in data.items():
        name = dtype if str(dtype).startswith("torch.") else f"torch.{dtype}"
        if not isinstance(body, dict) or not {"bulk", "peak"} >= set(body):
            raise UsageError(say("verdict.policy_floors", dtype=dtype, body=_short(body)), hint=say("verdict.write_2"))
        old = FLOORS.get(name, FLOORS["torch.float32"])
        floors[name] = Floor(
            bulk=_positive(f"floors.{dtype}.bulk", body.get("bulk", old.bulk)),
            peak=_positive(f"floors.{dtype}.peak", body.get("peak", old.peak)),
        )
    return floors


def _positive(key: str, value: Any) -> float:
    if isinstance(value, str) and _WRITTEN.fullmatch(value):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(say("verdict.policy", key=key, value=_short(value)), hint=say("verdict.must_number_above_0"))
    return float(value)


def _short(value: Any) -> str:
    """A value in a message; what holds others is named only: a few aliases unfold to gigabytes."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict | set) else repr(value)[:200]


def _pattern(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(
            say("verdict.policy_holds", key=key, value=_short(value)), hint=say("verdict.write_regular_expression_text")
        )
    compiled(value, key)
    return value
