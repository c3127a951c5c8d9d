"""Decides when to use the compiled kernel: for contiguous pairs of float32, bfloat16 or float16, if there is much data.

Numba and the kernel take a third of a second to load, so a process loads them only after some data went through the numpy
kernel. Compiling them, once per machine, takes ten seconds of a processor: nobody waits for that, except where the numpy kernel
would take three times as long. Without numba the numpy kernel measures everything; both give the same numbers.
"""

from __future__ import annotations

import importlib
import logging
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import ml_dtypes
import numpy as np

from dumpscope.domain.records import Int64
from dumpscope.metrics import numpy_kernel
from dumpscope.metrics.histogram import ULP_BINS
from dumpscope.metrics.partial import Partial
from dumpscope.metrics.stretches import IN_MEMORY, Pair, Place, address
from dumpscope.metrics.ulps import Raw

_LOG: Final = logging.getLogger(__name__)

LOAD_AT: Final = 128 << 20
"""Bytes of suitable pairs (both sides) after which the kernel is loaded: numpy needs as long for them as loading takes, a third
of a second."""

COMPILE_AT: Final = 8 << 30
"""Bytes of a comparison from which a kernel that was never compiled on this machine is compiled at once: numpy needs three times
as long for them. For less, another process compiles it while the processor is idle, for the next comparison."""

SMALLEST: Final = 64
"""Smaller pairs use the numpy kernel: very small tensors should not count towards loading the compiled kernel."""

_FLOAT32, _BFLOAT16, _FLOAT16 = 0, 1, 2
_FORMS: Final = {
    np.dtype(np.float32): _FLOAT32,
    np.dtype(ml_dtypes.bfloat16): _BFLOAT16,
    np.dtype(np.float16): _FLOAT16,
}
_UNITS: Final = {
    (_FLOAT32, _FLOAT32): _FLOAT32,
    (_BFLOAT16, _BFLOAT16): _BFLOAT16,
    (_FLOAT16, _FLOAT16): _FLOAT16,
    (_FLOAT32, _BFLOAT16): _BFLOAT16,
    (_BFLOAT16, _FLOAT32): _BFLOAT16,
}


class _Loader:
    """Loads the kernel once per process, after enough bytes were compared."""

    def __init__(self) -> None:
        self._compiler: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._met = self._total = 0
        self._tried = False
        self._module: ModuleType | None = None

    def module(self, more: int) -> ModuleType | None:
        """The kernel's module if it is worth loading. more: bytes of the current pair. Others use numpy while it loads."""
        if self._tried or not self._lock.acquire(blocking=False):
            return self._module
        try:
            self._met += more
            self._total += more
            if self._met >= LOAD_AT and not self._tried:
                self._load()
        finally:
            self._lock.release()
        return self._module

    def _load(self) -> None:
        """Load the kernel, or let another process compile it: then look again after as many bytes."""
        if self._total < COMPILE_AT and self._compiler is not None and self._compiler.poll() is None:
            self._met = 0
            return
        try:
            ready = self._total >= COMPILE_AT or is_compiled()
        except Exception:  # the import below tells why
            ready = True
        if ready:
            self._module = _import_kernel()
            self._tried = True
            return
        if self._compiler is None:
            self._compiler = _start_compiler()
        self._met = 0


def is_compiled() -> bool:
    """Whether an earlier process stored the machine code. Imports numba."""
    from dumpscope.numba_support import has_code  # noqa: PLC0415

    compare = importlib.import_module("dumpscope.metrics.native.fused").compare
    arguments = np.zeros(1, np.int64), 0.0, False, np.zeros(1, np.int64), np.zeros(1, np.int64)
    return has_code(compare, arguments)


