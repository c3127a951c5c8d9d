"""Modules of ptdbg_ascend and msprobe that are this package, for a program that imports them: `run --as msprobe train.py`.

An old script stays as it is. Every module below the old name holds all names, wherever the old package keeps them.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

OLD: Final = ("ptdbg_ascend", "msprobe")


def is_installed(name: str) -> bool:
    """Whether the real package of this name can be imported here."""
    return find_spec(name) is not None


def stand_in(name: str) -> None:
    """From now on imports of the old package `name` (one of OLD) give this one's names."""
    sys.meta_path.insert(0, _Finder(name))
    for loaded in [one for one in sys.modules if one.split(".")[0] == name]:
        del sys.modules[loaded]


class _Finder(MetaPathFinder):
    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(self, fullname: str, _path: Sequence[str] | None = None, _target: Any = None) -> ModuleSpec | None:
        parts = fullname.split(".")
        if parts[0] != self._root:
            return None
        if self._root == "msprobe" and len(parts) > 1 and parts[1] != "pytorch":
            raise ModuleNotFoundError(
                f"{fullname} has no equivalent in dumpscope_capture, which records PyTorch: only msprobe.pytorch is replaced",
                name=fullname,
            )
        return ModuleSpec(fullname, _Names(), is_package=True)


class _Names(Loader):
    """Fills a module: the names come when they are asked for, as ptdbg_ascend seeds every generator when it is imported."""

    def create_module(self, _spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "msprobe":
            return
        if module.__name__.split(".")[0] == "ptdbg_ascend":
            source: ModuleType = importlib.import_module("dumpscope_capture.ptdbg")
            names = {name: getattr(source, name) for name in source.__all__}
        else:
            names = _msprobe_names()
        vars(module).update(names, __all__=sorted(names))


def _msprobe_names() -> dict[str, Any]:
    """What msprobe.pytorch exports, of both generations; its monitor and its helpers for inference are not here."""
    package: Any = importlib.import_module("dumpscope_capture")
    kept = ("PrecisionDebugger", "module_dump", "module_dump_end", "seed_all", "random_save")
    return {
        **{name: getattr(package, name) for name in kept},
        "compare": compare,
        "compare_distributed": compare_distributed,
    }


def compare(
    input_param: Mapping[str, Any],
    output_path: str,
    stack_mode: bool = False,
    auto_analyze: bool = True,
    fuzzy_match: bool = False,
    **options: Any,
) -> None:
    """msprobe's compare: `dumpscope compare` of `npu_path` and `bench_path` (`npu_json_path`, `bench_json_path` in its first
    guides) into `output_path`. Stacks and the cause are always shown.

    options: data_mapping, cell_mapping, layer_mapping: paths; others change nothing here
    Raises ValueError where a path is missing, RuntimeError where dumpscope is not installed or cannot compare.
    """
    del stack_mode, auto_analyze
    sides = [input_param.get(f"{side}_path", input_param.get(f"{side}_json_path")) for side in ("npu", "bench")]
    if not all(sides):
        raise ValueError("input_param needs npu_path and bench_path")
    _run(sides, output_path, fuzzy_match, options)


def compare_distributed(npu_dump_dir: str, bench_dump_dir: str, output_path: str, **options: Any) -> None:
    """msprobe's compare_distributed: `dumpscope compare` of two folders of ranks, all ranks together. Errors as `compare`."""
    _run([npu_dump_dir, bench_dump_dir], output_path, options.pop("fuzzy_match", False), options)


def _run(sides: Sequence[Any], output: str, fuzzy: bool, options: Mapping[str, Any]) -> None:
    try:
        server: Any = importlib.import_module("dumpscope.cli.app")
    except ImportError as error:
        raise RuntimeError(
            f"compare needs dumpscope, which is not installed here: pip install . in a clone of it ({error})"
        ) from error
    line = ["compare", *map(str, sides), "-o", str(output), "--jobs", "1"]
    line += ["--fuzzy"] if fuzzy else []
    for name in ("data_mapping", "cell_mapping", "layer_mapping"):
        if options.get(name):
            line += [f"--{name.replace('_', '-')}", str(options[name])]
    if server.status(line) == server.BAD_USAGE:
        raise RuntimeError(f"dumpscope could not compare {sides[0]} with {sides[1]}; the reason is printed above")
