"""Records what a PyTorch model computes, in dumps that msprobe and dumpscope read."""

from __future__ import annotations

from dumpscope_capture.config import ConfigError
from dumpscope_capture.debugger import PrecisionDebugger, module_dump, module_dump_end
from dumpscope_capture.interventions import Interventions, intervene
from dumpscope_capture.proof.backward_failures import Explainer, Failure, explain_backward
from dumpscope_capture.proof.controls import Proof, prove
from dumpscope_capture.seeding import random_save, seed_all
from dumpscope_format.interventions import InterventionError
from dumpscope_format.proof_runs import controls, judge

__all__ = [
    "ConfigError", "Explainer", "Failure", "InterventionError", "Interventions", "PrecisionDebugger", "Proof", "controls",
    "explain_backward", "intervene", "judge", "module_dump", "module_dump_end", "prove", "random_save", "seed_all",
]  # fmt: skip
