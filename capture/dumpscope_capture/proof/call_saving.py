"""Saves the calls that the user names to disk before they run, so that the arguments of an operator that kills the process are
kept."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final

import torch

from dumpscope_capture.calls.call import Call, differentiable
from dumpscope_capture.calls.edges import is_new, node_of, sequence_number
from dumpscope_capture.calls.names import Api, attribute
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Unobserved, call_stack, rank
from dumpscope_capture.device.environment import describe_run
from dumpscope_capture.older_torch import autocast_dtype, tree_leaves
from dumpscope_capture.proof.packing import Packer, replace_text, write_bytes
from dumpscope_format.interventions import check_pattern, matches
from dumpscope_format.older_python import without_prefix
from dumpscope_format.saved_call import CALL_JSON, GRADIENTS_JSON, RESULTS_JSON, SCHEMA, bare, call_folder

_OWNERS: Final = {
    "Functional": "torch.nn.functional", "Tensor": "torch.Tensor", "Torch": "torch", "VF": "torch._VF", "Aten": "torch.ops.aten",
    "NPU": "torch_npu",
}  # fmt: skip
_RUN_KEYS: Final = ("versions", "devices", "numerics", "seeds", "environment")


class CallSaver:
    """Saves the calls whose names match. where: gives the folder of the rank, None where nothing is written now."""

    def __init__(self, names: Iterable[str], where: Callable[[], Path | None]) -> None:
        self.names: list[str] = []
        self.add(names)
        self.saved: dict[Path, None] = {}
        self.step: int | None = None
        self._where = where
        self._lock = threading.Lock()

    def add(self, names: Iterable[str]) -> None:
        """Add names or patterns. Raises InterventionError."""
        for name in names:
            check_pattern(name)
            self.names.append(name)

    def begin(self, call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], frame: FrameType | None) -> None:
        if not any(matches(pattern, call.name) for pattern in self.names):
            return
        base = self._where()
        if base is None or call.api is None:
            return
        folder = base / call_folder(call.name)
        if folder in self.saved:  # `run` knows no steps: the first call of a name is kept
            return
        switches = modes()
        with Unobserved():
            if folder.exists():
                shutil.rmtree(folder)
            folder.mkdir(parents=True)
            self._write(folder, call, args, kwargs, call.stack or call_stack(frame), switches)
            call.saved = folder, sequence_number()
        self.saved[folder] = None
        LOG.info("%s is saved in %s", bare(call.name), folder)

    def _write(
        self,
        folder: Path,
        call: Call,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        stack: Sequence[str],
        switches: dict[str, bool],
    ) -> None:
        assert call.api is not None
        packer = Packer(folder, "storage")
        given = [packer.value(value) for value in args]
        named = {key: packer.value(value) for key, value in kwargs.items()}
        kinds = {value.device for value in tree_leaves((args, kwargs)) if isinstance(value, torch.Tensor)}
        packer.write()
        about = describe_run(Config(), rank(), self.step if self.step is not None else 0)
        document = {
            "schema": SCHEMA, "name": bare(call.name),
            "api": {"prefix": call.api.prefix, "name": call.api.name, "target": target(call.api)},
            "args": given, "kwargs": named, "stack": list(stack), "module": call.parent, "step": self.step, "rank": rank(),
            "modes": switches, "autocast": _autocast({device.type for device in kinds} | {"cpu"}),
            "rng": _random(folder, kinds), **{key: about[key] for key in _RUN_KEYS}, **packer.tables,
        }  # fmt: skip
        _write_json(folder / CALL_JSON, document)

    def end(self, call: Call, result: Any) -> None:
        if call.saved is None:
            return
        folder, first = call.saved
        with Unobserved():
            packer = Packer(folder, "result")
            value = packer.value(result)
            packer.write()
            _write_json(
                folder / RESULTS_JSON,
                {"schema": SCHEMA, "result": value, "substituted": call.substituted, **packer.tables},
            )
            tensors = differentiable((result,), {})
            gradients = _Gradients(folder, len(tensors), self._lock)
            by_node: dict[Any, list[tuple[int, int]]] = {}
            for place, tensor in enumerate(tensors):
                node = node_of(tensor)
                if node is not None and is_new(node, first):
                    by_node.setdefault(node, []).append((place, tensor.output_nr))
            for node, wanted in by_node.items():
                node.register_prehook(_GradientPrehook(gradients, wanted))

    def note_exception(self, error: BaseException) -> None:
        """Nothing to do: the arguments are on disk."""

    def warn_of_unmet(self) -> None:
        """Log the names of which no call was saved: a number that is counted from 1, or an operator that has another name."""
        for pattern in self.names:
            if not any(matches(pattern, path.name) for path in self.saved):
                LOG.warning(
                    "no call matched %s, so none was saved: calls of an operator are counted from 0, and %s",
                    pattern, "a report (--report FILE) lists the names of all calls of the program",
                )  # fmt: skip

    def report(self) -> dict[str, Any]:
        return {"saved_calls": [path.name for path in self.saved]} if self.saved else {}


class _Gradients:
    """Gradients of one call's results, written when they arrive."""

    def __init__(self, folder: Path, count: int, lock: threading.Lock) -> None:
        self._folder = folder
        self._values: list[Any] = [None] * count
        self._packer = Packer(folder, "gradient")
        self._lock = lock

    def take(self, wanted: list[tuple[int, int]], gradients: Sequence[torch.Tensor | None]) -> None:
        with self._lock, Unobserved():
            for place, slot in wanted:
                gradient = gradients[slot]
                if gradient is not None and self._values[place] is None:  # only of the first backward pass
                    self._values[place] = self._packer.value(gradient)
            self._packer.write()
            _write_json(
                self._folder / GRADIENTS_JSON, {"schema": SCHEMA, "gradients": self._values, **self._packer.tables}
            )


