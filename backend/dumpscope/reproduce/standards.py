"""Two devices' results of the pre-check against each other: standards and columns of msprobe's second stage, then ours.

A row is one of the details table, its cells as text; the first device is the one in doubt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from dumpscope.reproduce.tables import METRICS, Row

Cells = Mapping[str, str]

BENCHMARK, ULP, BINARY, ABSOLUTE = "标杆比对法", "ULP误差比对法", "二进制一致法", "绝对阈值法"

_TITLES: Final = {key: title for title, key in METRICS.items()}
_RATIOS: Final = {
    "small_share": ("小值域错误比值", "小值域判定结果"),
    "rmse": ("均方根误差比值", "均方根误差判定结果"),
    "max_rel": ("相对误差最大值比值", "相对误差最大值判定结果"),
    "mean_rel": ("相对误差平均值比值", "相对误差平均值判定结果"),
    "balance": ("误差均衡性比值", "误差均衡性判定结果"),
}
_RATES: Final = {
    "nonfinite": (_TITLES["nonfinite"], "inf/nan判定结果"),
    "rel_share": (_TITLES["rel_share"], "相对误差判定结果"),
    "abs_share": (_TITLES["abs_share"], "绝对误差判定结果"),
}
_UNEQUAL: Final = (_TITLES["unequal"], "二进制一致错误率判定结果")
_ULP: Final = (_TITLES["ulp_mean"], _TITLES["ulp_share"], "ULP误差大于阈值占比比值", "ULP误差判定结果")
_THOUSANDTH: Final = (_TITLES["thousandth"], "双千指标判定结果")
_RESULT, _ALGORITHM, _MESSAGE = "比对结果", "比对算法", "Message"
NAME, DTYPE, SHAPE = "API Name", "DEVICE Dtype", "Shape"

COMPARED_DETAILS: Final = (
    NAME, *(title for pair in (*_RATIOS.values(), *_RATES.values(), _UNEQUAL) for title in pair),
    *_ULP, *_THOUSANDTH, _RESULT, _ALGORITHM, _MESSAGE,
)  # fmt: skip
"""msprobe's columns; those of the thousandth standard stay empty, which its release 26.2.0 chooses for nothing."""
OUR_COMPARED_DETAILS: Final = ("Step", "Rank", "Verdict", "Units", "Other Units", "Reason")
COMPARED_RESULTS: Final = (NAME, "Forward Test Success", "Backward Test Success", _MESSAGE)
OUR_COMPARED_RESULTS: Final = ("Step", "Rank", "Verdict", "Reason")
REQUIRED: Final = (
    NAME, DTYPE, *(_TITLES[key] for key in (*_RATIOS, *_RATES, "unequal", "ulp_mean", "ulp_share", "thousandth")),
)  # fmt: skip
"""Columns without which a table cannot be compared."""

_LEVELS: Final = {
    **dict.fromkeys(("embedding", "npu_fusion_attention", "npu_fusion_attention_grad", "scatter_", "scatter_add_"), 1),
    **dict.fromkeys((
        "addmm", "npu_cross_entropy_loss", "npu_cross_entropy_loss_backward", "GELU", "layer_norm", "matmul", "mm",
        "index", "one_hot", "sum", "npu_rms_norm", "npu_rms_norm_backward", "nonzero",
    ), 2),
}  # fmt: skip
_LIMITS: Final = {"max_rel": (10.0, 5.0, 2.0), "mean_rel": (2.0, 1.5, 1.2), "rmse": (2.0, 1.5, 1.2)}
"""Largest ratio by the level of the operator; of small values and balance always 2."""
_SMALLEST: Final = {"torch.float16": 2.0**-11, "torch.bfloat16": 2.0**-8}
_COUNTED: Final = ("small_share", "rmse", "max_rel", "mean_rel")
_BY_RATIO: Final = ("torch.float16", "torch.bfloat16", "torch.float32")
_UNJUDGED: Final = ("torch.float64", "torch.complex64", "torch.complex128")
ULP_SHARE: Final = 1e-3
ALIKE: Final = 2.0
"""A device is no worse than another while its error is at most so many times as large."""

