"""One call of an operator on disk, whole enough to be run again: layout and record types.

    saved_calls/Functional.group_norm.3/
      call.json         what the call is given, and the state of torch it runs in; written before it executes, last of its files
      storage.0.pt ...  bytes of the storages behind its tensors: one-dimensional uint8 tensors
      rng.cpu.pt ...    states of the random generators
      results.json      what it gave; absent where it never returned
      gradients.json    gradients of its results; absent until one arrives, written before its backward executes

The JSON files are strict JSON. Each is complete where it exists: files it names are written before it, and it is renamed
into place.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NotRequired, TypedDict

from dumpscope_format.paths import file_name, safe_join

SCHEMA: Final = 1
SAVED_CALLS: Final = "saved_calls"
CALL_JSON: Final = "call.json"
RESULTS_JSON: Final = "results.json"
GRADIENTS_JSON: Final = "gradients.json"

TAGS: Final = (
    "tensor", "array", "number", "float", "complex", "tuple", "named_tuple", "dict", "slice", "ellipsis", "dtype", "device",
    "size", "memory_format", "layout", "generator", "bytes", "opaque",
)  # fmt: skip
"""What `type` says of a value that JSON has no form for. Null, booleans, whole numbers, finite floats, texts and lists stand
as they are.

    tensor, array   tensor: place in the table `tensors` (an array is a numpy array, kept as a tensor)
    number          class, value: a numpy scalar, an enum, or another subclass of int, float, str
    float           value: "nan", "inf" or "-inf"            complex   value: [real, imaginary], each a value
    tuple           items                                    dict      items: [[key, value], ...] in order; class where not dict
    named_tuple     class: "module:Name", items              slice     items: start, stop, step
    dtype, device, memory_format, layout   value: "float16", "npu:0", "channels_last", "strided"
    size            value: whole numbers                     bytes     value: hexadecimal
    generator       device, and file with its state          opaque    class, text: cannot be rebuilt; whoever loads gives one
"""

Value = Any
"""Null, bool, int, float, str, a list of values, or an object with `type`."""


class Storage(TypedDict):
    """Bytes behind tensors. total: of the storage in the run; start: where those in the file begin; nbytes: how many they are.

    exact: they are the run's own bytes; else only the elements of the tensors are kept, at their places, and zeros lie between
    """

    file: str
    start: int
    nbytes: int
    total: int
    crc32: str
    exact: bool


class Tensor(TypedDict):
    """A tensor over a storage. stride, offset: in elements; two values that were one object share an entry.

    device: where it lay, "npu:0"; format: of its storage on an NPU, null elsewhere (its bytes are in plain order all the same)
    leaf: it was no result of another call; alignment: greatest power of two up to 4096 that divided its address, 0 for none
    conj, neg: lazy bits of torch; parameter: it was an nn.Parameter
    """

    storage: int
    dtype: str
    shape: list[int]
    stride: list[int]
    offset: int
    device: str
    requires_grad: bool
    leaf: bool
    contiguous: bool
    memory_format: str
    format: int | None
    alignment: int
    parameter: bool
    conj: NotRequired[bool]
    neg: NotRequired[bool]


class Tables(TypedDict):
    """What values of the same file refer to by place."""

    tensors: list[Tensor]
    storages: list[Storage]


class Api(TypedDict):
    """What was called. target: where it can be imported, "torch.nn.functional.group_norm"; null where no name leads to it."""

    prefix: str
    name: str
    target: str | None


class CallFile(Tables):
    """call.json. autocast: by device type; rng: state file by device; modes: switches of torch by name.

    module: node of the enclosing module
    """

    schema: int
    name: str
    api: Api
    args: list[Value]
    kwargs: dict[str, Value]
    stack: list[str]
    module: str | None
    step: int | None
    rank: int | None
    modes: dict[str, bool]
    autocast: dict[str, dict[str, Any]]
    rng: dict[str, str]
    versions: dict[str, str]
    devices: list[str]
    numerics: dict[str, Any]
    seeds: dict[str, Any]
    environment: dict[str, str]


class ResultsFile(Tables):
    """results.json. substituted: how an intervention ran the call, null where it ran as it is."""

    schema: int
    result: Value
    substituted: str | None


class GradientsFile(Tables):
    """gradients.json. gradients: one a differentiable tensor of the result, containers flattened; null where none has come."""

    schema: int
    gradients: list[Value]


class SavedCallError(ValueError):
    """A saved call that cannot be used: which file, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The JSON files of a saved call. results: None where it never returned; gradients: None where none has come."""

    folder: Path
    call: CallFile
    results: ResultsFile | None
    gradients: GradientsFile | None

    def file(self, name: str) -> Path:
        """Path of a file that a document names. Raises SavedCallError where it leads out of the folder."""
        try:
            return Path(safe_join(str(self.folder), name))
        except ValueError as error:
            raise SavedCallError(f"{self.folder}: {error}") from None


def call_folder(name: str) -> str:
    """Path of a saved call below the folder of a rank. name: of the call, `Functional.group_norm.3`."""
    return f"{SAVED_CALLS}/{file_name(bare(name), '')}"


def bare(name: str) -> str:
    """A call's name without direction: `Functional.group_norm.3.forward` becomes `Functional.group_norm.3`."""
    return name.removesuffix(".forward").removesuffix(".backward")


def find(folder: str | os.PathLike[str]) -> list[Path]:
    """Saved calls at or below a folder, in order of their paths."""
    return sorted(path.parent for path in Path(folder).rglob(CALL_JSON))


def read(path: str | os.PathLike[str]) -> Documents:
    """Read the documents of a saved call. path: its folder, or its call.json. Raises SavedCallError."""
    folder = Path(path)
    folder = folder.parent if folder.name == CALL_JSON else folder
    call = _object(folder / CALL_JSON)
    if call is None:
        raise SavedCallError(f"{folder} holds no {CALL_JSON}: it is no saved call, or its writing was cut off")
    if call.get("schema") != SCHEMA:
        raise SavedCallError(f"{folder / CALL_JSON} is of schema {call.get('schema')!r}; this version reads {SCHEMA}")
    missing = [key for key in ("name", "api", "args", "kwargs", "tensors", "storages") if key not in call]
    if missing:
        raise SavedCallError(f"{folder / CALL_JSON} lacks {', '.join(missing)}")
    found: Any = {
        "call": call,
        "results": _object(folder / RESULTS_JSON),
        "gradients": _object(folder / GRADIENTS_JSON),
    }
    return Documents(folder=folder, **found)


def _object(path: Path) -> dict[str, Any] | None:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise SavedCallError(f"{path} cannot be read: {error}") from error
    try:
        data = json.loads(text, parse_constant=_refuse)
    except ValueError as error:
        raise SavedCallError(f"{path} is damaged: {error}") from error
    if not isinstance(data, dict):
        raise SavedCallError(f"{path} holds no JSON object")
    return data


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
