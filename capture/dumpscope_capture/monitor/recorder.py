"""The monitor of a training run: what a script uses."""

from __future__ import annotations

import atexit
import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import HookErrors, Unobserved, rank as own_rank
from dumpscope_capture.monitor.activations import ActivationWatch
from dumpscope_capture.monitor.dumping import DumpStarter
from dumpscope_capture.monitor.gradients import GradientWatch, plain, torch_optimizer
from dumpscope_capture.monitor.ring import Numbers, Ring
from dumpscope_capture.monitor.settings import MonitorSettings, check, read_msprobe
from dumpscope_capture.monitor.statistics import Meters, norms
from dumpscope_capture.older_torch import is_compiling
from dumpscope_format.monitor import UPDATE
from dumpscope_format.paths import rank_folder


class Monitor:
    """Records statistics of every step of a training, and changes nothing in it.

        monitor = Monitor(model, optimizer)
        for batch in data:
            ...
            optimizer.step()
            monitor.step(loss=loss)
        monitor.close()

    `with Monitor(...) as monitor:` closes by itself. Without calls of `step` a step ends when the optimizer begins the next one.

    model: a module, or a list of them (chunks of a pipeline stage); optimizer: of torch, or a wrapper that holds one
    path: folder of the files, `monitor` by default; config: a configuration of msprobe's TrainerMon, a path or what it holds
    rank: if torch.distributed does not know it; step: number of the first step; resume: go on after the files in the folder
    settings: fields of `MonitorSettings`, over the configuration; `dump=` starts a recorder after an anomaly
    Raises ConfigError for settings that cannot be used.
    """

    def __init__(
        self,
        model: torch.nn.Module | Sequence[torch.nn.Module],
        optimizer: Any,
        path: str | os.PathLike[str] | None = None,
        *,
        config: str | os.PathLike[str] | Mapping[str, Any] | None = None,
        rank: int | None = None,
        step: int = 0,
        resume: bool = False,
        **settings: Any,
    ) -> None:
        self.settings = _settings(path, config, settings)
        self.errors = HookErrors()
        self.step_number = step
        self._taken = 0
        self._pid = os.getpid()
        number = own_rank() if rank is None else rank
        self._active = not self.settings.ranks or (number or 0) in self.settings.ranks
        chunks = [model] if isinstance(model, torch.nn.Module) else list(model)
        self._optimizer = torch_optimizer(optimizer)
        if self._optimizer is None:
            raise ConfigError(
                "optimizer", type(optimizer).__name__, "a torch.optim.Optimizer, or a wrapper that holds one"
            )
        watched = [one for one in _parameters(chunks) if self.settings.takes_parameter(one[0])]
        self._watched = watched
        self._gradients = GradientWatch(watched, self.settings, self._wanted, self.errors)
        modules = [one for one in _modules(chunks) if self.settings.takes_module(one[0])]
        self._activations = ActivationWatch(modules, self.settings, self._wanted, self.errors)
        self._moments = Meters(self.settings.moments, self.settings.eps)
        self._weights = Meters(self.settings.statistics if self.settings.weights else (), self.settings.eps)
        facts = _facts(watched, self.settings, number)
        self._dump = None
        if self.settings.dump is not None and self._active:
            self._dump = DumpStarter(
                self.settings.dump,
                chunks,
                Path(self.settings.path),
                rank_folder(number or 0, self._pid),
                rank=number,
                ahead=self.settings.flush_every * self.settings.every,
                errors=self.errors,
            )
        self._ring = Ring(
            Path(self.settings.path),
            rank_folder(number or 0, self._pid),
            facts,
            flush_every=self.settings.flush_every,
            resume=resume,
            seen=None if self._dump is None else self._dump.judge,
        )
        self._numbers: list[Numbers] = []
        self._scalars: dict[str, Any] = {}
        self._before: tuple[tuple[str, ...], list[torch.Tensor], list[torch.Tensor]] | None = None
        self._stepped = False
        self._handles: list[Any] = []
        self._closed = False
        if self._active:
            self._install()
        atexit.register(self.close)

    @property
    def path(self) -> Path:
        """The file of this rank."""
        return self._ring.path

    def step(self, loss: Any = None, **scalars: Any) -> None:
        """End a step. loss, scalars: numbers, or tensors with one element, which are read when the next steps are written."""
        if self._dump is not None:
            self._dump.end_step()
        with self.errors.guard("a step"):
            for name, value in {"loss": loss, **scalars}.items():
                if value is not None and self._wanted():
                    self._scalars[name] = _kept(name, value)
            self._end_step()
        if self._dump is not None and not self._closed:
            self._dump.begin_step(self.step_number)

    def flush(self) -> None:
        """Write the steps that wait, now."""
        with self.errors.guard("writing"):
            self._ring.flush()

    def close(self) -> None:
        """Write what is left and take all hooks away. The monitor cannot be used again."""
        if self._closed or os.getpid() != self._pid:  # a forked child has no file of its own
            return
        self._closed = True
        atexit.unregister(self.close)
        for handle in self._handles:
            handle.remove()
        self._gradients.remove()
        self._activations.remove()
        if self._dump is not None:
            self._dump.close()
        with self.errors.guard("writing"):
            if self._stepped:
                self._end_step()
            self._ring.close()

    def __enter__(self) -> Monitor:
        return self

    def __exit__(self, *unused: object) -> None:
        self.close()

    # -- hooks ---------------------------------------------------------------------------------------------------------

    def _install(self) -> None:
        self._gradients.install()
        self._activations.install()
        self._handles = [
            self._optimizer.register_step_pre_hook(self._before_optimizer),
            self._optimizer.register_step_post_hook(self._after_optimizer),
        ]

    def _wanted(self) -> bool:
        """Whether the step that runs is recorded."""
        return (
            self._active
            and not self._closed
            and self._taken < self.settings.times
            and self.settings.takes_step(self.step_number + (1 if self._stepped else 0))
        )

    def _before_optimizer(self, optimizer: Any, *unused: Any) -> None:
        if is_compiling() or self._closed:  # torch.compile reads this code too, and is to find nothing in it
            return
        with self.errors.guard("the optimizer's step"):
            if self._stepped:
                self._end_step()
            self._numbers += self._activations.take() + self._gradients.take()
            if not self._wanted():
                return
            groups = optimizer.param_groups
            if groups and groups[0].get("lr") is not None:
                self._scalars["lr"] = _kept("lr", groups[0]["lr"])
            with Unobserved():
                self._measure_moments(optimizer)
                self._numbers += self._measure_weights("param_origin")
                self._keep_weights()

    def _after_optimizer(self, optimizer: Any, *unused: Any) -> None:
        if is_compiling() or self._closed:
            return
        with self.errors.guard("the optimizer's step"):
            if self._wanted():
                with Unobserved():
                    self._measure_update()
                    self._numbers += self._measure_weights("param_updated")
            self._before = None
            self._stepped = True

    def _end_step(self) -> None:
        wanted = self.settings.takes_step(self.step_number) and self._taken < self.settings.times and self._active
        numbers = self._numbers
        scalars, self._numbers, self._scalars, self._stepped = self._scalars, [], {}, False
        number = self.step_number
        self.step_number += 1
        if wanted and (numbers or scalars):
            self._taken += 1
            self._ring.add(number, scalars, numbers)

    # -- measurements --------------------------------------------------------------------------------------------------

    def _slice(self, every: int) -> Sequence[tuple[str, torch.nn.Parameter]]:
        """The parameters whose turn it is in this step, each once in `every` steps."""
        return self._watched[self.step_number % every :: every] if every else ()

    def _measure_moments(self, optimizer: Any) -> None:
        """Adam's moments as the step finds them, at the moment at which msprobe reads them."""
        turn = self._slice(self.settings.moments_every)
        for key in ("exp_avg", "exp_avg_sq"):
            named = []
            for name, parameter in turn:
                state = optimizer.state.get(parameter)
                moment = plain(state.get(key)) if state else None
                if moment is not None:
                    named.append((name, moment))
            self._numbers += [
                Numbers(key, self._moments.statistics, names, values) for names, values in self._moments.measure(named)
            ]

    def _measure_weights(self, metric: str) -> list[Numbers]:
        if not self.settings.weights:
            return []
        named = [(name, tensor) for name, one in self._watched if (tensor := plain(one)) is not None]
        found = self._weights.measure(named)
        return [Numbers(metric, self._weights.statistics, names, values) for names, values in found]

    def _keep_weights(self) -> None:
        """Copy the parameters whose turn it is: what the step adds to them is measured after it."""
        turn = [
            (name, tensor)
            for name, one in self._slice(self.settings.update_every)
            if (tensor := plain(one)) is not None
        ]
        if turn:
            tensors = [tensor for _, tensor in turn]
            self._before = tuple(name for name, _ in turn), tensors, [tensor.clone() for tensor in tensors]

    def _measure_update(self) -> None:
        if self._before is None:
            return
        names, after, before = self._before
        by_device: dict[torch.device, list[int]] = {}
        for place, tensor in enumerate(after):
            by_device.setdefault(tensor.device, []).append(place)
        for places in by_device.values():
            old = [before[place] for place in places]
            size = norms(old)
            torch._foreach_sub_(old, [after[place] for place in places])  # our own copies
            change = norms(old)
            ratio = torch.where(change == 0, torch.zeros_like(change), change / size)
            values = torch.stack([change, ratio], dim=1).to(torch.float32).flatten()
            self._numbers.append(Numbers("update", UPDATE, tuple(names[place] for place in places), values))


