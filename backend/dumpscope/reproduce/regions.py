"""From the records of a region of compiled code and its graph to the document by which it runs again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dumpscope.errors import UsageError
from dumpscope.reproduce.calls import Records, differentiable, gradients, label_of, results, seen, specs, tensors
from dumpscope.reproduce.values import Reader
from dumpscope.texts import say
from dumpscope_format.replay import RegionDocument


def region_document(
    records: Records, entry: Mapping[str, Any], graph: dict[str, Any] | None, random: dict[str, str] | None
) -> RegionDocument:
    """The document of a region. entry: what run.json says of it; graph: its document, None where the dump has none.

    Raises UsageError with the reason where it cannot be run again."""
    name, forward, backward = records.name, records.forward, records.backward
    node = f"{label_of(name)}.{name.index}"
    if graph is None:
        hint = say("reproduce.region_graph_before" if entry.get("graph") is None else "reproduce.region_graph_older")
        raise UsageError(say("reproduce.region_has_no_graph", node=node), hint=hint)
    lost = graph.get("lost")
    if lost:
        raise UsageError(say("reproduce.region_graph_lacks", node=node, lost="; ".join(map(str, lost[:3]))))
    reader = Reader(forward.get("containers") or {}, forward.get("storage") or {})
    given = forward.get("input_args")
    args = [
        reader.value(record, f"input.{place}") for place, record in enumerate(given if isinstance(given, list) else [])
    ]
    inputs = [one["name"] for one in graph["nodes"] if one["op"] == "placeholder"]
    if len(inputs) != len(args):
        raise UsageError(say("reproduce.region_inputs_do_not_fit", node=node, count=len(inputs), given=len(args)))
    if any("file" not in spec for spec in specs(args)):
        raise UsageError(
            say("reproduce.region_needs_tensors", node=node), hint=say("reproduce.region_tensor_config", node=node)
        )
    gave = results(forward.get("output"), reader)
    written = forward.get("written")
    for item, record in written.items() if isinstance(written, dict) else ():
        gave += tensors(record, f"output.written.{item}", Reader({}, {}))
    modes = entry.get("modes")
    modes = modes if isinstance(modes, dict) else {}
    autocast = modes.get("autocast")
    grad = bool(modes.get("grad", True))
    how = "none"
    if grad and backward is not None:
        how = "recorded"
    elif grad and differentiable(gave):
        how = "sum"
    return RegionDocument(
        name=node,
        target=str(entry.get("function", "")),
        graph=graph,
        backend_name=str(entry.get("backend", "")),
        args=args,
        kwargs={},
        names=[],
        grads=[] if backward is None else gradients(backward.get("input"), "grad"),
        results=gave,
        gradients=[] if backward is None else gradients(backward.get("output"), "gradient"),
        backward=how,
        modes={"grad": grad, "autocast": next(iter(autocast.values()), None) if isinstance(autocast, dict) else None},
        changed=[inputs[place] for place in _written(written) if place < len(inputs)],
        random=random,
        seen={} if records.run is None else seen(records.run, own=records.own),
        notes=[] if backward is not None or not differentiable(gave) else [say("reproduce.region_without_backward")],
    )


def _written(written: object) -> list[int]:
    """Places of the inputs that a region has written to, from items `input.5`."""
    found = []
    for item in written if isinstance(written, dict) else ():
        head, _, number = item.partition(".")
        if head == "input" and number.isdigit():
            found.append(int(number))
    return found
