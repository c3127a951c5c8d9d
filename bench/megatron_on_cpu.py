"""What Megatron-LM asks of CUDA, answered by the CPU, so that its own code trains and saves where no GPU is.

Megatron-core 0.16 imports without a GPU, and its parallel groups and layers run over gloo. It stops at five places, and these
alone are replaced:

    the generator     model_parallel_cuda_manual_seed, the tracker's fork() and checkpoint() keep and set the state of CUDA's
                      generator: here it is the CPU's, so that dropout below them draws as it does on a GPU
    new tensors       device="cuda" of the optimizer, the clipping, the mask of the attention; torch.cuda.current_device()
    Tensor.type()     the optimizers know float parameters as "torch.cuda.FloatTensor"
    Tensor.cuda()     DistributedOptimizer gathers its state with it; torch.cuda.synchronize() before a file is written
    fp8               CheckpointWithoutOutput asks Transformer Engine for it unless it is made with fp8=None
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch

MAKERS: Final = ("tensor", "zeros", "ones", "empty", "full", "arange")


def install() -> None:
    """Replace them. Call it once, before a model is made."""
    from megatron.core.tensor_parallel import random  # noqa: PLC0415

    def get_state(device: Any = None) -> torch.Tensor:
        return torch.get_rng_state()

    def set_state(new_state: torch.Tensor, device: Any = None, graph_safe: bool = False) -> None:
        torch.set_rng_state(new_state)

    torch.cuda.get_rng_state = torch.cuda.random.get_rng_state = get_state
    torch.cuda.manual_seed = torch.manual_seed
    random._set_cuda_rng_state = set_state
    torch.cuda.current_device = lambda: torch.device("cpu")
    torch.cuda.synchronize = lambda device=None: None
    for name in MAKERS:
        setattr(torch, name, _on_cpu(getattr(torch, name)))
    random.CheckpointWithoutOutput.__init__.__defaults__ = (None,)
    torch.Tensor.cuda = lambda self, *_, **__: self
    torch.Tensor.type = _named_as_on_cuda(torch.Tensor.type)


def _on_cpu(make: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(make)
    def made(*args: Any, device: Any = None, **kwargs: Any) -> Any:
        return make(*args, device="cpu" if "cuda" in str(device) else device, **kwargs)

    return made


def _named_as_on_cuda(plain: Callable[..., Any]) -> Callable[..., Any]:
    def type_of(self: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        found = plain(self, *args, **kwargs)
        plain_name = (
            isinstance(found, str) and ".cuda." not in found
        )  # a function mode calls the method of that name again
        return found.replace("torch.", "torch.cuda.", 1) if plain_name else found

    return type_of