def _settings(
    path: str | os.PathLike[str] | None,
    config: str | os.PathLike[str] | Mapping[str, Any] | None,
    given: Mapping[str, Any],
) -> MonitorSettings:
    text = None if path is None else os.fspath(path)
    base = MonitorSettings() if config is None else read_msprobe(config)
    values: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in given.items()}
    try:
        made = replace(base, **values)
    except TypeError as error:
        unknown = next((key for key in given if key not in MonitorSettings.__dataclass_fields__), "")
        raise ConfigError("settings", unknown, ", ".join(sorted(MonitorSettings.__dataclass_fields__))) from error
    for key in ("parameters", "activations", "statistics", "unreduced", "unclipped", "moments"):
        if isinstance(getattr(made, key), str):
            word: dict[str, Any] = {key: (getattr(made, key),)}
            made = replace(made, **word)
    return check(made if text is None else replace(made, path=text))


def _parameters(chunks: Sequence[torch.nn.Module]) -> list[tuple[str, torch.nn.Parameter]]:
    """Trained parameters by name; of a further chunk with its number before the name, `1:layers.0.weight`."""
    return [
        (name if not number else f"{number}:{name}", parameter)
        for number, chunk in enumerate(chunks)
        for name, parameter in chunk.named_parameters()
        if parameter.requires_grad and parameter.is_floating_point() and parameter.numel()
    ]


def _modules(chunks: Sequence[torch.nn.Module]) -> list[tuple[str, torch.nn.Module]]:
    return [
        (name if not number else f"{number}:{name}", module)
        for number, chunk in enumerate(chunks)
        for name, module in chunk.named_modules()
    ]


def _facts(
    watched: Sequence[tuple[str, torch.nn.Parameter]], settings: MonitorSettings, rank: int | None
) -> dict[str, Any]:
    return {
        "rank": rank,
        "pid": os.getpid(),
        "started": round(time.time(), 3),
        "torch": torch.__version__,
        "eps": settings.eps,
        "every": settings.every,
        "moments_every": settings.moments_every,
        "update_every": settings.update_every,
        "parameters": {name: [str(one.dtype).rpartition(".")[2], list(one.shape)] for name, one in watched},
    }


def _kept(name: str, value: Any) -> Any:
    """A scalar as it is now. Raises ValueError for what is none."""
    if isinstance(value, torch.Tensor):
        if value.numel() != 1:
            raise ValueError(f"step({name}=...) takes a number or a tensor with one element")
        with Unobserved():
            return value.detach().clone()
    return float(value)
