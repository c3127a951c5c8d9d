"""Interventions: patterns of call names, and the treatments with which these calls run. As text and JSON.

    {"Functional.group_norm.*": "cpu", "Functional.linear.3-7": "float64", "Torch.add": {"alpha": 2}}

A pattern is matched against the name of a call without direction, `Functional.group_norm.3`:

    Functional.group_norm.3     that call           Functional.group_norm.3-7     a range with both ends
    Functional.group_norm       all of its calls    Functional.*norm*, Tensor.*   * and ? match any text and any character
    Functional.linear.0,2,5-7   a list of numbers
"""

from __future__ import annotations

import fnmatch
import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dumpscope_format.older_python import without_suffix

if TYPE_CHECKING:
    from typing import TypeAlias

VARIABLE: Final = "DUMPSCOPE_INTERVENE"
"""Environment variable: a JSON object of patterns and treatments, or the path of a file with one."""

REPORT_VARIABLE: Final = "DUMPSCOPE_INTERVENE_REPORT"
"""Environment variable: path of the JSON report written at the end of the process."""

WORDS: Final = ("cpu", "float32", "float64", "contiguous", "roundtrip", "format")
"""Treatments by name; several are joined with +, "cpu+float32"."""

Treatment: TypeAlias = "str | Mapping[str, Any]"
"""A word, words joined with +, or an object {argument: value} that changes scalars."""

_NUMBERS: Final = re.compile(r"(.+)\.([0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*)", re.DOTALL)
_LIMIT: Final = 10_000_000


class InterventionError(ValueError):
    """Invalid patterns or treatments, with what is allowed."""


def matches(pattern: str, name: str) -> bool:
    """Whether a pattern matches a call. name: `Functional.linear.3`, with or without its direction."""
    label, number = _split(name)
    wanted, numbers = _pattern(pattern)
    if numbers is not None:
        return number is not None and fnmatch.fnmatchcase(label, wanted) and any(a <= number <= b for a, b in numbers)
    whole = label if number is None else f"{label}.{number}"
    return fnmatch.fnmatchcase(whole, wanted) or fnmatch.fnmatchcase(label, wanted)


def is_single(pattern: str) -> bool:
    """Whether a pattern is the name of one call, `Functional.linear.3`."""
    label, number = _split(pattern)
    return number is not None and not any(sign in label for sign in "*?[")


def check(treatments: Mapping[str, Any]) -> dict[str, Treatment]:
    """Check an object read from JSON and return its treatments. Raises InterventionError."""
    if not isinstance(treatments, Mapping):
        raise InterventionError(f"{treatments!r} is no object of patterns and treatments")
    for pattern, treatment in treatments.items():
        if not isinstance(pattern, str) or not pattern:
            raise InterventionError(
                f"pattern {pattern!r}; allowed: a text like Functional.linear.* or Functional.linear.3-7"
            )
        check_pattern(pattern)
        words(treatment)
    return dict(treatments)


def check_pattern(pattern: str) -> None:
    """Raises InterventionError where a range runs backwards."""
    for first, last in _pattern(pattern)[1] or ():
        if not first <= last <= _LIMIT:
            raise InterventionError(f"pattern {pattern!r}: the range {first}-{last} is empty or beyond {_LIMIT}")


def words(treatment: Any) -> tuple[str, ...]:
    """Words of a treatment; empty for an object of scalars. Raises InterventionError."""
    if isinstance(treatment, Mapping):
        if treatment and all(isinstance(key, str) and isinstance(value, _PLAIN) for key, value in treatment.items()):
            return ()
        raise InterventionError(
            f'treatment {dict(treatment)!r}; allowed: an object of arguments and numbers, {{"eps": 0.001}}'
        )
    found = tuple(treatment.split("+")) if isinstance(treatment, str) else ()
    if not found or any(word not in WORDS for word in found):
        raise InterventionError(
            f"treatment {treatment!r}; allowed: {', '.join(WORDS)}, some of them joined with +, or an object"
        )
    if "float32" in found and "float64" in found:
        raise InterventionError(f"treatment {treatment!r} names two types")
    return found


def treatment_text(treatment: Treatment) -> str:
    """A treatment as a short text, for records and reports."""
    return (
        treatment if isinstance(treatment, str) else ", ".join(f"{key}={value!r}" for key, value in treatment.items())
    )


def parse(text: str) -> dict[str, Treatment]:
    """Treatments from JSON text, or from a file whose path is given. Raises InterventionError."""
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError, ValueError) as error:
            raise InterventionError(f"{VARIABLE} is neither a JSON object nor a readable file: {error}") from error
    try:
        return check(json.loads(text))
    except json.JSONDecodeError as error:
        raise InterventionError(f"{VARIABLE} is no JSON: {error}") from error


_PLAIN: Final = (bool, int, float, str, type(None))


@lru_cache(maxsize=4096)
def _pattern(pattern: str) -> tuple[str, tuple[tuple[int, int], ...] | None]:
    pattern = without_suffix(without_suffix(pattern, ".forward"), ".backward")
    found = _NUMBERS.fullmatch(pattern)
    if found is None:
        return pattern, None
    ends = [part.partition("-") for part in found[2].split(",")]
    return found[1], tuple((int(first), int(last or first)) for first, _, last in ends)


def _split(name: str) -> tuple[str, int | None]:
    label, _, number = without_suffix(without_suffix(name, ".forward"), ".backward").rpartition(".")
    return (label, int(number)) if label and number.isdecimal() else (f"{label}.{number}" if label else number, None)
