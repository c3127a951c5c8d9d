"""The two dumpers that may record a run, as the planting of faults sees them. Nothing of the other is imported."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class Dumper:
    """skip: true while the dumper itself computes; hushed: it overlooks the calls made inside
    call_code, name_of: code that runs an API call, and the call's node name, told from its frame
    """

    debugger: Any
    skip: Callable[[], bool]
    hushed: Callable[[], AbstractContextManager[None]]
    call_code: CodeType
    name_of: Callable[[FrameType], str]


def configured(path: Path, *, task: str, level: str) -> str:
    """Write a config.json; returns its path. task: "tensor", "statistics", "md5" (with hashes) or "xor" (hashes alone)"""
    part: dict[str, Any] = {"scope": [], "list": [], "data_mode": ["all"]}
    kind = "tensor" if task == "tensor" else "statistics"
    if kind == "statistics":
        part["summary_mode"] = task
    config = {"task": kind, "dump_path": str(path / "dump"), "rank": [], "step": [], "level": level, kind: part}
    (path / "config.json").write_text(json.dumps(config))
    return str(path / "config.json")


def ours(config: str) -> Dumper:
    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415
    from dumpscope_capture.record.recording import Recording  # noqa: PLC0415

    return Dumper(
        debugger=PrecisionDebugger(config),
        skip=lambda: False,  # it leaves all modes before it computes
        hushed=torch._C.DisableTorchFunction,
        call_code=Recording.run.__code__,
        name_of=lambda frame: str(frame.f_locals["call"].name),
    )


def msprobes(config: str) -> Dumper:
    from msprobe.core.dump.hook_manager import BaseHookManager  # noqa: PLC0415
    from msprobe.pytorch import PrecisionDebugger  # noqa: PLC0415
    from msprobe.pytorch.dump.api_dump.hook_module import HOOKModule  # noqa: PLC0415

    thread = threading.get_ident()

    @contextmanager
    def hushed() -> Iterator[None]:
        BaseHookManager.inner_switch[thread] = True
        yield
        BaseHookManager.inner_switch[thread] = False

    return Dumper(
        debugger=PrecisionDebugger(config_path=config),
        skip=lambda: bool(BaseHookManager.inner_switch[thread]),
        hushed=hushed,
        call_code=HOOKModule._call_func.__code__,
        name_of=lambda frame: str(getattr(frame.f_locals["self"], "full_forward_name", "")),
    )


def prepare(dumper: str) -> None:
    """Import once what every forked child needs (an optimizer imports the compiler)."""
    import torch._dynamo  # noqa: F401, PLC0415

    if dumper == "ours":
        os.environ["DUMPSCOPE_LOG_LEVEL"] = "4"
        import dumpscope_capture  # noqa: F401, PLC0415

        return
    import msprobe.pytorch  # noqa: F401, PLC0415
    import yaml  # noqa: PLC0415

    # Every child reads msprobe's operator lists again; the compiled loader takes a tenth of the time.
    yaml.safe_load = lambda stream: yaml.load(stream, yaml.CSafeLoader)


DUMPERS: dict[str, Callable[[str], Dumper]] = {"ours": ours, "msprobe": msprobes}