def _start_compiler() -> subprocess.Popen[bytes] | None:
    """A process that compiles the kernel and stores it; it outlives this one."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        return subprocess.Popen(
            [sys.executable, "-c", f"from {__name__} import compile_kernel; compile_kernel()"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True, cwd=Path(__file__).parent, env=environment,
        )  # fmt: skip
    except OSError as error:
        _LOG.info("the compiled kernel cannot be made by another process: %r", error)
        return None


def compile_kernel() -> None:
    """Compile and store the kernel, only while the processor has nothing else to do, and only in one process at a time."""
    if hasattr(os, "SCHED_IDLE"):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    elif hasattr(os, "nice"):
        os.nice(19)
    from dumpscope.numba_support import code_folder  # noqa: PLC0415

    folder = code_folder(importlib.import_module("dumpscope.metrics.native.fused").compare)
    if folder is not None and _is_alone(folder):
        _import_kernel()


def _is_alone(folder: Path) -> bool:
    """Whether no other process compiles into this folder; none will as long as this one lives."""
    if os.name != "posix":
        return True
    import fcntl  # noqa: PLC0415

    folder.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(folder / "dumpscope-kernel.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return False
    return True


def _import_kernel() -> ModuleType | None:
    """The compiled kernel, if numba is installed and the kernel reproduces numpy's results (a cache folder may hold old code).

    If it cannot be used, the reason is logged, once per process.
    """
    try:
        module = importlib.import_module("dumpscope.metrics.native.fused")
        if _agrees(module):
            return module
    except Exception as error:  # no numba, no disk, unsupported processor: numpy does the work
        _LOG.info("tensors are compared by numpy alone, the compiled kernel cannot be loaded: %r", error)
        return None
    _LOG.warning(
        "the compiled kernel does not give the numbers of the numpy kernel and is not used: comparing takes longer;"
        " if the package was changed, remove its __pycache__ folders"
    )
    return None


def _agrees(module: ModuleType) -> bool:
    values = np.linspace(-3, 5, 2500, dtype=np.float32)
    values[7] = np.nan
    noisy = values * np.geomspace(1 - 1e-6, 1.9, values.size, dtype=np.float32)
    for dtype, form in _FORMS.items():
        target, golden = values.astype(dtype), noisy.astype(dtype)
        plan = numpy_kernel.plan_pair(target.dtype, golden.dtype)
        for sampled in (False, True):
            kernel = FusedKernel(module, form, form, form)
            ours = kernel(Pair(target, golden), 0, target.size, plan.eps, detail=True, sampled=sampled)
            theirs = Partial()
            with np.errstate(all="ignore"):
                numpy_kernel.measure(target, golden, plan, 0, theirs, detail=True, sampled=sampled)
            if not ours.matches(theirs):
                return False
    return True


_loader: Final = _Loader()


def load_kernel(size: int) -> bool:
    """Load the kernel now if `size` bytes will be compared, so that threads start with it. Returns whether it is loaded."""
    return _loader.module(size if size >= LOAD_AT else 0) is not None


def kernel_formats(target: np.dtype[Any], golden: np.dtype[Any]) -> tuple[int, int, int] | None:
    """The kernel's names for both dtypes and for the one whose steps are counted; None for a pair it does not know."""
    first, second = _FORMS.get(target), _FORMS.get(golden)
    unit = _UNITS.get((first, second))  # type: ignore[arg-type]
    return None if first is None or second is None or unit is None else (first, second, unit)


def kernel_for(target: Raw, golden: Raw) -> FusedKernel | None:
    """The compiled kernel for two flat contiguous arrays; None if they need the numpy kernel."""
    if target.size < SMALLEST:
        return None
    known = kernel_formats(target.dtype, golden.dtype)
    if known is None:
        return None
    module = _loader.module(target.nbytes + golden.nbytes)
    return None if module is None else FusedKernel(module, *known)


class FusedKernel:
    """Measures stretches of one pair."""

    __slots__ = ("_golden_form", "_module", "_target_form", "_unit")

    def __init__(self, module: ModuleType, target_form: int, golden_form: int, unit: int) -> None:
        self._module = module
        self._target_form = target_form
        self._golden_form = golden_form
        self._unit = unit

    def __call__(self, pair: Pair, start: int, stop: int, eps: float, *, detail: bool, sampled: bool) -> Partial:
        """Measure elements start..stop."""
        fused = self._module
        results, ulps = _empty_results(fused), np.zeros(ULP_BINS, np.int64)

        def measure(first: int, size: int, target: Place, golden: Place, buffer: int) -> None:
            sides = (*reversed(target), self._target_form, *reversed(golden), self._golden_form)
            stretch = (*sides, size, first, self._unit, sampled, buffer)
            fused.compare(np.array(stretch, np.int64), eps, detail, ulps, results)

        direct = pair.readable and fused.READS
        if direct:
            with pair.places(start) as (target, golden, buffer):
                measure(start, stop - start, target, golden, buffer)
        if not direct or results[fused.CUT]:
            results, ulps = _empty_results(fused), np.zeros(ULP_BINS, np.int64)
            for first, some, others in pair.parts(start, stop):  # the file was cut meanwhile
                one, other = _aligned(some), _aligned(others)
                measure(first, one.size, (IN_MEMORY, address(one)), (IN_MEMORY, address(other)), 0)
        return _partial(fused, results, stop - start, ulps)


def _empty_results(fused: ModuleType) -> Int64:
    """Start values for the kernel's results, shape (RESULTS,)."""
    results = np.zeros(fused.RESULTS, dtype=np.int64)
    results[fused.MAX_AT] = -1
    return results


def _partial(fused: ModuleType, results: Int64, elements: int, ulps: Int64) -> Partial:
    """The kernel's results as a Partial over so many elements; ulps: their histogram."""
    number = results[: fused.ABS_DECADES].tolist()
    real = results.view(np.float64)[: fused.ABS_DECADES].tolist()
    return Partial(
        elements=elements,
        excluded=number[fused.EXCLUDED],
        unequal=number[fused.UNEQUAL],
        nonfinite_target=number[fused.BAD_TARGET],
        nonfinite_golden=number[fused.BAD_GOLDEN],
        disagree=number[fused.DISAGREE],
        products=real[fused.PRODUCTS],
        targets=real[fused.TARGETS],
        goldens=real[fused.GOLDENS],
        differences=real[fused.DIFFERENCES],
        max_abs=real[fused.MAX_ABS],
        max_at=number[fused.MAX_AT],
        max_rel=real[fused.MAX_REL],
        below_1e3=number[fused.BELOW_1E3] - number[fused.DISAGREE],
        below_5e3=number[fused.BELOW_5E3] - number[fused.DISAGREE],
        max_ulp=number[fused.MAX_ULP],
        ulps=ulps,
        abs_decades=results[fused.ABS_DECADES : fused.REL_DECADES],
        rel_decades=results[fused.REL_DECADES :],
    )


def _aligned(values: Raw) -> Raw:
    return values if values.flags.aligned else values.copy()
