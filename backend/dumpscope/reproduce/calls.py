"""From the records of a node to the document of its call, or why there is none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from dumpscope.domain.run import Run
from dumpscope.errors import UsageError
from dumpscope.reproduce.modules import stand_in
from dumpscope.reproduce.values import Reader
from dumpscope.texts import say
from dumpscope_format.naming import NodeName, parse, split_item
from dumpscope_format.replay import CallDocument

Body = dict[str, Any]
REFUSED: Final = {
    "Distributed": say("reproduce.communication_needs_other_ranks_group"),
    "Triton": say("reproduce.triton_kernel_not_found_by_name"),
    "MindSpeed": say("reproduce.package_patches_run_time_give_modules"),
    "Jit": say("reproduce.compiled_function_not_found_by_name"),
    "Compiled": say("reproduce.compiled_region_has_no_operator"),
    "Mint": say("reproduce.belongs_mindspore"),
    "MintFunctional": say("reproduce.belongs_mindspore"),
    "Primitive": say("reproduce.belongs_mindspore"),
}
CONVERSIONS: Final = ("to", "type", "type_as")


@dataclass(frozen=True, slots=True, kw_only=True)
class Records:
    """What a dump holds of one call. own: whether dumpscope_capture wrote it, which names every argument's gradient"""

    name: NodeName
    forward: Body
    backward: Body | None
    names: list[str] = field(default_factory=list)
    run: Run | None = None
    own: bool = False


def forward_name(node: str) -> NodeName:
    """The forward node that `Functional.softmax.1`, `...forward`, `...backward` or one of its items names.

    Raises UsageError for what is no call."""
    head, _, number = node.rpartition(".")
    item = split_item(node)
    for form in (node if item is None else item[0], f"{node}.forward", f"{head}.forward.{number}"):
        found = parse(form)
        if found.kind in ("api", "module"):
            return NodeName(
                kind=found.kind, direction="forward", label=found.label, index=found.index, prefix=found.prefix
            )
    raise UsageError(
        say("reproduce.names_no_call", node=f"{node!r}"),
        hint=say("reproduce.functional_softmax_1_without_forward_backward"),
    )


def label_of(name: NodeName) -> str:
    return f"{name.prefix}.{name.label}" if name.kind == "module" else name.label


def document(records: Records) -> CallDocument:
    """The call as a document. Raises UsageError with the reason where it cannot be run alone."""
    name, forward, backward = records.name, records.forward, records.backward
    prefix = name.label.split(".")[0] if name.kind == "api" else ""
    if prefix in REFUSED:
        raise UsageError(say("reproduce.cannot_run_alone", label=name.label, refused=REFUSED[prefix]))
    reader = Reader(forward.get("containers") or {}, forward.get("storage") or {})
    notes: list[str] = []
    if name.kind == "module":
        target, args, names, told = stand_in(name, forward, reader)
        notes += told
        kwargs: dict[str, Any] = {}
    else:
        target, names = name.label, records.names
        args, kwargs = _arguments(target, forward, reader, notes)
    gave = results(forward.get("output"), reader)
    grads = [] if backward is None else gradients(backward.get("input"), "grad")
    taken = [] if backward is None else gradients(backward.get("output"), "gradient")
    if backward is not None:
        how = "recorded"
    else:
        how = "sum" if differentiable(gave) else "none"
    return CallDocument(
        name=f"{label_of(name)}.{name.index}",
        target=target,
        args=args,
        kwargs=kwargs,
        names=names,
        grads=grads,
        results=gave,
        gradients=taken,
        gradients_of="arguments" if records.own and name.kind == "api" else "node",
        backward=how,
        modes={},
        seen={} if records.run is None else seen(records.run, own=records.own),
        notes=notes,
    )


