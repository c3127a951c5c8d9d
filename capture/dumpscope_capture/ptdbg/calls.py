"""The functions of a ptdbg script. `parse`, `compare` and `compare_distributed` import the server package when called."""

from __future__ import annotations

import importlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

import torch

from dumpscope_capture import seeding
from dumpscope_capture.config import ConfigError
from dumpscope_capture.ptdbg.arguments import (
    DEFAULT_TAG,
    Switch,
    checked_flag,
    checked_hook,
    checked_on,
    checked_place,
    checked_switch,
)
from dumpscope_capture.ptdbg.core import the
from dumpscope_capture.ptdbg.errors import Code, CompareException, DumpException, ParameterError


def configure(
    generation: str | None = None,
    layout: str | None = None,
    wrap_ops: str | None = None,
    leave_out: Sequence[str] | None = None,
) -> None:
    """Choose the form of what is written, and which calls are nodes. What is not given stays as it is.

    generation: "2.3", "4.0" or "6.0"; without it a path that ends in .pkl means 2.3 and any other 6.0
    layout: "ptdbg" (.pkl and .npy files) or "msprobe" (dump.json)
    wrap_ops: a file in the form of support_wrap_ops.yaml; leave_out: names of operators that are no nodes
    Raises ParameterError.
    """
    capture = the()
    with capture.guard:
        words = None if leave_out is None else leave_out if isinstance(leave_out, str) else list(leave_out)
        capture.settings = capture.settings.changed(generation, layout, wrap_ops, words)  # type: ignore[arg-type]
        capture.apply()


def seed_all(seed: int = 1234, mode: bool = False) -> None:
    """Seed random, numpy and torch on every device. mode: deterministic kernels too. Raises ParameterError."""
    try:
        seeding.seed_all(seed, mode)
    except ConfigError as error:
        raise ParameterError(error.key, error.value, error.allowed) from error


def set_dump_path(fpath: str | os.PathLike[str] | None = None, dump_tag: str = DEFAULT_TAG) -> None:
    """Where to dump: the .pkl file of 2.3, or a folder; None takes $ASCEND_WORK_PATH/dump_data. Raises DumpException."""
    the().put(checked_place(fpath, dump_tag))


def acc_cmp_dump(*unused: Any, **unused_too: Any) -> None:
    """Names the hook that dumps, for `register_hook`."""


def overflow_check(*unused: Any, **unused_too: Any) -> None:
    """Names the hook that looks for overflows, for `register_hook`."""


def register_hook(model: Any, hook: Any, **options: Any) -> None:
    """Choose what is recorded. It may be called again, before or after the other calls, and before there is a model.

    model: of no matter, as all calls of the process are seen; with dump_mode="model" the one whose modules are recorded instead
    hook: acc_cmp_dump or overflow_check
    options: overflow_nums (1; -1 for no limit), dump_mode ("api", "acl", "model"), dump_config (a dump.json, for acl), rank,
        dump_step, need_replicate
    Raises CompareException: code 11 for a wrong option, 15 where the device cannot do what is asked.
    """
    wanted = checked_hook(hook, options)
    by_modules = wanted.dump_mode == "model"
    if by_modules and not isinstance(model, torch.nn.Module):
        raise ParameterError("model", type(model).__name__, "an nn.Module, with dump_mode model")
    capture = the()
    with capture.guard:
        if by_modules and capture.narrowed is not None:
            raise CompareException(Code.INVALID_PARAM, "module_dump cannot be used together with dump_mode='model'")
        capture.register(wanted, model if by_modules else None)


