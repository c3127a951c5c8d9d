"""The overflow check of ptdbg's hook: calls whose results overflow although their arguments are finite."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from dumpscope_capture.calls.held_arguments import HeldArguments
from dumpscope_capture.config import Config
from dumpscope_capture.context import LOG, Unobserved, call_stack, rank
from dumpscope_capture.ptdbg.arguments import Hook
from dumpscope_capture.ptdbg.files import as_array
from dumpscope_capture.ptdbg.generations import Form, Spelling, frame
from dumpscope_capture.record.checks import OverflowCheck
from dumpscope_capture.values.nonfinite import NonfiniteMarks
from dumpscope_capture.values.statistics import measure_now, reason_absent
from dumpscope_format.older_python import without_suffix

_PLAIN: Final = (bool, int, float, str)


class Findings(OverflowCheck):
    """Counts overflows; with need_replicate it saves what a check of single operators needs to repeat them."""

    def __init__(self, config: Config, ended: Callable[[], None], hook: Hook, form: Form) -> None:
        super().__init__(config, ended)
        self.count = 0
        self._left = config.overflow_nums
        self._by_kernels = hook.dump_mode == "acl"
        self._cases = Cases(Spelling(form)) if hook.need_replicate else None

    def judge(self, before: NonfiniteMarks, after: NonfiniteMarks) -> bool:
        """Not an overflow of this call if its arguments hold NaN or infinity already."""
        if before.nan or before.tensor_inf:
            return False
        return after.nan or after.exceeds(before)

    def overflows(self, name: str, given: Any, results: Any) -> bool:
        found = super().overflows(name, given, results)
        self.count += found
        if found and self._by_kernels and name.endswith(".backward"):
            LOG.warning(
                "%s overflows in backward: its kernels can be dumped with register_hook(..., acc_cmp_dump, dump_mode='acl') and "
                "set_dump_switch('ON', mode='acl', scope=['%s'])", name, name,
            )  # fmt: skip
        if found and self._cases is not None:
            self._cases.add(name, given)
            self._left -= 1
            if self._left == 0:
                self._cases.write()
        return found


class Cases:
    """`forward_info_{pid}.json`, `backward_info_{pid}.json` and `stack_info_{pid}.json` in the working directory."""

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._forward: dict[str, Any] = {}
        self._backward: dict[str, Any] = {}
        self._stacks: dict[str, Any] = {}
        self._folder = Path(f"forward_real_data_{time.strftime('%Y%m%d%H%M%S')}") / f"rank{rank() or 0}"

    def add(self, name: str, given: Any) -> None:
        with Unobserved():
            api = self._spelling.node(name)
            if name.endswith(".backward"):
                self._backward[api] = [self._describe(part, None) for part in given]
                return
            call = without_suffix(api, "forward")[:-1]
            args, kwargs = (given.args, given.kwargs) if isinstance(given, HeldArguments) else (given, {})
            self._forward[call] = {
                "args": [self._describe(part, f"{call}.{place}") for place, part in enumerate(args)],
                "kwargs": {key: self._describe(part, f"{call}.{key}") for key, part in kwargs.items()},
            }
            self._stacks[api] = [frame(text) for text in call_stack(sys._getframe(1))]

    def write(self) -> None:
        """Write the files. An error of the disk is only logged."""
        document = {"forward": self._forward, "backward": self._backward, "stack": self._stacks}
        for word, cases in document.items():
            try:
                Path(f"{word}_info_{os.getpid()}.json").write_text(json.dumps(cases, indent=1), encoding="utf-8")
            except OSError as error:
                LOG.warning("%s_info could not be written: %s", word, error)

    def _describe(self, value: Any, file: str | None) -> Any:
        """A value in the form that the operator checker reads. file: for a tensor's data, None to give only its extremes"""
        if isinstance(value, torch.Tensor):
            return self._tensor(value, file)
        if isinstance(value, (list, tuple)):
            return [self._describe(part, f"{file}.{place}" if file else None) for place, part in enumerate(value)]
        if isinstance(value, Mapping):
            return {str(key): self._describe(part, f"{file}.{key}" if file else None) for key, part in value.items()}
        if isinstance(value, slice):
            return {"type": "slice", "value": [value.start, value.stop, value.step]}
        if isinstance(value, _PLAIN) or value is None:
            return {"type": type(value).__name__, "value": value}
        return {"type": str(type(value).__name__), "value": str(value)}

    def _tensor(self, tensor: torch.Tensor, file: str | None) -> dict[str, Any]:
        document: dict[str, Any] = {"type": "torch.Tensor", "requires_grad": tensor.requires_grad}
        plain = tensor.detach().cpu()
        if file is None:
            numbers = measure_now(plain, high=False) if reason_absent(plain) is None else None
            return {
                **document, "dtype": str(tensor.dtype), "shape": list(tensor.shape),
                "Max": None if numbers is None else numbers.max, "Min": None if numbers is None else numbers.min,
            }  # fmt: skip
        self._folder.mkdir(parents=True, exist_ok=True)
        path = self._folder / f"{file}.npy"
        np.save(path, as_array(plain), allow_pickle=False)
        return {**document, "datapath": str(path)}
