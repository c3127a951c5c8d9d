"""Where a planted fault really shows, read from two msprobe dumps with the same calls. Needs torch, nothing of dumpscope.

Deviations are in floors (docs/verdicts.md: relative L2 1e-4 and peak 1e-3 for float32, 1e-2 and 2^-5 for bfloat16), 0 where
the bytes or all four statistics agree, infinite where one side is not finite and the other is.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

FLOORS = {"float32": (1e-4, 1e-3), "bfloat16": (1e-2, 2.0**-5), "autocast": (1e-2, 2.0**-5)}
STORED = ("Max", "Min", "Mean", "Norm", "md5")
GIVEN = ("input_args", "input_kwargs")
ABOVE_NOISE = 5.0
"""A fault rises above the noise where its deviation is this many times what healthy noisy runs show at the same node."""
ROUNDED = {"tensor": 0.6, "statistics": 0.25, "md5": 0.25, "xor": 0.25}
"""What rounding makes of 16-bit numbers, in floors, by task: one more of every element is 0.2, another rounding of the largest is
0.25 of the peak floor; of tensors, where every element is seen, another rounding of all is 0.6."""
ROUNDING = 0.005
"""Statistics that differ by less, in floors, differ by the order of summation only (a permutation of rows)."""

HASHED = 1e-9
"""Deviation, in floors, where the hashes differ and no statistic shows it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """first: first node, in the order of the file, whose inputs all agree and an output does not, and its deviation
    first_bit: first node of which any stored digit differs; first_any: the same but for what the order of a sum makes;
        first_call: the same without parameter gradients (they fire before the backward of their module is recorded)
    argument: first call that got another argument
    owner_in, owner_out: deviations at the call that owns the kernel (None where it is not dumped or has none)
    modules: dumped modules around the owner, innermost first, that differ
    twins: nodes that received the very tensor by which `first_call` is seen to differ: it was made before all of them
    """

    step: int
    first: str
    first_bit: str
    first_out: float
    first_any: str
    first_call: str
    argument: str
    owner_in: float | None
    owner_out: float | None
    modules: tuple[str, ...]
    twins: tuple[str, ...]
    differing: int


def ranks(path: Path) -> list[Path]:
    """dump.json's folders of all steps, in order."""
    return sorted((one.parent for one in path.glob("dump/step*/*/dump.json")), key=lambda one: one.parent.name)


def seen(golden: Path, target: Path, dtype: str, owner: str, step: int, chain: list[str], at: str = "") -> Seen:
    """Compare one step's dumps. chain: modules around the owner; at: look at this node instead of the first that differs."""
    left, right = ranks(golden)[step], ranks(target)[step]
    rows = deviations(left, right, dtype)
    first = next((name for name, (came, went) in rows.items() if not came and went), "")
    if at:
        first = at
    any_ = next((name for name, (came, went) in rows.items() if came or went), "")
    call = next((name for name, (came, went) in rows.items() if (came or went) and "parameters_grad" not in name), "")
    came, went = rows.get(owner, (None, None))
    return Seen(
        step=step, first=first, first_bit=_first_bit(left, right), first_out=rows[first][1] or 0.0 if first in rows else 0.0,
        first_any=any_, first_call=call, argument=_argument(left, right),
        owner_in=came, owner_out=went, modules=tuple(name for name in chain if rows.get(name, (0, 0))[1]),
        twins=_twins(right, call), differing=sum(1 for came, went in rows.values() if came or went),
    )  # fmt: skip


def _first_bit(golden: Path, target: Path) -> str:
    """First node of which any digit of any statistic, or a hash, differs."""
    left = json.loads((golden / "dump.json").read_text())["data"]
    right = json.loads((target / "dump.json").read_text())["data"]
    for name, node in right.items():
        for place, leaf in _leaves(node) if name in left else ():
            other = _at(left[name], place)
            if isinstance(other, dict) and any(str(leaf.get(key)) != str(other.get(key)) for key in STORED):
                return name
    return ""


def around(golden: Path, owner: str, step: int) -> list[str]:
    """Modules around a call, innermost first, by the dump's construct.json."""
    parents = json.loads((ranks(golden)[step] / "construct.json").read_text())
    out = []
    name = parents.get(owner)
    while isinstance(name, str) and name not in out:
        out.append(name)
        name = parents.get(name)
    return out


