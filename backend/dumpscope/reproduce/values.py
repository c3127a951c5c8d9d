"""Records of a dump as values of a call document (dumpscope_format.replay)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dumpscope.errors import UsageError

NOT_FINITE: Final = ("nan", "inf", "-inf")
_NUMBERS: Final = ("int", "float", "bool")
_TENSORS: Final = ("torch.Tensor", "torch.nn.parameter.Parameter", "numpy.ndarray")


class Reader:
    """Turns records into values.

    item: where a value stands, `input.0`; containers, storage: our own keys of the node, by item
    """

    def __init__(self, containers: Mapping[str, str], storage: Mapping[str, str]) -> None:
        self._containers = containers
        self._storage = storage

    def value(self, record: Any, item: str) -> Any:
        """Raises UsageError for a value that the dump does not hold."""
        if isinstance(record, list):
            parts = [self.value(part, f"{item}.{place}") for place, part in enumerate(record)]
            return {"tuple": parts} if self._containers.get(item, "list") not in ("list", "torch.Size") else parts
        if not isinstance(record, dict):
            return record
        if not record:
            raise UsageError(f"the dump holds no value of {item}: it names neither type nor number")
        kind = record.get("type")
        if not isinstance(kind, str):
            if "class_type" in record:
                raise UsageError(f"{item} is a {record['class_type']}, which needs the other ranks")
            return {"dict": {key: self.value(part, f"{item}.{key}") for key, part in record.items()}}
        if "dtype" in record and "shape" in record:
            return self._tensor(record, item, kind)
        return scalar(kind, record, item)

    def _tensor(self, record: Mapping[str, Any], item: str, kind: str) -> dict[str, Any]:
        if kind not in _TENSORS:
            raise UsageError(f"{item} is a {kind}, whose parts are not in the dump")
        dtype, shape = record["dtype"], record["shape"]
        if not isinstance(dtype, str) or not isinstance(shape, list):
            raise UsageError(f"the record of {item} names no type or shape")
        made: dict[str, Any] = {"tensor": item, "dtype": dtype.removeprefix("torch."), "shape": shape}
        if record.get("requires_grad"):
            made["requires_grad"] = True
        if isinstance(record.get("data_name"), str) and record["data_name"] != "-1":
            made["file"] = record["data_name"]
        for key, word in (("Min", "min"), ("Max", "max")):
            if record.get(key) is not None:
                made[word] = record[key]
        counts = {key: count for key, count in (record.get("counts") or {}).items() if key in NOT_FINITE}
        if counts:
            made["counts"] = counts
        if isinstance(record.get("stride"), list):
            made["stride"] = record["stride"]
        if item in self._storage:
            made["device"] = self._storage[item]
        return made


def scalar(kind: str, record: Mapping[str, Any], item: str) -> Any:
    """A value that is no tensor."""
    value = record.get("value", record.get("format"))
    if kind == "slice" and isinstance(value, list):
        if any(isinstance(part, str) for part in value):
            raise UsageError(f"{item} is a slice whose bound is not in the dump")
        return {"slice": value}
    if kind in ("ellipsis", "Ellipsis"):
        return {"ellipsis": True}
    if kind == "torch.Size":
        return {"size": value}
    if kind in ("torch.dtype", "torch.memory_format", "torch.layout"):
        return {kind.removeprefix("torch."): str(value).removeprefix("torch.")}
    if kind == "torch.device":
        return {"device": str(value)}
    if kind == "complex":
        return {"complex": value} if isinstance(value, list) else value
    if kind == "str":
        return value
    if isinstance(value, str) and value in NOT_FINITE:
        return {"float": value}
    if isinstance(value, bool | int | float):
        return float(value) if kind == "float" else value
    if value is None and kind not in _NUMBERS:
        raise UsageError(f"{item} is a {kind}, whose value is not in the dump")
    raise UsageError(f"{item} is a {kind}, which cannot be made again from {str(value)[:60]!r}")