_GRAVITY: Final = ("", "SKIP", "pass", "warning", "error", "crash")


def compared(mine: Cells, other: Cells | None) -> Row:
    """The row of the second stage for one result. other: None where the other device has no such row."""
    made: Row = dict.fromkeys((*COMPARED_DETAILS, *OUR_COMPARED_DETAILS), "")
    made.update({NAME: mine[NAME], "Step": mine.get("Step", ""), "Rank": mine.get("Rank", "")})
    if other is None:
        return {**made, _RESULT: "SKIP", _MESSAGE: "the other table has no such row", "Verdict": "SKIP"}
    return {**made, **_judged(mine, other), **_ours(mine, other)}


def unmatched(other: Cells) -> Row:
    """The row of a result that only the other device has."""
    made: Row = dict.fromkeys((*COMPARED_DETAILS, *OUR_COMPARED_DETAILS), "")
    place = {"Step": other.get("Step", ""), "Rank": other.get("Rank", "")}
    said = {_RESULT: "SKIP", _MESSAGE: "only the other table has this row", "Verdict": "SKIP"}
    return {**made, NAME: other[NAME], **place, **said}


def results(rows: Sequence[Row]) -> list[Row]:
    """One row a call of the rows of its results."""
    calls: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        calls.setdefault((_call(row[NAME])[0], row["Step"], row["Rank"]), []).append(row)
    return [_result(key, found) for key, found in calls.items()]


def with_crashes(calls: Sequence[Row], alone: Sequence[Cells]) -> list[Row]:
    """Calls of the comparison with those that ended their process on the device in doubt, of which no result is left."""
    found = {(row[NAME], row["Step"], row["Rank"]): row for row in calls}
    for row in alone:
        if row["Verdict"] == "crash":
            named = {**row, NAME: row["API name"]}
            kept = {column: named[column] for column in (*COMPARED_RESULTS, *OUR_COMPARED_RESULTS)}
            found[row["API name"], row["Step"], row["Rank"]] = kept
    return list(found.values())


def _result(key: tuple[Any, ...], rows: Sequence[Row]) -> Row:
    sides: dict[str, list[str]] = {"forward": [], "backward": []}
    for row in rows:
        sides[_call(row[NAME])[1]].append(row[_RESULT])
    forward, backward = (max(found, key=_GRAVITY.index, default="") for found in sides.values())
    worst = max(rows, key=lambda row: _GRAVITY.index(row["Verdict"]))
    said = next((row[_MESSAGE] for row in rows if row[_RESULT] in ("error", "SKIP") and row[_MESSAGE]), "")
    name, step, rank = key
    return {
        NAME: name,
        "Forward Test Success": forward,
        "Backward Test Success": backward,
        "Message": said,
        "Step": step,
        "Rank": rank,
        "Verdict": worst["Verdict"],
        "Reason": worst["Reason"],
    }


def _judged(mine: Cells, other: Cells) -> Row:
    """msprobe's columns."""
    dtype, theirs = mine[DTYPE].strip(), other[DTYPE].strip()
    if not dtype or dtype in _UNJUDGED or mine.get(SHAPE, "").strip() == "(0,)":
        why = f"{dtype} is not compared by ratios" if dtype else mine.get(_MESSAGE, "")
        return {_RESULT: "SKIP", _MESSAGE: why or "nothing to compare"}
    if theirs and theirs != dtype:
        return {_RESULT: "error", _MESSAGE: f"the types differ: {dtype} and {theirs}"}
    if dtype in _BY_RATIO:
        return _by_rates(mine) if _narrow_inputs(mine) else _by_ratios(mine, other, dtype)
    return _by_share(mine) if "float8" in dtype or "hifloat8" in dtype else _by_bits(mine)


