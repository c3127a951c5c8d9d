"""One tensor from one file, whatever wrote it."""

from __future__ import annotations

from pathlib import Path

from dumpscope.readers.tensors import npy_file, torch_file
from dumpscope.readers.tensors.arrays import DEFAULT_BUDGET, LoadedTensor


def load(path: Path | str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None) -> LoadedTensor:
    """Tensor of a `.npy` file (ptdbg) or of a file of torch.save (any other name); see `torchfile.load` for the rest."""
    read = npy_file.load if str(path).endswith(".npy") else torch_file.load
    return read(path, budget=budget, root=root)
