"""One call of an operator on disk, complete enough to be run again: files and record types.

    saved_calls/Functional.group_norm.3/
      call.json         arguments and the state of torch; written before the call runs, as the last of these files
      storage.0.pt ...  bytes of the storages of its tensors: one-dimensional uint8 tensors
      rng.cpu.pt ...    states of the random generators
      results.json      results; absent if the call never returned
      gradients.json    gradients of its results; absent until one arrives, written before its backward runs

The JSON files are strict JSON. Each file that exists is complete: the files that it names are written first, and it is renamed
at the end.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final, TypedDict

from dumpscope_format.older_python import dataclass, without_suffix
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
"""Tags `type` of values without a JSON form. Null, booleans, whole numbers, finite floats, texts and lists are stored as JSON.

    tensor, array   tensor: place in the table `tensors` (an array is a numpy array, kept as a tensor)
    number          class, value: a numpy scalar, an enum, or another subclass of int, float, str
    float           value: "nan", "inf" or "-inf"            complex   value: [real, imaginary], each a value
    tuple           items                                    dict      items: [[key, value], ...] in order; class where not dict
    named_tuple     class: "module:Name", items              slice     items: start, stop, step
    dtype, device, memory_format, layout   value: "float16", "npu:0", "channels_last", "strided"
    size            value: whole numbers                     bytes     value: hexadecimal
    generator       device, and file with its state          opaque    class, text: cannot be rebuilt
"""

Value = Any
"""Null, bool, int, float, str, a list of values, or an object with `type`."""


class Storage(TypedDict):
    """Bytes of a storage. total: size in the run; start: offset of the first byte in the file; nbytes: size of the file's data.

    exact: the bytes of the run; else only the elements of the tensors are kept, with zeros between
    """

    file: str
    start: int
    nbytes: int
    total: int
    crc32: str
    exact: bool


class _AnyTensor(TypedDict):
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


class Tensor(_AnyTensor, total=False):
    """A tensor over a storage. stride, offset: in elements; two values that were one object share an entry.

    device: original device, "npu:0"; format: of its storage on an NPU, null elsewhere (the saved bytes are in plain order)
    leaf: it was not the result of another call; alignment: greatest power of two up to 4096 that divided its address, 0 for none
    conj, neg: lazy bits of torch; parameter: it was an nn.Parameter
    """

    conj: bool
    neg: bool


class Tables(TypedDict):
    """Tables to whose indices the values of the same file refer."""

    tensors: list[Tensor]
    storages: list[Storage]


class Api(TypedDict):
    """The called function. target: name to import it, "torch.nn.functional.group_norm"; null if there is none."""

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
    """results.json. substituted: treatment by an intervention, null if there was none."""

    schema: int
    result: Value
    substituted: str | None


class GradientsFile(Tables):
    """gradients.json. gradients: one for each differentiable tensor of the result, containers flattened; null if none arrived."""

    schema: int
    gradients: list[Value]


class SavedCallError(ValueError):
    """An unusable saved call: which file, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Documents:
    """The JSON files of a saved call. results: None if it never returned; gradients: None if none arrived."""

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
    """Path of a saved call in the folder of a rank. name: of the call, `Functional.group_norm.3`."""
    return f"{SAVED_CALLS}/{file_name(bare(name), '')}"


def bare(name: str) -> str:
    """A call's name without direction: `Functional.group_norm.3.forward` becomes `Functional.group_norm.3`."""
    return without_suffix(without_suffix(name, ".forward"), ".backward")


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