def _arguments(target: str, forward: Body, reader: Reader, notes: list[str]) -> tuple[list[Any], dict[str, Any]]:
    given = forward.get("input_args")
    named = forward.get("input_kwargs")
    records = given if isinstance(given, list) else []
    short = target.rpartition(".")[2]
    kwargs = {
        key: reader.value(record, f"kwargs.{key}")
        for key, record in (named.items() if isinstance(named, dict) else ())
        if record != {} or key != "generator"
    }
    if short in CONVERSIONS and any(record == {} for record in records):
        records = [record for record in records if record != {}]
        dtype = _output_dtype(forward)
        if dtype is not None:
            kwargs["dtype"] = {"dtype": dtype}
            notes.append(say("reproduce.result_dtype", dtype=dtype))
    args = [reader.value(record, f"input.{place}") for place, record in enumerate(records)]
    if short in ("__getitem__", "__setitem__") and len(args) > 1 and isinstance(args[1], list):
        args[1] = index(args[1], forward)
    return args, kwargs


def index(parts: list[Any], forward: Body) -> Any:
    """The index of `x[...]`: several parts are a tuple, but whole numbers alone may also have been a list."""
    if not all(type(part) is int for part in parts):
        return {"tuple": parts}
    source, result = forward["input_args"][0], forward.get("output")
    first = result[0] if isinstance(result, list) and result else None
    if (
        isinstance(source, dict)
        and isinstance(first, dict)
        and first.get("shape")
        == [
            len(parts),
            *source.get("shape", [])[1:],
        ]
    ):
        return parts
    return {"tuple": parts}


def _output_dtype(forward: Body) -> str | None:
    result = forward.get("output")
    first = result[0] if isinstance(result, list) and result else None
    dtype = first.get("dtype") if isinstance(first, dict) else None
    return dtype.removeprefix("torch.") if isinstance(dtype, str) else None


def results(output: Any, reader: Reader) -> list[Any]:
    """Tensors only; what else a call gave is not compared."""
    if isinstance(output, dict) and not isinstance(output.get("type"), str):
        return tensors({"output": output}, "", reader)
    return tensors(output if isinstance(output, list) else [output], "output", reader)


def tensors(value: Any, item: str, reader: Reader) -> list[Any]:
    """Every tensor of a record, by its item."""
    if isinstance(value, list):
        return [one for place, part in enumerate(value) for one in tensors(part, f"{item}.{place}", reader)]
    if not isinstance(value, dict):
        return []
    if "dtype" in value and "shape" in value:
        try:
            return [reader.value(value, item)]
        except UsageError:
            return []
    if isinstance(value.get("type"), str):
        return []
    return [one for key, part in value.items() for one in tensors(part, f"{item}.{key}".lstrip("."), reader)]


def gradients(records: Any, word: str) -> list[Any]:
    """Gradients by place; null where none came or the dump holds none."""
    plain = Reader({}, {})
    found = []
    for place, record in enumerate(records if isinstance(records, list) else []):
        whole = isinstance(record, dict) and "dtype" in record and record.get("type") == "torch.Tensor"
        found.append(plain.value(record, f"{word}.{place}") if whole else None)
    return found


def specs(value: Any) -> list[dict[str, Any]]:
    """Every tensor below a value, in order."""
    if isinstance(value, list):
        return [one for part in value for one in specs(part)]
    if not isinstance(value, dict):
        return []
    return [value] if "tensor" in value else [one for part in value.values() for one in specs(part)]


def differentiable(results: list[Any]) -> bool:
    return any(spec.get("requires_grad") for spec in results)


def seen(run: Run, *, own: bool) -> dict[str, Any]:
    return {
        "versions": run.versions,
        "devices": run.devices,
        "numerics": run.numerics,
        "environment": run.environment,
        "layouts": own,
    }


def reason(error: UsageError, calls: list[str]) -> UsageError:
    """A refusal of a module that names the calls inside it."""
    if not calls:
        return error
    return UsageError(
        error.detail,
        hint=say("reproduce.calls_inside", names=", ".join(calls[:5]), part=", ..." if len(calls) > 5 else ""),
    )