def set_dump_switch(
    switch: str,
    mode: str = "all",
    scope: Sequence[str] | None = None,
    api_list: Sequence[str] | None = None,
    filter_switch: str | None = None,
    dump_mode: str | Sequence[str] | None = None,
    summary_only: bool = False,
) -> None:
    """Begin ("ON") or end ("OFF") to dump.

    mode: all, list, range, stack, acl, api_list or api_stack; scope: names of calls; api_list: names of operators
    filter_switch: ON leaves out numbers, whole-number tensors and those without dimensions or elements; the default is ON for
        generation 2.3 and OFF for later ones
    dump_mode: any of all, forward, backward, input, output; summary_only: no .npy files
    Raises CompareException with code 11.
    """
    on = checked_on("switch", switch)
    summary = "summary" if checked_flag("summary_only", summary_only) else "all"
    if on:
        the().turn_on(checked_switch(mode, scope, api_list, filter_switch, dump_mode, summary))
    else:
        the().turn_off()


def set_overflow_check_switch(switch: str, filter_switch: str | None = None) -> None:
    """Begin ("ON") or end ("OFF") to look for overflows; without this call everything is looked at. Raises CompareException."""
    on = checked_on("switch", switch)
    filtered = None if filter_switch is None else checked_on("filter_switch", filter_switch)
    capture = the()
    if on:
        capture.turn_on(Switch(filtered=filtered))
    else:
        capture.turn_off(check=True)


def set_backward_input(backward_input: Sequence[str]) -> None:
    """The .npy file with the gradient that an acl dump of a backward is to use. Raises DumpException."""
    if not isinstance(backward_input, (list, tuple)) or not backward_input:
        raise ParameterError("backward_input", backward_input, "a list with the path of one .npy file")
    for path in backward_input:
        if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
            raise DumpException(Code.INVALID_PATH, f"backward_input: there is no file {path!r}")
    capture = the()
    with capture.guard:
        capture.backward_input = tuple(str(os.fspath(path)) for path in backward_input)
        capture.apply()


def module_dump(module: torch.nn.Module, module_name: str) -> None:
    """Record this module and nothing else until `module_dump_end`. Raises DumpException with code 11."""
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise DumpException(
            Code.INVALID_PARAM, f"module is a {type(module).__name__}; it must be an nn.Module, not scripted"
        )
    if not isinstance(module_name, str) or not module_name:
        raise DumpException(Code.INVALID_PARAM, f"module_name is {module_name!r}; it must be a text")
    capture = the()
    with capture.guard:
        if capture.model is not None:
            raise CompareException(Code.INVALID_PARAM, "module_dump cannot be used together with model=")
        capture.narrowed = (module, module_name)
        if capture.session is not None:
            capture.session.narrow(module, module_name)


def module_dump_end() -> None:
    """Undo `module_dump`."""
    capture = the()
    with capture.guard:
        capture.narrowed = None
        if capture.session is not None:
            capture.session.widen()


def parse(pkl_file: str, module_name_prefix: str) -> None:
    """Print statistics and stacks of what begins with a prefix. Raises CompareException."""
    _call("parse", pkl_file, module_name_prefix)


def compare(
    input_param: Mapping[str, Any],
    output_path: str,
    stack_mode: bool | None = None,
    auto_analyze: bool = True,
    fuzzy_match: bool | str = False,
    suffix: str = "",
) -> Any:
    """Compare two dumps into a table in `output_path` and print the advice. stack_mode: None shows stacks where there are any;
    fuzzy_match: a text there is the suffix, as in 2.3.

    Raises CompareException.
    """
    return _call(
        "compare", input_param, output_path, stack_mode=stack_mode, auto_analyze=auto_analyze, fuzzy_match=fuzzy_match,
        suffix=suffix,
    )  # fmt: skip


def compare_distributed(npu_dir: str, bench_dir: str, output_path: str, **options: Any) -> Any:
    """Compare two folders of ranks, a table a rank. Raises CompareException."""
    return _call("compare_distributed", npu_dir, bench_dir, output_path, **options)


def _call(name: str, *args: Any, **options: Any) -> Any:
    try:
        server: Any = importlib.import_module("dumpscope.ptdbg")
    except ImportError as error:
        raise CompareException(
            Code.UNKNOWN,
            f"{name} needs the part of dumpscope that reads and compares dumps, which is not installed here: "
            f"pip install dumpscope ({error})",
        ) from error
    return getattr(server, name)(*args, **options)
