"""Records what a PyTorch model computes, in dumps that msprobe and dumpscope read.

A module imports only from rows below its own (checked by import-linter):

    demo, run, ptdbg                           what a user starts or imports
    monitor                                    statistics of every step of a training (docs/monitor.md)
    debugger, saved_call, precheck, old_names
    session, interventions, precheck_columns   session: one capture from its first start to its end
    proof, replay                              proof: calls saved, counted, run in another way; replay: one call run alone
    hooks                                      function modes, module hooks and wrappers that notice calls
    record                                     the nodes of a step, in order, forward and backward
    device, write                              kernels, registers and versions of a device; the files of a dump
    calls                                      name, source position and observers of a call, and whether it is recorded
    values                                     values into records: statistics, hashes, copies of tensors
    seeding
    config, context
    older_torch, optional_numpy                what an older environment lacks
"""

from __future__ import annotations

from dumpscope_capture.config import ConfigError
from dumpscope_capture.debugger import PrecisionDebugger, module_dump, module_dump_end
from dumpscope_capture.interventions import Interventions, intervene
from dumpscope_capture.proof.backward_failures import Explainer, Failure, explain_backward
from dumpscope_capture.proof.proving import Proof, prove
from dumpscope_capture.seeding import random_save, seed_all
from dumpscope_format.interventions import InterventionError
from dumpscope_format.proof_runs import controls, judge

__all__ = [
    "ConfigError", "Explainer", "Failure", "InterventionError", "Interventions", "PrecisionDebugger", "Proof", "controls",
    "explain_backward", "intervene", "judge", "module_dump", "module_dump_end", "prove", "random_save", "seed_all",
]  # fmt: skip
