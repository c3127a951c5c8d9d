"""Results of the pre-check as tables: msprobe's columns, names and order, then ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

SKIPPED: Final = frozenset((
    "to", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "empty_with_format",
))  # fmt: skip
"""Calls whose result msprobe never judges."""

RESULT_COLUMNS: Final = ("API name", "Forward Test Success", "Backward Test Success", "Message")
OUR_RESULT_COLUMNS: Final = ("Step", "Rank", "Verdict", "Recorded Verdict", "Inputs", "Reason")
METRICS: Final = {
    "余弦相似度": "cosine",
    "最大绝对误差": "max_abs",
    "双百指标": "hundredth",
    "双千指标": "thousandth",
    "双万指标": "ten_thousandth",
    "二进制一致错误率": "unequal",
    "误差均衡性": "balance",
    "均方根误差": "rmse",
    "小值域错误占比": "small_share",
    "相对误差最大值": "max_rel",
    "相对误差平均值": "mean_rel",
    "inf/nan错误率": "nonfinite",
    "相对误差错误率": "rel_share",
    "绝对误差错误率": "abs_share",
    "ULP误差最大值": "ulp_max",
    "ULP误差平均值": "ulp_mean",
    "ULP误差大于阈值占比": "ulp_share",
}
"""Titles of the measures in the details table."""
DETAIL_COLUMNS: Final = ("API Name", "Bench Dtype", "DEVICE Dtype", "Shape", *METRICS, "Status", "Message")
OUR_DETAIL_COLUMNS: Final = ("Step", "Rank", "Item", "Verdict", "Units", "Recorded Verdict", "Reason")
_GRAVITY: Final = ("", "SKIP", "pass", "warning", "error")

Row = dict[str, Any]


def result_row(found: Mapping[str, Any]) -> Row:
    """One call. found: a worker's answer, or {"name", "refused"}, or {"name", "crash"}; with step and rank."""
    place = {"Step": found["step"], "Rank": found["rank"]}
    if "refused" in found or "crash" in found:
        said = str(found.get("refused") or found["crash"])
        crashed = "crash" in found
        return {
            "API name": found["name"],
            "Forward Test Success": "error" if crashed else "SKIP",
            "Backward Test Success": "error" if crashed else "SKIP",
            "Message": said,
            **place,
            "Verdict": "crash" if crashed else "SKIP",
            "Recorded Verdict": "SKIP",
            "Inputs": "",
            "Reason": said,
        }
    forward, backward = (
        _worst([row["status"] for row in found["details"] if row["direction"] == direction])
        for direction in ("forward", "backward")
    )
    message = found["error"]
    if message or found["name"].split(".")[1] in SKIPPED:
        forward = backward = "SKIP"
        message = message or "its result is chosen by its arguments or by memory: not judged"
    return {
        "API name": found["name"],
        "Forward Test Success": forward or "SKIP",
        "Backward Test Success": backward,
        "Message": message,
        **place,
        "Verdict": found["verdict"],
        "Recorded Verdict": found["recorded"],
        "Inputs": "made up" if found["made_up"] else "recorded",
        "Reason": _reason(found),
    }


def detail_rows(found: Mapping[str, Any]) -> list[Row]:
    """One row a result of a call."""
    rows = []
    for row in found.get("details", ()):
        judged, recorded = found["here"].get(row["item"]), found["in_dump"].get(row["item"])
        rows.append(
            {
                "API Name": f"{found['name']}.{row['direction']}.output.{row['place']}",
                "Bench Dtype": row["bench_dtype"],
                "DEVICE Dtype": row["device_dtype"],
                "Shape": row["shape"],
                **{title: _cell(row.get(key)) for title, key in METRICS.items()},
                "Status": row["status"],
                "Message": row["message"],
                "Step": found["step"],
                "Rank": found["rank"],
                "Item": row["item"],
                "Verdict": judged["verdict"] if judged else "",
                "Units": _cell(judged["units"]) if judged else "",
                "Recorded Verdict": recorded["verdict"] if recorded else "",
                "Reason": judged["reason"] if judged else "",
            }
        )
    return rows


def counts(rows: Sequence[Row], column: str) -> dict[str, int]:
    """How many rows have which verdict."""
    found: dict[str, int] = {}
    for row in rows:
        found[row[column]] = found.get(row[column], 0) + 1
    return found


def _worst(statuses: Sequence[str]) -> str:
    return max(statuses, key=_GRAVITY.index, default="")


def _reason(found: Mapping[str, Any]) -> str:
    if found["error"]:
        return str(found["error"])
    for where, judged in (("here", found["here"]), ("in the dump", found["in_dump"])):
        for item, one in judged.items():
            if one["verdict"] in ("error", "warning"):
                return f"{where}, {item}: {one['reason']}"
    return str(found["said"][0])


def _cell(value: Any) -> Any:
    """14 decimals, as msprobe writes them."""
    return "" if value is None else value if isinstance(value, str) else f"{float(value):.14f}"
