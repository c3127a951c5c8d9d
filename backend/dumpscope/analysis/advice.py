"""One sentence of advice per kind of origin: what to do next."""

from __future__ import annotations

from typing import Final

ADVICE: Final[dict[str, str]] = {
    "computation": "Run this operator alone on both devices with its dumped inputs: if it differs, its kernel is wrong.",
    "backward": "The forward is right and the arriving gradient agrees: run this operator's backward alone on both devices.",
    "weight": "Load the same checkpoint on both sides and compare this parameter before the first step.",
    "input": "Make the two runs read the same data: this value differs before any dumped operator has touched it.",
    "overflow": "Look at the operator's value range: finite inputs became NaN or infinite. Try it in a wider dtype.",
    "communication": "Every rank's input agrees and the result does not: check the collective's group, order and reduce type.",
    "structure": "The two scripts call different operators here: compare the code at this stack before any numbers.",
    "accumulated": "No single operator is at fault, the error grows smoothly: compare at higher precision.",
    "configuration": "The operator is called with different arguments: make them equal before looking for a wrong kernel.",
    "random": "A random operator gives different numbers: fix the seeds on both sides (seed_all) and dump again.",
}
