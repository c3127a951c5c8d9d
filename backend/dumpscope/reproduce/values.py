"""Records of a dump as values of a call document (dumpscope_format.replay)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from dumpscope.errors import UsageError
from dumpscope.texts import say

NOT_FINITE: Final = ("nan", "inf", "-inf")
_NUMBERS: Final = ("int", "float", "bool")
_TENSORS: Final = ("torch.Tensor", "torch.nn.parameter.Parameter", "numpy.ndarray")
_SPARSE: Final = ("sparse_coo", "sparse_csr", "sparse_csc")
"""Layouts that a tensor with its zeros is brought into without more being known."""


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
            raise UsageError(say("reproduce.dump_holds_no_value_names_neither", item=item))
        kind = record.get("type")
        if not isinstance(kind, str):
            if "class_type" in record:
                raise UsageError(say("reproduce.which_needs_other_ranks", item=item, record=record["class_type"]))
            return {"dict": {key: self.value(part, f"{item}.{key}") for key, part in record.items()}}
        if "dtype" in record and "shape" in record:
            return self._tensor(record, item, kind)
        return scalar(kind, record, item)

    def _tensor(self, record: Mapping[str, Any], item: str, kind: str) -> dict[str, Any]:
        if kind not in _TENSORS:
            raise UsageError(say("reproduce.whose_parts_not_dump", item=item, kind=kind))
        dtype, shape = record["dtype"], record["shape"]
        if not isinstance(dtype, str) or not isinstance(shape, list):
            raise UsageError(say("reproduce.record_names_no_type_shape", item=item))
        if isinstance(record.get("whole_shape"), list):
            raise UsageError(say("reproduce.part_of_tensor", item=item, whole=str(record["whole_shape"])))
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
        layout = record.get("layout")
        if isinstance(layout, str) and "absent" not in record:
            if layout not in _SPARSE:
                raise UsageError(say("reproduce.of_layout", item=item, layout=layout))
            made["layout"] = layout
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
            raise UsageError(say("reproduce.slice_whose_bound_not_dump", item=item))
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
        raise UsageError(say("reproduce.whose_value_not_dump", item=item, kind=kind))
    raise UsageError(say("reproduce.which_cannot_made_again_from", item=item, kind=kind, value=f"{str(value)[:60]!r}"))
