"""One run of a case: bare, captured, or counted; and what is kept of it to compare, by bytes.

A case calls `begin(model)` before each part of it that is recorded and `end()` after, and `keep...` for what it computed.
"""

from __future__ import annotations

import hashlib
import json
import logging
import pickle
import random
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

SEED = 1234


def seed(number: int = SEED) -> None:
    random.seed(number)
    np.random.seed(number)
    torch.manual_seed(number)


def digest(value: Any) -> str:
    """A hash of a value's bytes; of a tensor also its type, shape and strides. A shard stands for a sharded tensor."""
    if isinstance(value, torch.Tensor):
        local = value.to_local() if hasattr(value, "to_local") else value
        with torch.no_grad():
            copy = local.detach().clone(
                memory_format=torch.contiguous_format
            )  # a view by numpy would pin the live storage
        head = f"{copy.dtype} {tuple(local.shape)} {local.stride()} "
        return hashlib.md5(head.encode() + copy.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
    return hashlib.md5(pickle.dumps(value)).hexdigest()


class Run:
    """A bare run. kept: hashes by name, in the order in which they were kept"""

    def __init__(self, rank: int = 0, size: int = 1, folder: Path = Path(".")) -> None:
        self.rank = rank
        self.size = size
        self.folder = folder
        self.kept: dict[str, str] = {}
        self.part = 0

    def begin(self, *models: nn.Module) -> None:
        pass

    def end(self) -> None:
        self.part += 1
        self.keep("random torch", torch.get_rng_state())
        self.keep("random python", random.getstate())
        self.keep("random numpy", np.random.get_state())

    def close(self) -> dict[str, Any]:
        """What else the run found."""
        return {}

    def keep(self, name: str, value: Any) -> None:
        label = f"{self.part} {name}"
        assert label not in self.kept, label
        self.kept[label] = digest(value)

    def keep_gradients(self, model: nn.Module) -> None:
        for name, value in model.named_parameters():
            self.keep(f"gradient {name}", value.grad)

    def keep_state(self, model: nn.Module) -> None:
        for name, value in model.named_parameters():
            self.keep(f"parameter {name}", value)
        for name, value in model.named_buffers():
            self.keep(f"buffer {name}", value)


class Loaded(Exception):
    """A case has imported and built all it needs."""


class Loading(Run):
    """Goes no further than to the first recorded part."""

    def begin(self, *models: nn.Module) -> None:
        raise Loaded


class Captured(Run):
    """A run that is recorded into `folder`."""

    def __init__(self, settings: dict[str, Any], rank: int = 0, size: int = 1, folder: Path = Path(".")) -> None:
        super().__init__(rank, size, folder)
        from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415 - a bare run does not import it

        logging.getLogger("dumpscope").setLevel(logging.WARNING)
        config = folder / f"config{rank}.json"
        config.write_text(json.dumps({**settings, "dump_path": str(folder)}), encoding="utf-8")
        self._debugger = PrecisionDebugger(str(config))

    def begin(self, *models: nn.Module) -> None:
        self._debugger.start(models[0] if len(models) == 1 else list(models))

    def end(self) -> None:
        self._debugger.stop()
        self._debugger.step()
        super().end()


class Counted(Run):
    """A bare run whose calls, modules and compiled regions are counted. compiled: only the regions, by torch's profiler"""

    def __init__(self, rank: int = 0, size: int = 1, folder: Path = Path("."), *, compiled: bool = False) -> None:
        super().__init__(rank, size, folder)
        from model_cases.census import Census  # noqa: PLC0415

        self.census = None if compiled else Census()
        self.modules: Counter[str] = Counter()
        self.regions = 0
        self._handle: Any = None
        self._profile: Any = None

    def begin(self, *models: nn.Module) -> None:
        inside = {id(one) for model in models for one in model.modules()} - {id(model) for model in models}

        def count(module: nn.Module, arguments: Any) -> None:
            if id(module) in inside and type(module).__name__ != "FullyShardedDataParallel":
                self.modules[type(module).__name__] += 1

        if self.census is None:
            self._profile = torch.profiler.profile()
            self._profile.__enter__()
        else:
            self._handle = nn.modules.module.register_module_forward_pre_hook(count)
            self.census.__enter__()

    def end(self) -> None:
        if self.census is not None:
            self.census.__exit__(None, None, None)
            self._handle.remove()
        else:
            self._profile.__exit__(None, None, None)
            self.regions += sum(one.name.startswith("Torch-Compiled Region") for one in self._profile.events())
        super().end()

    def close(self) -> dict[str, Any]:
        visits = self.census.counted() if self.census is not None else []
        return {"visits": visits, "modules": self.modules, "regions": self.regions}


def train(
    run: Run,
    model: nn.Module,
    batches: Iterable[Any],
    loss_of: Callable[[nn.Module, Any], torch.Tensor],
    optimizer: torch.optim.Optimizer | None = None,
) -> None:
    """A step for each batch: loss, backward, clipping, optimizer."""
    optimizer = optimizer or torch.optim.AdamW(model.parameters(), lr=1e-3)
    model.train()
    for batch in batches:
        run.begin(model)
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        run.end()
        run.keep("loss", loss)
        run.keep_gradients(model)
        run.keep_state(model)
        optimizer.zero_grad()
