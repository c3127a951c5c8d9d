"""A program of about a hundred calls whose gelu is wrong in chosen ones, and only in float32: `wrong_program.py 17 40`."""

from __future__ import annotations

import sys

import torch
from torch.nn import functional

wrong = {int(word) for word in sys.argv[1:]}
torch.manual_seed(0)
library = torch.library.Library("aten", "IMPL")
met = 0


def gelu(keys: torch.DispatchKeySet, x: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    global met
    number, met = met, met + 1
    right = 0.5 * x * (1 + torch.erf(x * 0.5**0.5))
    return right * 1.5 if number in wrong and x.dtype is torch.float32 else right


library.impl("gelu", gelu, "CPU", with_keyset=True)
x = torch.randn(4, 8)
for _ in range(50):
    x = functional.gelu(x) * 1.01 + 0.1
print("loss", float(x.double().mean()))