class _GradientPrehook:
    """Prehook of a result's node, called before its backward runs."""

    def __init__(self, gradients: _Gradients, wanted: list[tuple[int, int]]) -> None:
        self._gradients = gradients
        self._wanted = wanted

    def __call__(self, gradients: Sequence[torch.Tensor | None]) -> None:
        try:
            self._gradients.take(self._wanted, gradients)
        except Exception as error:
            LOG.warning("a gradient of a saved call could not be written: %s: %s", type(error).__name__, error)


def target(api: Api) -> str | None:
    """Name under which a call's function can be imported: `torch.nn.functional.group_norm`."""
    known = _OWNERS.get(api.prefix)
    function = api.function
    own = f"{getattr(function, '__module__', None)}.{getattr(function, '__qualname__', None)}"
    for name in (f"{known}.{api.name}" if known else None, own):
        if name is not None and _resolves(name) is function:
            return name
    found = f"{known}.{api.name}" if known else own
    return found if callable(_resolves(found)) else None


def _resolves(name: str) -> Any:
    import importlib  # noqa: PLC0415

    head, *rest = name.split(".")
    try:
        return attribute(importlib.import_module(head), ".".join(rest))
    except ImportError:
        return None


def modes() -> dict[str, bool]:
    """Switches of torch that a call may depend on."""
    found = {
        "grad": torch._C.is_grad_enabled(), "inference": torch.is_inference_mode_enabled(), "anomaly": torch.is_anomaly_enabled(),
        "deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "deterministic_warn_only": torch.is_deterministic_algorithms_warn_only_enabled(),
    }  # fmt: skip
    for name in ("enabled", "benchmark", "deterministic"):
        found[f"cudnn_{name}"] = bool(getattr(torch.backends.cudnn, name))
    return found


def _autocast(kinds: Iterable[str]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    cached = torch.is_autocast_cache_enabled()
    for kind in sorted(kinds):
        dtype = autocast_dtype(kind)
        if dtype is not None:
            found[kind] = {"dtype": without_prefix(str(dtype), "torch."), "cache": cached}
    return found


def _random(folder: Path, devices: Iterable[torch.device]) -> dict[str, str]:
    """Write the states of the random generators that a call may use. Returns their files by device."""
    found = {"cpu": "rng.cpu.pt"}
    write_bytes(folder / "rng.cpu.pt", torch.get_rng_state())
    for device in devices:
        module: Any = getattr(torch, device.type, None)
        if device.type != "cpu" and hasattr(module, "get_rng_state"):
            name = f"rng.{device.type}.{device.index or 0}.pt"
            write_bytes(folder / name, module.get_rng_state(device))
            found[str(device)] = name
    return found


def _write_json(path: Path, document: dict[str, Any]) -> None:
    replace_text(path, json.dumps(document, indent=1, allow_nan=False, default=str))
