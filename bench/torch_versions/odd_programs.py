"""Small programs of unusual kinds: recorded, each computes bit for bit what it computes alone, and no hook fails.

    python odd_programs.py FOLDER    prints a sentence for each that does not, and for each that this torch cannot run

A program is a function that takes one step and returns tensors; what it needs in all steps are its defaults.
"""

from __future__ import annotations

import copy
import io
import json
import shutil
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from dumpscope_capture import PrecisionDebugger

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

STEPS = 2
Model: TypeAlias = nn.Module
Step: TypeAlias = "Callable[[Model], list[torch.Tensor]]"
PROGRAMS: dict[str, tuple[Callable[[], Model], Step]] = {}


def mlp() -> Model:
    return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8))


def program(make: Callable[[], Model] = mlp) -> Callable[[Step], Step]:
    def note(step: Step) -> Step:
        PROGRAMS[step.__name__] = make, step
        return step

    return note


def trained(model: Model, result: torch.Tensor) -> list[torch.Tensor]:
    """The result, and the gradients of its squares."""
    model.zero_grad()
    result.pow(2).sum().backward()
    return [result, *(part.grad for part in model.parameters() if part.grad is not None), *model.buffers()]


@program()
def forward_mode(model: Model) -> list[torch.Tensor]:
    weights = dict(model.named_parameters())
    ones = {name: torch.ones_like(one) for name, one in weights.items()}
    x = torch.randn(4, 8)
    return list(torch.func.jvp(lambda given: torch.func.functional_call(model, given, (x,)), (weights,), (ones,)))


@program()
def second_derivatives(model: Model) -> list[torch.Tensor]:
    x = torch.randn(2, 8)
    curved = torch.func.vmap(torch.func.hessian(lambda row: model(row).sum()))(x)
    return [curved, torch.autograd.functional.hessian(lambda row: model(row).pow(2).sum(), x[0])]


@program()
def gradient_penalty(model: Model) -> list[torch.Tensor]:
    x = torch.randn(4, 8, requires_grad=True)
    (slope,) = torch.autograd.grad(model(x).sum(), x, create_graph=True)
    return trained(model, slope.norm(dim=1) - 1)


@program()
def gradients_of_samples(model: Model) -> list[torch.Tensor]:
    weights = {name: one.detach() for name, one in model.named_parameters()}

    def loss(given: dict[str, torch.Tensor], x: torch.Tensor) -> torch.Tensor:
        return torch.func.functional_call(model, given, (x[None],)).pow(2).sum()

    found = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(weights, torch.randn(5, 8))
    return list(found.values())


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        (x,) = ctx.saved_tensors
        return grad * 2 * x


@program()
def own_function_twice(model: Model) -> list[torch.Tensor]:
    x = torch.randn(4, 8, requires_grad=True)
    (slope,) = torch.autograd.grad(Square.apply(model(x)).sum(), x, create_graph=True)
    return trained(model, slope)


@program(lambda: nn.Sequential(nn.LazyLinear(16), nn.ReLU(inplace=True), nn.LazyBatchNorm1d(), nn.LazyLinear(3)))
def lazy_modules(model: Model) -> list[torch.Tensor]:
    return trained(model, model(torch.randn(6, 8)))


def parametrized() -> Model:
    norms = nn.utils.parametrizations
    return nn.Sequential(norms.spectral_norm(nn.Linear(8, 8)), nn.ReLU(), norms.orthogonal(nn.Linear(8, 8)))


@program(parametrized)
def parametrizations(model: Model) -> list[torch.Tensor]:
    return trained(model, model(torch.randn(6, 8)))


@program()
def saved_tensors(model: Model) -> list[torch.Tensor]:
    shapes: list[int] = []
    with torch.autograd.graph.saved_tensors_hooks(lambda one: shapes.append(one.numel()) or one, lambda one: one):
        result = model(torch.randn(6, 8))
    with torch.autograd.graph.save_on_cpu():
        again = model(torch.randn(6, 8))
    return [*trained(model, result + again), torch.tensor(shapes)]


