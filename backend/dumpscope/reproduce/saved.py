"""A saved call (dumpscope_format.saved_call) as a call document: same bytes, strides, offsets and aliases."""

from __future__ import annotations

from typing import Any

from dumpscope.errors import UsageError
from dumpscope.texts import say
from dumpscope_format.replay import CallDocument
from dumpscope_format.saved_call import Documents, Tables

_PLAIN = ("dtype", "device", "size", "memory_format", "layout")


def document(saved: Documents) -> CallDocument:
    """Raises UsageError for a value that cannot be rebuilt."""
    call = saved.call
    reader = _Values(call)
    prefix = call["api"]["prefix"]
    target = f"{prefix}.{call['api']['name']}"
    results = _Values(saved.results, "output") if saved.results else None
    grads = _Values(saved.gradients, "grad") if saved.gradients else None
    args = [reader.value(value, f"input.{place}") for place, value in enumerate(call["args"])]
    kwargs = {key: reader.value(value, f"kwargs.{key}") for key, value in call["kwargs"].items()}
    begun = [
        None if value is None else grads.value(value, f"grad.{place}")
        for place, value in enumerate(saved.gradients["gradients"] if saved.gradients else [])
        if grads is not None
    ]
    given = [] if results is None or saved.results is None else _results(results, saved.results["result"])
    modes = call["modes"]
    autocast = next((one["dtype"] for one in call["autocast"].values()), None)
    substituted = saved.results.get("substituted") if saved.results else None
    wants = modes.get("grad", True) and any(entry["requires_grad"] for entry in call["tensors"])
    return CallDocument(
        name=call["name"],
        target=target,
        args=args,
        kwargs=kwargs,
        names=[],
        grads=begun,
        results=given,
        gradients=[],
        gradients_of="arguments",
        backward="recorded" if any(begun) else "sum" if wants else "none",
        modes={"grad": modes.get("grad", True), "autocast": autocast},
        seen={
            "versions": call["versions"],
            "devices": call["devices"],
            "numerics": call["numerics"],
            "environment": call["environment"],
            "layouts": True,
        },
        notes=[say("reproduce.intervened", substituted=substituted)] if substituted else [],
    )


def _results(reader: _Values, result: Any) -> list[Any]:
    """Tensors of what it gave, named as a run names them: a lone one is output.0."""
    found: list[Any] = []

    def walk(value: Any, item: str) -> None:
        if isinstance(value, list):
            for place, part in enumerate(value):
                walk(part, f"{item}.{place}")
        elif isinstance(value, dict):
            kind = value.get("type")
            if kind == "tensor":
                found.append(reader.value(value, item if "." in item else f"{item}.0"))
            elif kind in ("tuple", "named_tuple"):
                walk(value["items"], item)
            elif kind == "dict":
                for key, part in value["items"]:
                    walk(part, f"{item}.{key}")

    walk(result, "output")
    return found


class _Values:
    def __init__(self, tables: Tables, word: str = "") -> None:
        self._tensors = tables["tensors"]
        self._storages = tables["storages"]
        self._items: dict[int, str] = {}
        self._word = word

    def value(self, value: Any, item: str) -> Any:
        if isinstance(value, list):
            return [self.value(part, f"{item}.{place}") for place, part in enumerate(value)]
        if not isinstance(value, dict):
            return value
        kind = value["type"]
        if kind in ("tensor", "array"):
            return self._tensor(int(value["tensor"]), item)
        if kind in ("tuple", "named_tuple"):
            return {"tuple": self.value(value["items"], item)}
        if kind == "dict":
            return {"dict": {str(key): self.value(part, f"{item}.{key}") for key, part in value["items"]}}
        if kind == "slice":
            return {"slice": value["items"] if "items" in value else [value["start"], value["stop"], value["step"]]}
        if kind == "ellipsis":
            return {"ellipsis": True}
        if kind == "number":
            return value["value"]
        if kind == "float":
            return {"float": value["value"]}
        if kind == "complex":
            return {"complex": value["value"]}
        if kind in _PLAIN:
            return {kind: value["value"]}
        raise UsageError(say("reproduce.which_cannot_made_again", item=item, get=value.get("class", kind)))

    def _tensor(self, place: int, item: str) -> dict[str, Any]:
        """One entry is one object, so a second mention of it has the item of the first."""
        entry = self._tensors[place]
        storage = self._storages[entry["storage"]]
        made: dict[str, Any] = {
            "tensor": self._items.setdefault(place, item),
            "dtype": entry["dtype"].removeprefix("torch."),
            "shape": entry["shape"],
            "requires_grad": entry["requires_grad"],
            "file": storage["file"],
            "stride": entry["stride"],
            "offset": entry["offset"],
            "start": storage["start"],
            "total": storage["total"],
            "device": entry["device"],
        }
        if not entry["requires_grad"]:
            del made["requires_grad"]
        if entry.get("format") is not None:
            made["format"] = entry["format"]
        return made
