"""The pre-check's result for one node: a word, and the numbers behind it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

WORDS: Final = ("pass", "warning", "fail", "skip")
"""fail: the call gives a wrong result alone, or the dump holds one that is wrong for the call's own inputs."""
_GRAVITY: Final = ("SKIP", "pass", "warning", "error")
_LONGEST: Final = 2000

Number = float | str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The worst result of a node. verdict: pass, warning, error or SKIP; units: of what rounding the inputs does

    Numbers that are not finite are "nan", "inf", "-inf", absent ones None."""

    verdict: str
    item: str
    units: Number
    cosine: Number
    max_abs: Number
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Alone:
    """word: one of WORDS; here: as run alone on `device`, recorded: the dump's own result, both None where nothing was judged
    made_up: inputs whose numbers no dump holds; after_forward: a backward that may use a wrong recorded result of its forward
    reason: why nothing was judged, or how it broke off
    """

    word: str
    device: str
    here: Judged | None
    recorded: Judged | None
    made_up: bool
    after_forward: bool
    reason: str

    def document(self) -> dict[str, Any]:
        return asdict(self)


def results_of_line(found: Mapping[str, Any], device: str) -> dict[str, Alone]:
    """By node name what a line of precheck.jsonl says: of the forward, and of the backward where one was judged.

    Raises KeyError, TypeError or ValueError for what is no such line."""
    name = str(found["name"])
    for key, word in (("refused", "skip"), ("crash", "fail")):
        if key in found:
            made = Alone(
                word=word, device=device, here=None, recorded=None, made_up=False, after_forward=False,
                reason=_text(found[key]),
            )  # fmt: skip
            return {f"{name}.forward": made}
    sides = {
        direction: (_worst(found["here"], direction), _worst(found["in_dump"], direction))
        for direction in ("forward", "backward")
    }
    broke = found["verdict"] == "error" and bool(found["error"])
    wrong_forward = sides["forward"][1] is not None and sides["forward"][1].verdict == "error"
    made_by_node = {}
    for direction, (here, recorded) in sides.items():
        if direction == "backward" and here is None and recorded is None:
            continue
        made_by_node[f"{name}.{direction}"] = Alone(
            word="fail" if broke else _word(here, recorded),
            device=device,
            here=here,
            recorded=recorded,
            made_up=bool(found["made_up"]),
            after_forward=direction == "backward" and wrong_forward,
            reason=_text(found["error"] or ("" if here or recorded else "; ".join(map(str, found["said"][:1])))),
        )
    return made_by_node


def _word(here: Judged | None, recorded: Judged | None) -> str:
    verdict = max((one.verdict for one in (here, recorded) if one), key=_GRAVITY.index, default="SKIP")
    return {"error": "fail", "SKIP": "skip"}.get(verdict, verdict)


def _worst(items: Mapping[str, Any], direction: str) -> Judged | None:
    ours = {item: one for item, one in items.items() if item.startswith("gradient.") == (direction == "backward")}
    if not ours:
        return None
    item, one = max(ours.items(), key=lambda pair: (_GRAVITY.index(pair[1]["verdict"]), _size(pair[1].get("units"))))
    measures = one.get("measures") or {}
    return Judged(
        verdict=one["verdict"],
        item=_text(item),
        units=_real(one.get("units")),
        cosine=_real(measures.get("cosine")),
        max_abs=_real(measures.get("max_abs")),
        reason=_text(one["reason"]),
    )


def _size(value: Any) -> float:
    found = -1.0 if value is None else float(value)
    return math.inf if math.isnan(found) else found


def _real(value: Any) -> Number:
    if value is None:
        return None
    found = float(value)
    return found if math.isfinite(found) else "nan" if math.isnan(found) else "inf" if found > 0 else "-inf"


def _text(value: Any) -> str:
    return str(value)[:_LONGEST]
