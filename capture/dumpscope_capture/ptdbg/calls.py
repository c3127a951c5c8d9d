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
    check_flag,
    check_hook,
    check_on,
    check_place,
    check_switch,
)
from dumpscope_capture.ptdbg.core import current_capture
from dumpscope_capture.ptdbg.errors import Code, CompareException, DumpException, ParameterError


def configure(
    generation: str | None = None,
    layout: str | None = None,
    wrap_ops: str | None = None,
    leave_out: Sequence[str] | None = None,
) -> None:
    """Choose the file format, and which calls are nodes. Arguments that are not given stay as they are.

    generation: "2.3", "4.0" or "6.0"; without it a path that ends in .pkl means 2.3 and any other 6.0
    layout: "ptdbg" (.pkl and .npy files) or "msprobe" (dump.json)
    wrap_ops: a file in the form of support_wrap_ops.yaml; leave_out: names of operators that are not recorded
    Raises ParameterError.
    """
    capture = current_capture()
    with capture.guard:
        words = None if leave_out is None else leave_out if isinstance(leave_out, str) else list(leave_out)
        capture.settings = capture.settings.with_changes(generation, layout, wrap_ops, words)  # type: ignore[arg-type]
        capture.apply()


def seed_all(seed: int = 1234, mode: bool = False) -> None:
    """Seed random, numpy and torch on every device. mode: deterministic kernels too. Raises ParameterError."""
    try:
        seeding.seed_all(seed, mode)
    except ConfigError as error:
        raise ParameterError(error.key, error.value, error.allowed) from error


def set_dump_path(fpath: str | os.PathLike[str] | None = None, dump_tag: str = DEFAULT_TAG) -> None:
    """Set the .pkl file (2.3) or the folder to dump to; None takes $ASCEND_WORK_PATH/dump_data. Raises DumpException."""
    current_capture().set_place(check_place(fpath, dump_tag))


def acc_cmp_dump(*unused: Any, **unused_too: Any) -> None:
    """The dump hook, for `register_hook`."""


def overflow_check(*unused: Any, **unused_too: Any) -> None:
    """The overflow hook, for `register_hook`."""


def register_hook(model: Any, hook: Any, **options: Any) -> None:
    """Choose what is recorded. May be called again, before or after the other functions, and before there is a model.

    model: ignored, as all calls of the process are seen; with dump_mode="model" the model whose modules are recorded
    hook: acc_cmp_dump or overflow_check
    options: overflow_nums (1; -1 for no limit), dump_mode ("api", "acl", "model"), dump_config (a dump.json, for acl), rank,
        dump_step, need_replicate
    Raises CompareException: code 11 for a wrong option, 15 if the device does not support it.
    """
    wanted = check_hook(hook, options)
    by_modules = wanted.dump_mode == "model"
    if by_modules and not isinstance(model, torch.nn.Module):
        raise ParameterError("model", type(model).__name__, "an nn.Module, with dump_mode model")
    capture = current_capture()
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
    """Switch dumping "ON" or "OFF".

    mode: all, list, range, stack, acl, api_list or api_stack; scope: names of calls; api_list: names of operators
    filter_switch: ON leaves out numbers, whole-number tensors and those without dimensions or elements; the default is ON for
        generation 2.3 and OFF for later ones
    dump_mode: any of all, forward, backward, input, output; summary_only: no .npy files
    Raises CompareException with code 11.
    """
    on = check_on("switch", switch)
    summary = "summary" if check_flag("summary_only", summary_only) else "all"
    if on:
        current_capture().turn_on(check_switch(mode, scope, api_list, filter_switch, dump_mode, summary))
    else:
        current_capture().turn_off()


def set_overflow_check_switch(switch: str, filter_switch: str | None = None) -> None:
    """Switch the overflow check "ON" or "OFF"; without this call it is on. Raises CompareException."""
    on = check_on("switch", switch)
    filtered = None if filter_switch is None else check_on("filter_switch", filter_switch)
    capture = current_capture()
    if on:
        capture.turn_on(Switch(filtered=filtered))
    else:
        capture.turn_off(check=True)


def set_backward_input(backward_input: Sequence[str]) -> None:
    """Set the .npy file with the gradient for the acl dump of a backward. Raises DumpException."""
    if not isinstance(backward_input, (list, tuple)) or not backward_input:
        raise ParameterError("backward_input", backward_input, "a list with the path of one .npy file")
    for path in backward_input:
        if not isinstance(path, (str, os.PathLike)) or not os.path.isfile(path):
            raise DumpException(Code.INVALID_PATH, f"backward_input: there is no file {path!r}")
    capture = current_capture()
    with capture.guard:
        capture.backward_input = tuple(str(os.fspath(path)) for path in backward_input)
        capture.apply()


def module_dump(module: torch.nn.Module, module_name: str) -> None:
    """Record only this module until `module_dump_end`. Raises DumpException with code 11."""
    if not isinstance(module, torch.nn.Module) or isinstance(module, torch.jit.ScriptModule):
        raise DumpException(
            Code.INVALID_PARAM, f"module is a {type(module).__name__}; it must be an nn.Module, not scripted"
        )
    if not isinstance(module_name, str) or not module_name:
        raise DumpException(Code.INVALID_PARAM, f"module_name is {module_name!r}; it must be a text")
    capture = current_capture()
    with capture.guard:
        if capture.model is not None:
            raise CompareException(Code.INVALID_PARAM, "module_dump cannot be used together with model=")
        capture.narrowed = (module, module_name)
        if capture.session is not None:
            capture.session.narrow(module, module_name)


def module_dump_end() -> None:
    """Undo `module_dump`."""
    capture = current_capture()
    with capture.guard:
        capture.narrowed = None
        if capture.session is not None:
            capture.session.widen()


def parse(pkl_file: str, module_name_prefix: str | None = None, *, moudule_name_prefix: str | None = None) -> None:
    """Print statistics and stacks of names that begin with a prefix (moudule_name_prefix is how 2.3 spells it).

    Raises CompareException.
    """
    _call("parse", pkl_file, moudule_name_prefix if module_name_prefix is None else module_name_prefix)


def compare(
    input_param: Mapping[str, Any],
    output_path: str,
    stack_mode: bool | None = None,
    auto_analyze: bool = True,
    fuzzy_match: bool | str = False,
    suffix: str = "",
) -> Any:
    """Compare two dumps, write a table to `output_path` and print the advice. stack_mode: None shows stacks if there are any;
    fuzzy_match: a text is taken as the suffix, as in 2.3.

    Raises CompareException.
    """
    return _call(
        "compare", input_param, output_path, stack_mode=stack_mode, auto_analyze=auto_analyze, fuzzy_match=fuzzy_match,
        suffix=suffix,
    )  # fmt: skip


def compare_distributed(*folders: Any, **options: Any) -> Any:
    """Compare two folders of ranks, a table a rank: npu_dump_dir, bench_dump_dir (npu_dir, bench_dir in 6.0), output_path.

    Raises CompareException.
    """
    for name in ("npu_dir", "bench_dir"):
        if name in options:
            options[name.replace("_dir", "_dump_dir")] = options.pop(name)
    return _call("compare_distributed", *folders, **options)


def _call(name: str, *args: Any, **options: Any) -> Any:
    try:
        server: Any = importlib.import_module("dumpscope.ptdbg")
    except ImportError as error:
        raise CompareException(
            Code.UNKNOWN,
            f"{name} needs the part of dumpscope that reads and compares dumps, which is not installed here: "
            f"pip install . in a clone of it ({error})",
        ) from error
    return getattr(server, name)(*args, **options)
