"""Write a dump that looks like msprobe's (statistics, level mix) of a transformer with any number of nodes.

    python bench/synthetic.py OUT --nodes 100000 --seed 1 [--fault-at 40000] [--noise 1e-6]

Two dumps made with the same seed agree in every number but for the fault (whose error reaches whatever is computed from it) and
the noise. Numbers are drawn, not computed; what is real is the shape: names, nesting, file order, stacks, key order, indent.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

ROWS, WIDTH, HEADS, LENGTH = 8, 1024, 16, 512
HIDDEN = (ROWS, LENGTH, WIDTH)
SCORES = (ROWS, HEADS, LENGTH, LENGTH)
HEADED = (ROWS, HEADS, LENGTH, WIDTH // HEADS)
WIDE = (ROWS, LENGTH, 4 * WIDTH)

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """What was written. fault: name of the node where the error starts, None without one."""

    folder: Path
    nodes: int
    leaves: int
    fault: str | None


@dataclass(slots=True, eq=False)
class Tensor:
    """One value of the run; `text` is its record inside a list of a node body (braces included)."""

    shape: Shape
    text: str
    wrong: bool
    grad: Tensor | None = None
    needs_grad: bool = True


@dataclass(slots=True)
class Call:
    """What backward needs to know of a forward call."""

    name: str
    inputs: list[Tensor]
    output: Tensor
    parent: str | None


@dataclass(slots=True)
class Scope:
    name: str
    parent: str | None
    inputs: list[Tensor]
    parameters: dict[str, Tensor]
    output: Tensor | None = None
    opens: bool = True


@dataclass
class Run:
    """A run being written; every node goes straight to the file."""

    path: Path
    limit: int
    seed: int
    fault_at: int | None
    fault_size: float
    nonfinite: bool
    noise: float
    count: int = 0
    leaves: int = 0
    fault: str | None = None
    counters: dict[str, int] = field(default_factory=dict)
    stacks: dict[tuple[str, ...], list[str]] = field(default_factory=dict)
    construct: dict[str, str | None] = field(default_factory=dict)
    tape: list[Call | Scope] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._file = (self.path / "dump.json").open("w", encoding="utf-8", buffering=1 << 20)
        self._file.write(
            '{\n "task": "statistics",\n "level": "mix",\n "framework": "pytorch",\n "dump_data_dir": null,\n "data": {'
        )
        self._numbers = _numbers(self.seed)
        self._errors = np.random.default_rng([self.seed, 7 if self.fault_at is None else self.fault_at])

    # -- values ------------------------------------------------------------------------------------------------------

    def tensor(
        self, shape: Shape, *, wrong: bool = False, origin: bool = False, fixed: bool = False, grad: bool = True
    ) -> Tensor:
        """Draw a tensor. wrong: reached by the fault; origin: the fault itself; fixed: same on both sides (a weight)."""
        top, low, mean, norm = next(self._numbers)
        norm *= float(np.sqrt(np.prod(shape)))
        numbers = [top, low, mean, norm]
        if origin and self.nonfinite:
            numbers = [float("inf"), low, float("inf"), float("inf")]
        elif wrong and self.nonfinite:
            numbers = [float("nan")] * 4
        elif origin:
            numbers = [value * (1 + self.fault_size) for value in numbers]
        elif wrong:
            sizes = self._errors.uniform(0.02, 0.3, 4) * self.fault_size
            numbers = [value * (1 + size) for value, size in zip(numbers, sizes.tolist(), strict=True)]
        if self.noise and not fixed:
            sizes = self._errors.standard_normal(4) * self.noise
            numbers = [value * (1 + size) for value, size in zip(numbers, sizes.tolist(), strict=True)]
        if wrong or self.noise:
            numbers = [float(np.float32(value)) for value in numbers]
        return Tensor(shape, _record("torch.float32", shape, numbers, grad), wrong, needs_grad=grad)

    # -- nodes -------------------------------------------------------------------------------------------------------

    def node(self, name: str, parts: list[tuple[str, str]], leaves: int) -> None:
        if self.count >= self.limit:
            return
        body = ",\n".join(f'   "{key}": {text}' for key, text in parts)
        comma = "," if self.count else ""
        self._file.write(f'{comma}\n  "{name}": {{\n{body}\n  }}')
        self.count += 1
        self.leaves += leaves

    def faulty(self, name: str) -> bool:
        """Whether the error starts in the node that is about to be written."""
        if self.fault is None and self.fault_at is not None and self.count >= self.fault_at:
            self.fault = name
            return True
        return False

    def api(
        self,
        name: str,
        inputs: list[Tensor],
        shape: Shape,
        *,
        extra: tuple[str, ...] = (),
        kwargs: str = "{}",
        line: int = 0,
    ) -> Tensor:
        """One API call inside the open module. extra: ready records of arguments that are no tensors."""
        index = self.counters[name] = self.counters.get(name, -1) + 1
        node = f"{name}.{index}.forward"
        parent = self.scopes[-1].name if self.scopes else None
        origin = self.faulty(node)
        output = self.tensor(shape, wrong=origin or any(value.wrong for value in inputs), origin=origin)
        texts = [*(value.text for value in inputs), *extra]
        self.construct[node] = parent
        self.stack(node, line)
        self.node(
            node,
            [("input_args", _list(texts)), ("input_kwargs", kwargs), ("output", _list([output.text]))],
            len(texts) + 1 + (kwargs != "{}"),
        )
        self.tape.append(Call(name=f"{name}.{index}.backward", inputs=inputs, output=output, parent=parent))
        return output

    def enter(self, path: str, cls: str, inputs: list[Tensor], shapes: dict[str, Shape]) -> dict[str, Tensor]:
        """Open a module; answers its own parameters."""
        parameters = {key: self.tensor(shape, fixed=True) for key, shape in shapes.items()}
        parent = self.scopes[-1].name if self.scopes else None
        scope = Scope(name=f"Module.{path}.{cls}.forward.0", parent=parent, inputs=inputs, parameters=parameters)
        self.scopes.append(scope)
        self.tape.append(scope)
        self.construct[scope.name] = parent
        return parameters

    def leave(self, output: Tensor) -> Tensor:
        scope = self.scopes.pop()
        scope.output = output
        parts = [
            ("input_args", _list([value.text for value in scope.inputs])),
            ("input_kwargs", "{}"),
            ("output", _list([output.text])),
            ("parameters", _object({key: value.text for key, value in scope.parameters.items()})),
        ]
        self.stack(scope.name, 30 + len(self.scopes))
        self.node(scope.name, parts, len(scope.inputs) + 1 + len(scope.parameters))
        self.tape.append(
            Scope(
                name=scope.name,
                parent=scope.parent,
                inputs=scope.inputs,
                parameters=scope.parameters,
                output=output,
                opens=False,
            )
        )
        return output

    def stack(self, node: str, line: int) -> None:
        frames = [f"File /home/user/train/model.py, line {100 + line}, in forward, \n x = self.call_{line}(x)"]
        frames += [
            text
            for depth in range(len(self.scopes), 0, -1)
            for text in (
                "File /usr/lib/python3.11/site-packages/torch/nn/modules/module.py, line 1884, in _call_impl, \n return inner()",
                f"File /home/user/train/model.py, line {20 + 9 * depth}, in forward, \n x = block(x)",
            )
        ]
        frames.append("File /home/user/train/train.py, line 79, in <module>, \n loss = model(ids)")
        self.stacks.setdefault(tuple(frames), []).append(node)

    # -- backward and optimizer --------------------------------------------------------------------------------------

    def backward(self, loss: Tensor) -> None:
        loss.grad = self.tensor(loss.shape, wrong=loss.wrong, grad=False)
        for event in reversed(self.tape):
            if self.count >= self.limit:
                return
            if isinstance(event, Call):
                self._call_backward(event)
            elif event.opens:
                self._scope_backward(event)

    def _call_backward(self, call: Call) -> None:
        above = call.output.grad or self.tensor(call.output.shape, wrong=call.output.wrong, grad=False)
        origin = self.faulty(call.name)
        wrong = origin or above.wrong or any(value.wrong for value in call.inputs)
        grads = []
        for value in call.inputs:
            if value.needs_grad:
                value.grad = self.tensor(
                    value.shape, wrong=wrong or bool(value.grad and value.grad.wrong), origin=origin, grad=False
                )
                grads.append(value.grad.text)
        self.construct[call.name] = None if call.parent is None else call.parent.replace(".forward.", ".backward.")
        self.node(call.name, [("input", _list([above.text])), ("output", _list(grads))], 1 + len(grads))

    def _scope_backward(self, scope: Scope) -> None:
        name = scope.name.replace(".forward.", ".backward.")
        grads = {key: value.grad.text for key, value in scope.parameters.items() if value.grad}
        if grads:
            self.node(
                scope.name.replace(".forward.", ".parameters_grad."),
                [(key, _list([text])) for key, text in grads.items()],
                len(grads),
            )
        above = scope.output.grad if scope.output else None
        below = [value.grad.text for value in scope.inputs if value.grad]
        self.construct[name] = None if scope.parent is None else scope.parent.replace(".forward.", ".backward.")
        self.node(
            name, [("input", _list([above.text] if above else [])), ("output", _list(below))], len(below) + bool(above)
        )

    def optimizer(self) -> None:
        """`Tensor.add_` calls until the wanted number of nodes is there."""
        self.construct["optimizer"] = None
        number = 0
        while self.count < self.limit:
            node = f"Tensor.add_.{number}.forward"
            origin = self.faulty(node)
            step = self.tensor((WIDTH,), grad=False)
            result = self.tensor((WIDTH,), wrong=origin, origin=origin, grad=False)
            self.construct[node] = "optimizer"
            self.stack(node, 60)
            self.node(
                node,
                [
                    ("input_args", _list([step.text, _value("int", "1")])),
                    ("input_kwargs", "{}"),
                    ("output", _list([result.text])),
                ],
                3,
            )
            number += 1

    def finish(self) -> None:
        self._file.write(("\n " if self.count else "") + "}\n}")
        self._file.close()
        groups = {str(number): [names, list(frames)] for number, (frames, names) in enumerate(self.stacks.items())}
        (self.path / "stack.json").write_text(json.dumps(groups, indent=1), encoding="utf-8")
        (self.path / "construct.json").write_text(json.dumps(self.construct, indent=1), encoding="utf-8")


def make_dump(
    path: str | Path,
    nodes: int,
    seed: int,
    fault_at: int | None = None,
    *,
    fault_size: float = 0.02,
    nonfinite: bool = False,
    noise: float = 0.0,
    step: int = 0,
    rank: int | None = None,
) -> Truth:
    """Write `nodes` nodes to `path`/step{step}/(rank{rank}|proc1).

    fault_at: node number from which on the next API call gives wrong output
    fault_size: relative error of that output; errors downstream are 2 to 30 % of it
    nonfinite: the fault is an Inf, NaN downstream
    noise: relative noise on every number that is not a weight
    """
    folder = Path(path) / f"step{step}" / ("proc1" if rank is None else f"rank{rank}")
    folder.mkdir(parents=True, exist_ok=True)
    run = Run(folder, nodes, seed, fault_at, fault_size, nonfinite, noise)
    layers = max(1, (nodes - 14) // 56)
    hidden = _embedding(run)
    for layer in range(layers):
        hidden = _layer(run, layer, hidden)
    loss = _head(run, hidden)
    run.backward(loss)
    run.optimizer()
    run.finish()
    return Truth(folder=folder, nodes=run.count, leaves=run.leaves, fault=run.fault)


def _embedding(run: Run) -> Tensor:
    ids = Tensor(
        (ROWS, LENGTH), _record("torch.int64", (ROWS, LENGTH), [31999, 0, None, None], False), False, needs_grad=False
    )
    weight = run.enter("tok", "Embedding", [ids], {"weight": (32000, WIDTH)})
    return run.leave(
        run.api(
            "Functional.embedding", [ids, *weight.values()], HIDDEN, extra=("    null", _value("bool", "false")), line=1
        )
    )


def _linear(run: Run, path: str, value: Tensor, width: int, line: int) -> Tensor:
    own = run.enter(path, "Linear", [value], {"weight": (width, value.shape[-1]), "bias": (width,)})
    return run.leave(run.api("Functional.linear", [value, *own.values()], (*value.shape[:-1], width), line=line))


def _norm(run: Run, path: str, value: Tensor, line: int) -> Tensor:
    own = run.enter(path, "LayerNorm", [value], {"weight": (WIDTH,), "bias": (WIDTH,)})
    size = f'    [\n     {{\n      "type": "int",\n      "value": {WIDTH}\n     }}\n    ]'
    extra = (size, _value("float", "1e-05"))
    return run.leave(run.api("Functional.layer_norm", [value, *own.values()], value.shape, extra=extra, line=line))


def _layer(run: Run, number: int, hidden: Tensor) -> Tensor:
    head = f"layers.{number}"
    run.enter(head, "Block", [hidden], {})
    value = _norm(run, f"{head}.ln1", hidden, 2)
    run.enter(f"{head}.attn", "Attn", [value], {})
    joined = _linear(run, f"{head}.attn.qkv", value, 3 * WIDTH, 3)
    query = run.api("Tensor.__getitem__", [joined], HEADED, extra=(_value("int", "0"),), line=4)
    scores = run.api("Torch.matmul", [query, query], SCORES, line=5)
    scores = run.api("Tensor.__mul__", [scores], SCORES, extra=(_value("float", "0.125"),), line=6)
    mask = Tensor(
        (LENGTH, LENGTH),
        _record("torch.bool", (LENGTH, LENGTH), [True, False, None, None], False),
        False,
        needs_grad=False,
    )
    scores = run.api("Tensor.masked_fill", [scores, mask], SCORES, extra=(_value("float", "-10000.0"),), line=7)
    chances = run.api("Functional.softmax", [scores], SCORES, kwargs=_object({"dim": _value("int", "-1")}), line=8)
    mixed = run.api("Torch.matmul", [chances, query], HEADED, line=9)
    mixed = run.api("Tensor.reshape", [mixed], HIDDEN, line=10)
    value = run.leave(_linear(run, f"{head}.attn.proj", mixed, WIDTH, 11))
    hidden = run.api("Tensor.__add__", [hidden, value], HIDDEN, line=12)
    value = _norm(run, f"{head}.ln2", hidden, 13)
    run.enter(f"{head}.mlp", "Mlp", [value], {})
    value = _linear(run, f"{head}.mlp.fc1", value, 4 * WIDTH, 14)
    kwargs = _object({"approximate": _value("str", '"none"')})
    value = run.api("Functional.gelu", [value], WIDE, kwargs=kwargs, line=15)
    value = run.leave(_linear(run, f"{head}.mlp.fc2", value, WIDTH, 16))
    return run.leave(run.api("Tensor.__add__", [hidden, value], HIDDEN, line=17))


def _head(run: Run, hidden: Tensor) -> Tensor:
    value = _linear(run, "head", _norm(run, "ln_f", hidden, 18), 32000, 19)
    return run.api("Functional.cross_entropy", [value], (), line=20)


# -- text --------------------------------------------------------------------------------------------------------------


def _numbers(seed: int) -> Iterator[tuple[float, float, float, float]]:
    """Max, Min, Mean and the norm of one element, as float32 values."""
    random = np.random.default_rng(seed)
    while True:
        block = np.empty((1 << 14, 4), np.float32)
        block[:, 0] = random.gamma(4.0, 0.7, 1 << 14)
        block[:, 1] = -random.gamma(4.0, 0.7, 1 << 14)
        block[:, 2] = random.normal(0.0, 0.05, 1 << 14)
        block[:, 3] = random.uniform(0.2, 1.5, 1 << 14)
        yield from map(tuple, block.tolist())


def _text(number: float | int | bool | None) -> str:
    return repr(number) if type(number) is float and math.isfinite(number) else json.dumps(number)


def _record(dtype: str, shape: Shape, numbers: Sequence[float | int | bool | None], grad: bool) -> str:
    sizes = ",\n".join(f"      {size}" for size in shape)
    sides = f"[\n{sizes}\n     ]" if shape else "[]"
    top, low, mean, norm = map(_text, numbers)
    return (
        f'    {{\n     "type": "torch.Tensor",\n     "dtype": "{dtype}",\n     "shape": {sides},\n     "Max": {top},\n'
        f'     "Min": {low},\n     "Mean": {mean},\n     "Norm": {norm},\n     "requires_grad": {_text(grad)}\n    }}'
    )


def _value(kind: str, text: str) -> str:
    return f'    {{\n     "type": "{kind}",\n     "value": {text}\n    }}'


def _list(texts: list[str]) -> str:
    return "[\n" + ",\n".join(texts) + "\n   ]" if texts else "[]"


def _object(texts: dict[str, str]) -> str:
    if not texts:
        return "{}"
    return "{\n" + ",\n".join(f'    "{key}": {text.lstrip()}' for key, text in texts.items()) + "\n   }"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--fault-at", type=int)
    parser.add_argument("--fault-size", type=float, default=0.02)
    parser.add_argument("--nonfinite", action="store_true")
    parser.add_argument("--noise", type=float, default=0.0)
    given = parser.parse_args()
    start = time.perf_counter()
    truth = make_dump(
        given.out, given.nodes, given.seed, given.fault_at,
        fault_size=given.fault_size, nonfinite=given.nonfinite, noise=given.noise,
    )  # fmt: skip
    print(f"{truth.nodes} nodes, {truth.leaves} leaves, fault {truth.fault}, {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main()