@program()
def hooks_of_the_program(model: Model) -> list[torch.Tensor]:
    said: list[float] = []
    handles = [
        model[1].register_forward_hook(lambda _module, _args, result: result * 1.5),
        model[2].register_full_backward_hook(lambda _module, given, _grad: (given[0] * 0.5,)),
        model[2].register_full_backward_pre_hook(lambda _module, grad: (grad[0] * 2,)),
        torch.autograd.graph.register_multi_grad_hook(
            tuple(model.parameters()), lambda grads: said.append(float(len(grads)))
        ),
    ]
    result = model(torch.randn(4, 8))
    result.register_hook(lambda grad: grad * 3)
    found = trained(model, result)
    for handle in handles:
        handle.remove()
    return [*found, torch.tensor(said)]


@program()
def copies_and_pickles(model: Model) -> list[torch.Tensor]:
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    twin = copy.deepcopy(model)
    twin.load_state_dict(torch.load(file))
    return trained(twin, twin(torch.randn(6, 8)))


@program(lambda: nn.Embedding(20, 8, sparse=True))
def sparse_gradients(model: Model) -> list[torch.Tensor]:
    model.zero_grad()
    result = model(torch.randint(0, 20, (5,)))
    result.pow(2).sum().backward()
    torch.optim.SparseAdam(model.parameters()).step()
    product = torch.sparse.mm(torch.eye(5).to_sparse(), result.detach())
    return [result, model.weight.detach().clone(), model.weight.grad.to_dense(), product]


@program(lambda: nn.LSTM(8, 8, 2, batch_first=True, bidirectional=True, dropout=0.2))
def packed_sequences(model: Model) -> list[torch.Tensor]:
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(3, 5, 8), [5, 4, 2], batch_first=True)
    result, _ = nn.utils.rnn.pad_packed_sequence(model(packed)[0], batch_first=True)
    return trained(model, result)


@program(lambda: nn.Linear(8, 8, dtype=torch.complex64))
def complex_numbers(model: Model) -> list[torch.Tensor]:
    return trained(model, torch.fft.ifft(model(torch.fft.fft(torch.randn(4, 8)))).abs())


@program(lambda: nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.5), nn.Linear(8, 8), nn.Dropout(0.2), nn.Linear(8, 8)))
def nested_recomputation(model: Model) -> list[torch.Tensor]:
    x = torch.randn(4, 8, requires_grad=True)
    inner: Any = lambda given: checkpoint(model, given, use_reentrant=False)  # noqa: E731
    return trained(model, checkpoint(inner, x, use_reentrant=True) + checkpoint(inner, x, use_reentrant=False))


@program(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval())
def fused_layers(model: Model) -> list[torch.Tensor]:
    mask = torch.zeros(3, 5, dtype=torch.bool)
    mask[0, 3:] = True
    with torch.no_grad():
        return [model(torch.randn(3, 5, 8), src_key_padding_mask=mask)]


@program()
def graphs_made_inside(model: Model) -> list[torch.Tensor]:
    x = torch.randn(4, 8)
    exported = torch.export.export(model, (x,))
    run = exported.module() if hasattr(exported, "module") else exported
    return [torch.jit.trace(model, x)(x), run(x), torch.fx.Interpreter(torch.fx.symbolic_trace(model)).run(x)]


@program()
def compiled_region(model: Model) -> list[torch.Tensor]:
    torch._dynamo.reset()
    return trained(model, torch.compile(model, backend="aot_eager")(torch.randn(4, 8)))


@program()
def quantized_numbers(model: Model) -> list[torch.Tensor]:
    narrow = torch.quantize_per_tensor(model(torch.randn(4, 8)).detach(), 0.1, 0, torch.qint8)
    return [torch.relu(narrow).dequantize() * 2, torch.ops.quantized.add(narrow, narrow, 0.2, 0).dequantize()]


