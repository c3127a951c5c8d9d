"""What it costs to count calls, to explain backward and to substitute calls: CPU time of a training step against the plain one.

    python bench/proof_cost.py [--rounds 12]

Minimum of all rounds, one thread, all cases in every round, so that other work on the machine hits them alike.
"""

from __future__ import annotations

import argparse
import logging
import time
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch

from dumpscope_capture import explain_backward, intervene

CASES: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "plain": nullcontext,
    "counted only": lambda: intervene({"Functional.nothing": "cpu"}),
    "explain_backward table": lambda: explain_backward("table"),
    "explain_backward nan": lambda: explain_backward("nan"),
    "explain_backward anomaly": lambda: explain_backward("anomaly"),
    "torch's anomaly mode": torch.autograd.detect_anomaly,
    "layer_norm roundtrip": lambda: intervene({"Functional.layer_norm": "roundtrip"}),
    "layer_norm float64": lambda: intervene({"Functional.layer_norm": "float64"}),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=12)
    rounds = parser.parse_args().rounds
    logging.getLogger("dumpscope").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(256, 8, 1024, batch_first=True, dropout=0.1)
    model = torch.nn.TransformerEncoder(layer, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    data = torch.randn(4, 64, 256)
    best = dict.fromkeys(CASES, float("inf"))
    for _ in range(rounds):
        for name, case in CASES.items():
            with case():
                began = time.process_time()
                optimizer.zero_grad()
                model(data).pow(2).mean().backward()
                optimizer.step()
                best[name] = min(best[name], time.process_time() - began)
    for name, seconds in best.items():
        print(f"{name:26}{seconds * 1e3:8.1f} ms{seconds / best['plain']:7.2f}")


if __name__ == "__main__":
    main()
