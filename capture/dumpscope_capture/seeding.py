"""Reproducible runs: seeds, deterministic kernels, dropout off, and a record of every use of random numbers."""

from __future__ import annotations

import csv
import importlib
import os
import random
import sys
import time
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any, Final

import torch

from dumpscope_capture.config import ConfigError
from dumpscope_capture.context import LOG, call_stack, peek, rank
from dumpscope_capture.optional_numpy import np

SEED_LIMIT: Final = 2**32 - 1
_DROPOUTS: Final = ("dropout", "dropout1d", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout")
_ASCEND: Final = {
    "HCCL_DETERMINISTIC": "True", "LCCL_DETERMINISTIC": "1", "CLOSE_MATMUL_K_SHIFT": "1", "ATB_LLM_LCOC_ENABLE": "0",
}  # fmt: skip
_RANDOM: Final = {
    "random": (
        "random", "randint", "randrange", "uniform", "choice", "choices", "sample", "shuffle", "gauss", "normalvariate",
        "triangular", "betavariate", "expovariate", "gammavariate", "lognormvariate", "vonmisesvariate", "paretovariate",
        "weibullvariate", "getrandbits", "randbytes",
    ),
    "numpy.random": (
        "rand", "randn", "randint", "random", "random_sample", "ranf", "sample", "bytes", "choice", "shuffle", "permutation",
        "beta", "binomial", "chisquare", "dirichlet", "exponential", "f", "gamma", "geometric", "gumbel", "hypergeometric",
        "laplace", "logistic", "lognormal", "logseries", "multinomial", "multivariate_normal", "negative_binomial",
        "noncentral_chisquare", "noncentral_f", "normal", "pareto", "poisson", "power", "rayleigh", "standard_cauchy",
        "standard_exponential", "standard_gamma", "standard_normal", "standard_t", "triangular", "uniform", "vonmises",
        "wald", "weibull", "zipf",
    ),
    "torch": (
        "rand", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm", "bernoulli", "multinomial",
        "normal", "poisson",
    ),
    "torch.Tensor": (
        "bernoulli", "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_", "uniform_",
        "multinomial",
    ),
}  # fmt: skip

_ACCELERATORS: Final = ("cuda", "npu", "xpu", "mps", "hpu", "mlu", "musa", "mtia")

_replaced: dict[tuple[int, str], tuple[Any, Any]] = {}

switches: Final = {"rm_dropout": False, "is_enhanced": False}
"""What `seed_all` has switched, for run.json."""


def seed_all(seed: int = 1234, mode: bool = False, rm_dropout: bool = False, is_enhanced: bool = False) -> None:
    """Seed random, numpy and torch on every device.

    mode: also deterministic kernels; False leaves the program's setting
    rm_dropout: dropout drops nothing
    is_enhanced: each call of a random function starts from the seed's state, so that an extra call does not change later ones
    Raises ConfigError.
    """
    if isinstance(seed, bool) or not isinstance(seed, int) or not 0 <= seed <= SEED_LIMIT:
        raise ConfigError("seed", seed, f"a number from 0 to {SEED_LIMIT}")
    for key, value in (("mode", mode), ("rm_dropout", rm_dropout), ("is_enhanced", is_enhanced)):
        if not isinstance(value, bool):
            raise ConfigError(key, value, "True or False")
    random.seed(seed)
    os.environ["PYTHONHASHSEED"] = str(seed)
    if np is not None:
        np.random.seed(seed)
    torch.manual_seed(seed)
    if mode:
        torch.use_deterministic_algorithms(True)
    _seed_devices(seed)
    if rm_dropout:
        remove_dropout()
    if is_enhanced:
        switches["is_enhanced"] = True
        state = _States()
        for owner, name in _random_functions():
            _replace(owner, name, lambda function, label: _from_state(function, state))


def _seed_devices(seed: int) -> None:
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    if torch.cuda.is_available():
        torch.cuda.manual_seed_all(seed)
        os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
    npu: Any = peek(sys.modules.get("torch_npu"), "npu")
    if npu is not None and npu.is_available():
        npu.manual_seed_all(seed)
        os.environ.update(_ASCEND)


def remove_dropout() -> None:
    """Replace torch's dropout functions, once, by functions that drop nothing."""
    if switches["rm_dropout"]:
        return
    switches["rm_dropout"] = True
    for name in _DROPOUTS:
        _replace(torch.nn.functional, name, lambda function, path: _without_dropping(function))


def _without_dropping(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call_without_dropping(input: torch.Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Any:
        return function(input, 0.0, training, inplace)

    return call_without_dropping


def random_save(output_path: str = "./output") -> Path:
    """Log every random call from now on to `random_rank0_TIME.csv`, with its name and stack.

    Returns the file's path. Raises OSError where it cannot be made.
    """
    folder = Path(output_path)
    folder.mkdir(parents=True, exist_ok=True)
    number = rank()
    who = f"proc{os.getpid()}" if number is None else f"rank{number}"
    path = folder / f"random_{who}_{time.strftime('%Y%m%d%H%M%S')}.csv"
    with open(path, "w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerow(["api_name", "stack"])
    for owner, name in _random_functions():
        _replace(owner, name, lambda function, label: _log_calls(function, label, path))
    return path


def _log_calls(function: Callable[..., Any], label: str, path: Path) -> Callable[..., Any]:
    @wraps(function)
    def log_and_call(*args: Any, **kwargs: Any) -> Any:
        try:
            with open(path, "a", newline="", encoding="utf-8") as out:
                csv.writer(out).writerow([label, "\n".join(call_stack(sys._getframe(1)))])
        except OSError as error:
            LOG.warning("%s cannot be written: %s", path, error)
        return function(*args, **kwargs)

    return log_and_call


class _States:
    """The state of all generators at one moment."""

    def __init__(self) -> None:
        self._python = random.getstate()
        self._numpy = np.random.get_state() if np is not None else None
        self._torch = torch.get_rng_state()
        self._devices = [(set_all, get_all()) for get_all, set_all in _device_states()]

    def restore(self) -> None:
        random.setstate(self._python)
        if np is not None:
            np.random.set_state(self._numpy)
        torch.set_rng_state(self._torch)
        for set_all, state in self._devices:
            set_all(state)


def _device_states() -> Iterator[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """(read, write) the states of all generators of each kind of accelerator that this machine has."""
    for kind in _ACCELERATORS:
        backend = peek(torch, kind)
        available = peek(backend, "is_available")
        if available is None and kind == "mps":
            available = torch.backends.mps.is_available
        if available is None or not available():
            continue
        for ending in ("_all", ""):  # some kinds have one generator only
            read, write = peek(backend, f"get_rng_state{ending}"), peek(backend, f"set_rng_state{ending}")
            if read is not None and write is not None:
                yield read, write
                break


def _from_state(function: Callable[..., Any], state: _States) -> Callable[..., Any]:
    @wraps(function)
    def call_from_state(*args: Any, **kwargs: Any) -> Any:
        state.restore()
        try:
            return function(*args, **kwargs)
        finally:
            state.restore()

    return call_from_state


def _random_functions() -> Iterator[tuple[Any, str]]:
    for path, names in _RANDOM.items():
        owner = torch.Tensor if path == "torch.Tensor" else importlib.import_module(path)
        for name in names:
            if hasattr(owner, name):
                yield owner, name


def _replace(owner: Any, name: str, wrap: Callable[[Callable[..., Any], str], Callable[..., Any]]) -> None:
    function = getattr(owner, name)
    label = f"{getattr(owner, '__module__', '') + '.' if isinstance(owner, type) else ''}{owner.__name__}.{name}"
    _replaced.setdefault((id(owner), name), (owner, function))
    setattr(owner, name, wrap(function, label))


def undo() -> None:
    """Put back every function that was replaced."""
    for (_, name), (owner, function) in _replaced.items():
        setattr(owner, name, function)
    _replaced.clear()
    switches.update(dict.fromkeys(switches, False))