def deviations(golden: Path, target: Path, dtype: str) -> dict[str, tuple[float | None, float | None]]:
    """Worst (input, output) deviation of every node that both dumps hold; None where it has no such tensor."""
    left = json.loads((golden / "dump.json").read_text())["data"]
    right = json.loads((target / "dump.json").read_text())["data"]
    out: dict[str, tuple[float | None, float | None]] = {}
    for name, node in right.items():
        if name not in left:
            continue
        came: list[float] = []
        went: list[float] = []
        for place, leaf in _leaves(node):
            other = _at(left[name], place)
            if isinstance(other, dict) and other.get("type") == "torch.Tensor":
                given = place[0] in ("input_args", "input_kwargs", "parameters") or (
                    place[0] == "input" and name.split(".")[-1] != "forward"
                )
                (came if given else went).append(_deviation(golden, target, leaf, other, dtype))
        out[name] = (max(came) if came else None, max(went) if went else None)
    return out


def _twins(target: Path, call: str) -> tuple[str, ...]:
    """Backward nodes that received the same gradients as this one."""
    data = json.loads((target / "dump.json").read_text())["data"]
    if ".backward" not in call:
        return ()
    mine = [_content(leaf) for place, leaf in _leaves(data[call]) if place[0] == "input"]
    same = [
        name
        for name, node in data.items()
        if ".backward" in name and [_content(leaf) for place, leaf in _leaves(node) if place[0] == "input"] == mine
    ]
    return tuple(same)


def _content(leaf: dict[str, Any]) -> tuple[Any, ...]:
    """What tells a tensor, whatever its view."""
    numbers = tuple(str(leaf.get(key)) for key in ("Max", "Min", "Mean", "Norm"))
    return (*numbers, leaf.get("md5") if leaf.get("Max") is None else None)


def _argument(golden: Path, target: Path) -> str:
    """First forward call whose numbers, texts and flags differ."""
    left = json.loads((golden / "dump.json").read_text())["data"]
    right = json.loads((target / "dump.json").read_text())["data"]
    for name, node in right.items():
        if name in left and any(_settings(node.get(key)) != _settings(left[name].get(key)) for key in GIVEN):
            return name
    return ""


def _settings(node: Any) -> Any:
    """A node's arguments without its tensors."""
    if isinstance(node, dict):
        return None if node.get("type") == "torch.Tensor" else {key: _settings(each) for key, each in node.items()}
    return [_settings(each) for each in node] if isinstance(node, list) else node


def _leaves(node: Any, place: tuple[Any, ...] = ()) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
    if isinstance(node, dict):
        if node.get("type") == "torch.Tensor":
            return [(place, node)]
        return [leaf for key, each in node.items() for leaf in _leaves(each, (*place, key))]
    if isinstance(node, list):
        return [leaf for key, each in enumerate(node) for leaf in _leaves(each, (*place, key))]
    return []


def _at(node: Any, place: tuple[Any, ...]) -> Any:
    for key in place:
        try:
            node = node[key]
        except (KeyError, IndexError, TypeError):
            return None
    return node


def _deviation(golden: Path, target: Path, leaf: dict[str, Any], other: dict[str, Any], dtype: str) -> float:
    name, rival = leaf.get("data_name"), other.get("data_name")
    if name and rival:
        left, right = golden / "dump_tensor_data" / rival, target / "dump_tensor_data" / name
        if left.read_bytes() == right.read_bytes():
            return 0.0
        return _distance(torch.load(left).detach(), torch.load(right).detach(), dtype)
    hashes = leaf.get("md5"), other.get("md5")
    if None not in hashes and leaf.get("Max") is None:
        return 0.0 if hashes[0] == hashes[1] else math.inf
    score = _statistics(leaf, other, dtype)
    return max(score, HASHED) if None not in hashes and hashes[0] != hashes[1] else score


