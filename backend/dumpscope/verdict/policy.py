"""Policies: what error a dtype is allowed, and which rule book turns numbers into Yes and No (docs/verdicts.md)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import re2

from dumpscope.errors import UsageError
from dumpscope.texts import say


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
    ("name", str, say("verdict.text")),
    ("base", str, say("verdict.name_rule_book")),
    ("floors", dict, "{dtype: {bulk: number, peak: number}}"),
    ("ignore", list, say("verdict.list_regular_expressions")),
    ("scale", dict, "{regular expression: factor}"),
)
"""Key of a policy file, type of its value, and its description in an error."""


def load_policy(text: str) -> Policy:
    """A policy by name, or from the text of a yaml file: keys base, floors, warn, ignore, scale.

    Raises UsageError that names the key, the value and what is allowed.
    """
    if text in RULE_BOOKS:
        return Policy(name=text, base=text)
    from dumpscope.yaml_text import YamlError, read_yaml  # noqa: PLC0415 (few comparisons need it)

    try:
        data = read_yaml(text, "policy")
    except YamlError as error:
        raise UsageError(say("verdict.policy_file_not_valid_yaml"), hint=str(error)[:200]) from error
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
    for key, kind, form in _VALUE_TYPES:
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
            raise UsageError(
                say("verdict.policy_floors", dtype=dtype, body=_shorten(body)), hint=say("verdict.write_2")
            )
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
        raise UsageError(say("verdict.policy", key=key, value=_shorten(value)), hint=say("verdict.must_number_above_0"))
    return float(value)


def _shorten(value: Any) -> str:
    """A value for a message; of a collection only the type, since a few yaml aliases unfold to gigabytes."""
    return f"a {type(value).__name__}" if isinstance(value, list | dict | set) else repr(value)[:200]


def _read_pattern(key: str, value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(
            say("verdict.policy_holds", key=key, value=_shorten(value)),
            hint=say("verdict.write_regular_expression_text"),
        )
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
            say(
                "verdict.policy_holds_which_cannot_used_regular",
                where=where,
                pattern=f"{pattern[:200]!r}",
                part=why.decode("utf-8", "replace") if isinstance(why, bytes) else error,
            ),
            hint=say("verdict.write_re2s_syntax_which_has_no"),
        ) from error
    return lambda text: search(text.encode("utf-8", "replace").decode()) is not None