def _by_ratios(mine: Cells, other: Cells, dtype: str) -> Row:
    level = _LEVELS.get(_api(mine[NAME]), 0)
    made: Row = {_ALGORITHM: BENCHMARK}
    wrong, said = [], []
    for key, (title, status) in _RATIOS.items():
        ours, theirs = _number(mine, key), _number(other, key)
        ratio, fine = abs(ours) / max(abs(theirs), _SMALLEST.get(dtype, 2.0**-14)), True
        if not (math.isfinite(ours) and math.isfinite(theirs)):
            ratio, fine = math.nan, ours == theirs or (math.isnan(ours) and math.isnan(theirs))
        limit = _LIMITS[key][level] if key in _LIMITS else 2.0
        fine = fine and not ratio > limit
        made[title], made[status] = f"{ratio:.14f}", "pass" if fine else "error"
        if not fine and key in _COUNTED:
            wrong.append(key)
            said.append(f"{key}: {ours:.6g} against {theirs:.6g}, ratio {ratio:.6g}, allowed {limit:g}")
    return {**made, _RESULT: "error" if wrong else "pass", _MESSAGE: "; ".join(said)}


def _by_rates(mine: Cells) -> Row:
    made: Row = {_ALGORITHM: ABSOLUTE}
    rates = {key: _number(mine, key) for key in _RATES}
    for key, (title, status) in _RATES.items():
        made[title], made[status] = f"{rates[key]:.14f}", "error" if rates[key] else "pass"
    wrong = [f"{key} is {rate:.6g}, not 0" for key, rate in rates.items() if rate]
    return {**made, _RESULT: "error" if wrong else "pass", _MESSAGE: "; ".join(wrong)}


def _by_share(mine: Cells) -> Row:
    share = _number(mine, "ulp_share")
    word = "pass" if share < ULP_SHARE else "error"
    said = "" if word == "pass" else f"ulp_share is {share:.6g}, allowed below {ULP_SHARE:g}"
    return {_ALGORITHM: ULP, _ULP[1]: f"{share:.14f}", _ULP[3]: word, _RESULT: word, _MESSAGE: said}


def _by_bits(mine: Cells) -> Row:
    rate = _number(mine, "unequal")
    word = "error" if rate else "pass"
    said = f"{rate:.6g} of the elements differ" if rate else ""
    return {_ALGORITHM: BINARY, _UNEQUAL[0]: f"{rate:.14f}", _UNEQUAL[1]: word, _RESULT: word, _MESSAGE: said}


def _ours(mine: Cells, other: Cells) -> Row:
    """Our verdict: that of the device alone, taken back where the other device is as far off. Empty for tables of msprobe."""
    verdict = mine.get("Verdict", "")
    units, theirs = mine.get("Units", ""), other.get("Units", "")
    made = {"Verdict": verdict, "Units": units, "Other Units": theirs, "Reason": mine.get("Reason", "")}
    if verdict not in ("warning", "error"):
        return made
    if other.get("Verdict") == verdict and units and theirs and float(units) <= ALIKE * float(theirs):
        return {**made, "Verdict": "pass", "Reason": f"the other device is as far off: {made['Reason']}"}
    return made


def _narrow_inputs(mine: Cells) -> bool:
    """Whether a table of msprobe means a call of fp8 inputs: it fills this column for no other floating result."""
    return "Verdict" not in mine and bool(mine[_TITLES["rel_share"]].strip())


def _number(row: Cells, key: str) -> float:
    """A cell; an empty one counts as 0, as it does there."""
    text = row[_TITLES[key]].strip()
    return float(text) if text else 0.0


def _call(name: str) -> tuple[str, str]:
    """`Functional.linear.0.forward.output.1`: the call and the direction."""
    call, _, _ = name.rpartition(".output.")
    stem, _, direction = call.rpartition(".")
    return stem, direction if direction in ("forward", "backward") else "forward"


def _api(name: str) -> str:
    """Bare name of the operator, with the namespace where there is one (`Aten._fused.x.0`)."""
    return ".".join(_call(name)[0].split(".")[1:-1])