def _distance(left: torch.Tensor, right: torch.Tensor, dtype: str) -> float:
    if left.shape != right.shape:
        return math.inf
    if not left.is_floating_point():
        return 0.0 if torch.equal(left, right) else math.inf
    bulk, peak = FLOORS[dtype]
    a, b = left.double(), right.double()
    if not torch.equal(a.isfinite(), b.isfinite()):
        return math.inf
    same = a.isfinite()
    a, b = a[same], b[same]
    if not a.numel() or torch.equal(a, b):
        return 0.0
    size = max(float(a.norm()), float(b.norm()))
    largest = max(float(a.abs().max()), float(b.abs().max()))
    return max(float((a - b).norm()) / size / bulk, float((a - b).abs().max()) / largest / peak, 1e-9)


def _statistics(leaf: dict[str, Any], other: dict[str, Any], dtype: str) -> float:
    bulk, peak = FLOORS[dtype]
    numbers = [(_number(leaf.get(key)), _number(other.get(key))) for key in ("Max", "Min", "Mean", "Norm")]
    worst = 0.0
    (a, b), (c, d) = numbers[0], numbers[1]
    largest = max((abs(x) for x in (a, b, c, d) if x is not None and math.isfinite(x)), default=0.0)
    count = max(1, math.prod(leaf.get("shape", [1])))
    norms = [abs(x) for x in numbers[3] if x is not None and math.isfinite(x)]
    norm = max(norms, default=0.0)
    scales = (largest * peak, largest * peak, norm / math.sqrt(count) * bulk, norm * bulk)
    for (x, y), scale in zip(numbers, scales, strict=True):
        if x is None or y is None or x == y or (math.isnan(x) and math.isnan(y)):
            continue
        if not (math.isfinite(x) and math.isfinite(y)):
            worst = math.inf
            continue
        worst = max(worst, abs(x - y) / scale if scale else math.inf)
    return worst if worst > ROUNDING else 0.0


def _number(value: Any) -> float | None:
    if isinstance(value, bool):
        return float(value)
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, str):
        return float(value.replace("Nan", "nan").replace("Infinity", "inf"))
    return None


def accepted(entry: dict[str, Any]) -> tuple[list[str], bool]:
    """Nodes that may be named, and whether the fault shows at the call that owns the kernel."""
    seen = entry["seen"]
    if entry["cause"] == "healthy":
        return [], True
    if entry["cause"] == "structure":
        if entry["level"] != "L0":
            return [entry.get("inserted", "")], True
        return [name for name in dict.fromkeys([seen["first"], seen["first_call"], *seen["twins"]]) if name], False
    if entry["cause"] in ("weight", "input"):
        return [seen["first_any"]], True
    if entry["cause"] == "argument" and seen["argument"]:
        return [seen["argument"]], True
    owner = entry["owner"]
    if owner and owner.rpartition(".")[0] == entry["inserted"].rpartition(".")[0]:  # the other side has no such call
        return [owner, entry["inserted"]], True
    if seen["owner_out"] and not seen["owner_in"]:
        return list(dict.fromkeys([owner, seen["first"]])), True
    names = [
        owner,
        seen["first_bit"],
        seen["first"],
        seen["first_any"],
        seen["first_call"],
        *seen["modules"],
        *seen["twins"],
    ]
    return [name for name in dict.fromkeys(names) if name], False


def reach(entry: dict[str, Any], shows: bool) -> str:
    """How well the fault can be known from this kind of dump."""
    seen, floors = entry["seen"], entry["floors"]
    unseen = entry["cause"] == "structure" and entry["level"] == "L0"
    if entry["cause"] == "healthy" or (entry["cause"] == "structure" and not unseen) or seen["argument"]:
        return "clear"
    if not seen["differing"]:
        return "buried"
    if floors and entry["cause"] not in ("weight", "input"):
        place = "owner_out" if shows and entry["owner"] else "first_out"
        strength = seen[place] or 0.0
        if strength < ABOVE_NOISE * max(floor[place] or 0.0 for floor in floors):
            return "buried"
        if strength < 1:
            return "faint"
    elif not floors and entry["dtype"] != "float32" and entry["cause"] not in ("weight", "input"):
        strength = seen["owner_out" if shows and entry["owner"] else "first_out"] or 0.0
        if HASHED < strength <= ROUNDED[entry["task"]]:
            return "faint"
    return "clear" if shows else "hidden"