@program()
def distributions(model: Model) -> list[torch.Tensor]:
    spread = torch.distributions.Normal(model(torch.randn(4, 8)), 1.0)
    draw = spread.rsample()
    return trained(
        model, draw - spread.log_prob(draw).mean() + torch.distributions.Categorical(logits=draw).entropy().mean()
    )


@program()
def inference_and_meta(model: Model) -> list[torch.Tensor]:
    with torch.inference_mode():
        result = model(torch.randn(4, 8))
    with torch.device("meta"):
        nowhere = torch.empty(3) + 1
    return [result, torch.tensor([result.is_inference(), nowhere.is_meta])]


@program()
def errors_inside(model: Model) -> list[torch.Tensor]:
    said = ""
    try:
        model(torch.randn(4, 9))
    except RuntimeError as error:
        said = str(error)
    return [model(torch.randn(4, 8)), torch.tensor(len(said))]


@program()
def optimizers(model: Model) -> list[torch.Tensor]:
    rate: dict[str, Any] = {"lr": 0.01}
    for one in (
        torch.optim.AdamW(model.parameters(), foreach=True, **rate), torch.optim.NAdam(model.parameters(), **rate),
        torch.optim.Rprop(model.parameters(), **rate), torch.optim.SGD(model.parameters(), momentum=0.9, **rate),
    ):  # fmt: skip
        one.zero_grad()
        model(torch.randn(4, 8)).pow(2).sum().backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        one.step()
    bfgs = torch.optim.LBFGS(model.parameters(), max_iter=3)
    x = torch.randn(4, 8)

    def closure() -> torch.Tensor:
        bfgs.zero_grad()
        loss = model(x).pow(2).sum()
        loss.backward()
        return loss

    bfgs.step(closure)  # type: ignore[arg-type]
    return [one.detach().clone() for one in model.parameters()]


def run(name: str, folder: Path | None, **settings: Any) -> list[torch.Tensor]:
    """What a program makes in all steps, and the state of the random numbers; recorded where there is a folder."""
    make, step = PROGRAMS[name]
    torch.manual_seed(0)
    model = make()
    debugger = None
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
        debugger = PrecisionDebugger(dump_path=str(folder), **settings)
    made: list[torch.Tensor] = []
    for _ in range(STEPS):
        if debugger is not None:
            debugger.start(model)
        try:
            made += [one.detach().clone() for one in step(model)]
        finally:
            if debugger is not None:
                debugger.stop()
                debugger.step()
    return [*made, torch.get_rng_state()]


def differences(name: str, folder: Path, **settings: Any) -> list[str]:
    """Sentences about what the recording changed, and about what failed in it."""
    alone, recorded = run(name, None), run(name, folder, **settings)
    said = [
        f"{name}: result {place} differs"
        for place, (one, other) in enumerate(zip(alone, recorded))  # noqa: B905 - Python 3.8 has no strict
        if one.shape != other.shape or not torch.equal(torch.nan_to_num(one), torch.nan_to_num(other))
    ]
    for path in sorted(folder.glob("step*/*/run.json")):
        counts = json.loads(path.read_text(encoding="utf-8"))["counts"]
        said += [f"{name}: {kind}" for kind in counts if kind.startswith(("hook_error", "failed", "lost"))]
    return said + [f"{name}: other numbers of results"] * (len(alone) != len(recorded))


def main(folder: Path) -> int:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    failed = 0
    for name in PROGRAMS:
        try:
            run(name, None)
        except Exception as error:
            print(f"{name}: not with this torch: {type(error).__name__}")
            continue
        for level in ("L0", "mix"):
            for task in ("statistics", "tensor"):
                for said in differences(name, folder / f"{name}-{level}-{task}", level=level, task=task):
                    print(f"{level} {task}, {said}")
                    failed += 1
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
