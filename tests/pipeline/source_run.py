"""A small step of training, recorded with its source by our capture: `python source_run.py FOLDER [--tanh]`.

--tanh: the gelu of layer 1 takes the tanh form, and a line above it is another, so that the program is another too.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import torch

from dumpscope_capture import PrecisionDebugger

MODEL = '''"""A stack of two feed-forward layers."""

import torch
import torch.nn.functional as F
from torch import nn


class Layer(nn.Module):
    """Normalises, widens, bends, narrows, adds."""

    def __init__(self, width, number):
        super().__init__()
        self.number = number
        self.norm = nn.LayerNorm(width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        hidden = self.norm(x)
        # both runs widen by four
        hidden = self.wide(hidden)
        hidden = F.gelu(hidden)
        hidden = self.narrow(hidden)
        return x + hidden


class Model(nn.Module):
    def __init__(self, width=8, layers=2):
        super().__init__()
        self.layers = nn.ModuleList(Layer(width, number) for number in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return torch.softmax(x, -1)
'''

CHANGES = (
    (
        "        # both runs widen by four\n",
        "        # widened by four, as in the paper\n        hidden = hidden.contiguous()\n",
    ),
    ("F.gelu(hidden)", 'F.gelu(hidden, approximate="tanh" if self.number else "none")'),
)


def model_text(*, tanh: bool) -> str:
    """The program of a run."""
    text = MODEL
    for old, new in CHANGES if tanh else ():
        text = text.replace(old, new)
    return text


def main(folder: Path, *, tanh: bool) -> None:
    program = folder / "code" / "feed_forward.py"
    program.parent.mkdir(parents=True)
    program.write_text(model_text(tanh=tanh), encoding="utf-8")
    torch.manual_seed(7)
    torch.set_num_threads(1)
    model, x = runpy.run_path(str(program))["Model"](), torch.randn(3, 8)
    debugger = PrecisionDebugger(task="tensor", dump_path=str(folder / "dump"), level="mix")
    debugger.start(model)
    model(x).sum().backward()
    debugger.stop()
    debugger.step()


if __name__ == "__main__":
    main(Path(sys.argv[1]), tanh="--tanh" in sys.argv)
