"""The combinations in which a call is run: device, dtype, layout, storage format, order of sums, and values of its scalars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import torch

from dumpscope_capture.replay.arguments import PLAIN_FORMAT, Case, lies_otherwise, tensor_specs

RECORDED: Final = "recorded"
FACTORS: Final = ("device", "dtype", "layout", "storage", "deterministic")


@dataclass(frozen=True)
class Combination:
    """One combination. values: texts of scalars by name, "recorded" for the call's own value"""

    case: Case
    values: Mapping[str, str] = field(default_factory=dict)

    def factors(self) -> dict[str, Any]:
        """Its factors, by which combinations differ."""
        case = asdict(self.case)
        return {**{key: case[key] for key in FACTORS}, **self.values}

    def options(self) -> list[str]:
        """Options of the script that run it."""
        case = self.case
        words = [
            f"--device={case.device}", f"--dtype={case.dtype}", f"--layout={case.layout}",
            f"--storage-format={case.storage}", f"--seed={case.seed}",
        ]  # fmt: skip
        words += ["--deterministic"] if case.deterministic else []
        return words + [f"--{name}={text}" for name, text in self.values.items() if text != RECORDED]


def devices() -> list[str]:
    """The CPU and the accelerators of this machine."""
    found = ["cpu"]
    for kind in ("cuda", "npu", "xpu", "mps"):
        module = getattr(torch, kind, None)
        if module is not None and module.is_available():
            found.append(kind)
    return found


def combinations(
    call: dict[str, Any], base: Case, on: Sequence[str], scalars: Mapping[str, Sequence[str]]
) -> list[Combination]:
    """All combinations. scalars: more values of scalars, by name.

    The storage format is a factor on an NPU, if a tensor had another than the plain one."""
    specs = list(tensor_specs([call["args"], call["kwargs"]]))
    floats = {spec["dtype"] for spec in specs if spec["dtype"].startswith(("float", "bfloat"))}
    types = [RECORDED, *(one for one in ("float32", "float64") if floats and floats != {one})]
    layouts = [RECORDED, "contiguous"] if any(map(lies_otherwise, specs)) else [RECORDED]
    special = any(spec.get("format") not in (None, PLAIN_FORMAT) for spec in specs)
    values: list[dict[str, str]] = [{}]
    for name, texts in scalars.items():
        values = [{**one, name: text} for one in values for text in (RECORDED, *texts)]
    return [
        Combination(
            case=Case(device=device, dtype=dtype, layout=layout, storage=storage, deterministic=fixed, seed=base.seed),
            values=chosen,
        )
        for device in on
        for storage in ((RECORDED, "nd") if special and device.split(":")[0] == "npu" else (RECORDED,))
        for dtype in types
        for layout in layouts
        for fixed in (False, True)
        for chosen in values
    ]
