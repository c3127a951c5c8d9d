"""Checks the environment when recording begins, and warns of known problems."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from dumpscope_capture.context import LOG, peek
from dumpscope_capture.device.environment import versions

PACKAGE = "dumpscope_capture"


def log_warnings() -> None:
    """Log warnings, and with torch_npu the versions."""
    for warning in warnings():
        LOG.warning("%s", warning)
    if "torch_npu" in sys.modules:
        LOG.info("versions: %s", ", ".join(f"{name} {version}" for name, version in versions().items()))


def warnings() -> Iterator[str]:
    """Known problems: cause and remedy."""
    yield from shadows(sys.path)
    if "ptdbg_ascend" in sys.modules and not _is_ours("ptdbg_ascend"):
        yield (
            "ptdbg_ascend is imported as well: it replaces functions of torch, and each call would be recorded by both. "
            "Import dumpscope_capture.ptdbg instead of it"
        )
    if os.environ.get("NPU_ASD_ENABLE", "0") != "0":
        yield (
            "NPU_ASD_ENABLE is set: the device's own watch on gradients interferes with what is read in backward. "
            "Unset it, or set it to 0, while dumping"
        )
    npu = sys.modules.get("torch_npu")
    if npu is not None:
        yield from _version_mismatch(str(peek(npu, "__version__") or ""))


def _is_ours(name: str) -> bool:
    """Whether an imported package is this one under an old name (`run --as`)."""
    spec = getattr(sys.modules[name], "__spec__", None)
    return type(getattr(spec, "loader", None)).__module__.split(".")[0] == PACKAGE


def shadows(places: list[str]) -> Iterator[str]:
    """Warn of another copy of this package on the import path, which another process may find first. One of the same content does
    no harm: dumpscope brings a copy beside dumpscope-capture's."""
    own = Path(__file__).resolve().parents[1]
    for place in places:
        other = Path(place or os.curdir, PACKAGE)
        if (other / "__init__.py").is_file() and other.resolve() != own and _sources(other) != _sources(own):
            yield (
                f"there are two copies of {PACKAGE}: {own} is in use, and {other.resolve()} is on the import path too. "
                "Remove one from PYTHONPATH, or install dumpscope and dumpscope-capture of one version"
            )


def _sources(package: Path) -> dict[Path, bytes]:
    return {path.relative_to(package): path.read_bytes() for path in package.rglob("*.py")}


def _version_mismatch(version: str) -> Iterator[str]:
    """Warn of torch_npu for another minor version of torch, which fails late, often with HCCL's EI0006."""
    own: Any = torch.__version__.split("+")[0].split(".")[:2]
    if version and version.split("+", maxsplit=1)[0].split(".")[:2] != own:
        yield (
            f"torch_npu {version} is not made for torch {torch.__version__}: install torch_npu {'.'.join(own)}.x, with the "
            "CANN and driver its release notes name"
        )
