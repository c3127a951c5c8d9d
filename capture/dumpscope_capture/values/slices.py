"""Parts of tensors that are recorded in place of the whole: the tokens of one request of a server, say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from dumpscope_capture.config import Slice


class Slices:
    """Which parts are recorded now. fixed: of the configuration"""

    def __init__(self, fixed: Sequence[Slice] = ()) -> None:
        self._fixed = tuple(fixed)
        self.now = self._fixed

    def take_request(self, request: str | None, scheduled: Mapping[str, int] | None) -> bool:
        """From now on record the tokens of one request of a batch, whose requests lie one behind the other in dimension 0.

        scheduled: number of tokens of each request, in their order; without it, or without a request, everything is recorded
        Returns whether anything is to be recorded: False where the request is not in the batch.
        """
        self.now = self._fixed
        if request is None or not scheduled:
            return True
        begin = total = tokens = 0
        for name, count in scheduled.items():
            if name == request:
                begin, tokens = total, count
            total += count
        if tokens <= 0:
            return False
        self.now = (*self._fixed, Slice(0, total, begin, begin + tokens))
        return True

    def cut(self, tensor: torch.Tensor) -> torch.Tensor:
        """The recorded part of a tensor: a view, or itself where no slice fits. Of two for a dimension the last counts."""
        wanted: dict[int, slice] = {}
        for one in self.now:
            if one.dim < tensor.dim() and one.size in (None, tensor.shape[one.dim]):
                wanted[one.dim] = slice(one.begin, one.end)
        if not wanted:
            return tensor
        return tensor[tuple(wanted.get(dim, slice(None)) for dim in range(tensor.dim()))]
