"""One tensor from one file, whatever wrote it."""

from __future__ import annotations

from pathlib import Path

from dumpscope.readers.tensors import npy_file, torch_file
from dumpscope.readers.tensors.arrays import DEFAULT_BUDGET, LoadedTensor
from dumpscope.readers.tensors.members import MANY, load_member, load_only, split_member


def load(path: Path | str, *, budget: int = DEFAULT_BUDGET, root: Path | str | None = None) -> LoadedTensor:
    """Tensor of a `.npy` file (ptdbg), of a file of torch.save (any other name), or one of several of a file
    (`acts.npz::NAME`); see `torchfile.load` for the rest."""
    member = split_member(str(path))
    if member is not None:
        return load_member(*member, budget=budget, root=root)
    if str(path).lower().endswith(MANY):
        return load_only(str(path), budget=budget, root=root)
    read = npy_file.load if str(path).endswith(".npy") else torch_file.load
    return read(path, budget=budget, root=root)
