"""Names and arguments of function nodes are what the program wrote."""

from __future__ import annotations

import functools
import json
import operator
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.nn.functional import softmax

from dumpscope.cli.app import main
from dumpscope_capture.calls import bytecode
from dumpscope_capture.calls.names import Table, read_list
from dumpscope_capture.config import ConfigError
from dumpscope_capture.replay.targets import function
from dumpscope_format.schema import NODE_KEYS


def _capture(make: Any, read: Any, run: Callable[[], Any], **keys: Any) -> dict[str, Any]:
    debugger = make(**{"level": "L1", "risk_level": "ALL", **keys})
    debugger.start()
    run()
    debugger.stop()
    debugger.step()
    assert not read().errors
    return dict(read().data)


X = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
X3 = X[None]
M = X > 1
THREE = 3.0

WRITTEN: dict[str, tuple[Callable[[], Any], list[str]]] = {
    "plus": (lambda: X + 1, ["Tensor.__add__.0.forward"]),
    "plus from the right": (lambda: 1 + X, ["Tensor.__radd__.0.forward"]),
    "times a name from the right": (lambda: THREE * X, ["Tensor.__rmul__.0.forward"]),
    "times a name": (lambda: X * THREE, ["Tensor.__mul__.0.forward"]),
    "minus from the right": (lambda: 1 - X, ["Tensor.__rsub__.0.forward"]),
    "method": (lambda: X.add(1), ["Tensor.add.0.forward"]),
    "class method": (lambda: torch.Tensor.add(X, 1), ["Tensor.add.0.forward"]),
    "special method by name": (lambda: X.__add__(1), ["Tensor.__add__.0.forward"]),
    "function": (lambda: torch.add(X, 1), ["Torch.add.0.forward"]),
    "operator module": (lambda: operator.add(X, 1), ["Tensor.__add__.0.forward"]),
    "sum": (lambda: sum([X, X]), ["Tensor.__radd__.0.forward", "Tensor.__add__.0.forward"]),
    "power": (lambda: X**2, ["Tensor.__pow__.0.forward"]),
    "comparison": (lambda: X < 2, ["Tensor.__lt__.0.forward"]),
    "mirrored comparison": (lambda: 2 < X, ["Tensor.__gt__.0.forward"]),  # noqa: SIM300
    "matrix product": (lambda: X @ X, ["Tensor.__matmul__.0.forward"]),
    "one over": (lambda: 1 / X, ["Tensor.reciprocal.0.forward", "Tensor.__mul__.0.forward"]),
    "and": (lambda: M & M, ["Tensor.__and__.0.forward"]),
    "imported by name": (lambda: softmax(X, -1), ["Functional.softmax.0.forward"]),
    "partial": (lambda: functools.partial(F.softmax, dim=0)(X), ["Functional.softmax.0.forward"]),
    "functional": (lambda: F.conv1d(X3, X3), ["Functional.conv1d.0.forward"]),
    "torch, same object": (lambda: torch.conv1d(X3, X3), ["Torch.conv1d.0.forward"]),
    "chosen by a dispatcher": (
        lambda: F.max_pool1d(X3, 2, return_indices=True),
        ["Functional.max_pool1d.0.forward"],
    ),
    "without indices": (lambda: F.max_pool1d(X3, 2), ["Functional.max_pool1d.0.forward"]),
    "calls straight on": (lambda: F.sigmoid(X), ["Functional.sigmoid.0.forward"]),
    "outermost only": (lambda: F.cross_entropy(X, torch.tensor([0, 1])), ["Functional.cross_entropy.0.forward"]),
    "dotted": (lambda: torch.linalg.norm(X), ["Torch.norm.0.forward"]),
    "not listed, calls listed ones": (
        lambda: torch.functional.cdist(X, X) if False else list(X),
        ["Tensor.unbind.0.forward"],
    ),
    "truth": (
        lambda: bool(X.sum() > 0),
        ["Tensor.sum.0.forward", "Tensor.__gt__.0.forward", "Tensor.__bool__.0.forward"],
    ),
    "generator": (lambda: [y + 1 for y in (X, X)], ["Tensor.__add__.0.forward", "Tensor.__add__.1.forward"]),
    "divided in place": (
        lambda: operator.itruediv(X.sum(), 2),
        ["Tensor.sum.0.forward", "Tensor.__itruediv__.0.forward"],
    ),
    "negated": (lambda: -X, ["Tensor.__neg__.0.forward"]),
    "fourier transform": (lambda: torch.fft.rfft(X), ["Torch.rfft.0.forward"]),
    "decomposition": (lambda: torch.linalg.eigvalsh(X), ["Torch.eigvalsh.0.forward"]),
    "special function": (lambda: torch.special.expm1(X), ["Torch.expm1.0.forward"]),
    "scatter functions": (
        lambda: torch.slice_scatter(X, X[:1], end=1).select_scatter(X[0], 0, 0).scatter_reduce(0, M.long(), X, "sum"),
        [
            "Tensor.__getitem__.0.forward",
            "Torch.slice_scatter.0.forward",
            "Tensor.__getitem__.1.forward",
            "Tensor.select_scatter.0.forward",
            "Tensor.long.0.forward",
            "Tensor.scatter_reduce.0.forward",
        ],
    ),
    "inside nn.init": (
        lambda: [nn.init.normal_(X.clone()), nn.init.kaiming_uniform_(X.clone())],
        ["Tensor.clone.0.forward", "Tensor.normal_.0.forward", "Tensor.clone.1.forward", "Tensor.uniform_.0.forward"],
    ),
    "a view, at risk level ALL": (lambda: X[0].view(-1), ["Tensor.__getitem__.0.forward", "Tensor.view.0.forward"]),
    "names that begin with _": (
        lambda: [
            torch._foreach_add([X], 1.0),
            torch._weight_norm(X, X.norm(dim=1, keepdim=True)),
            torch._shape_as_tensor(X),
        ],
        ["Torch._foreach_add.0.forward", "Tensor.norm.0.forward", "Torch._weight_norm.0.forward"],
    ),
    "offered by a helper": (
        lambda: torch.meshgrid(X[0], X[0] + 1, indexing="ij"),
        [
            "Tensor.__getitem__.0.forward",
            "Tensor.__getitem__.1.forward",
            "Tensor.__add__.0.forward",
        ],
    ),
    "offered by one of several": (lambda: torch.unique(X, return_counts=True), ["Torch._unique2.0.forward"]),
    "root mean square norm": (lambda: F.rms_norm(X, (2,)), ["Functional.rms_norm.0.forward"]),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_a_call_has_the_name_it_was_written_with(make: Any, read: Any, case: str) -> None:
    run, expected = WRITTEN[case]
    data = _capture(make, read, run)
    assert list(data) == expected


@pytest.mark.parametrize("case", WRITTEN)
def test_the_name_stays_when_python_has_specialised_the_code(make: Any, read: Any, case: str) -> None:
    run, expected = WRITTEN[case]
    for _ in range(200):
        run()
    bytecode._sites.clear()
    data = _capture(make, read, run)
    assert list(data) == expected


def test_clipping_and_an_optimizer_of_lists_are_recorded_with_what_they_write(make: Any, read: Any) -> None:
    weight = nn.Parameter(X.clone())
    optimizer = torch.optim.Adam([weight], lr=0.1, foreach=True)

    def run() -> None:
        weight.grad = torch.full_like(weight, 3.0)
        nn.utils.clip_grad_norm_([weight], 1.0, foreach=True)
        optimizer.step()

    data = _capture(make, read, run)
    scaled = data["Torch._foreach_mul_.0.forward"]
    assert scaled["input_args"][0][0]["Norm"] > 1
    after = (
        scaled["output"][0] if "written" not in scaled else scaled["written"]["input.0.0"]
    )  # some versions return them
    assert after["Norm"] == pytest.approx(1, abs=1e-5)
    assert "Torch._foreach_addcdiv_.0.forward" in data
    assert {"Torch._foreach_lerp_.0.forward", "Torch._foreach_addcmul_.0.forward"} <= data.keys()


def test_arguments_stand_as_they_were_given(make: Any, read: Any) -> None:
    w = torch.ones(2)
    options = {"dim": 0}

    def run() -> None:
        F.layer_norm(X, (2,), w, None, 1e-3)
        F.layer_norm(X, (2,), weight=w)
        F.layer_norm(input=X, normalized_shape=(2,), bias=w)
        F.softmax(X, **options)
        X.norm(2, dim=-1)
        torch.norm(X, p=1)
        F.dropout(X, training=False)

    data = _capture(make, read, run)
    first, second, third = (data[f"Functional.layer_norm.{number}.forward"] for number in range(3))
    assert (len(first["input_args"]), list(first["input_kwargs"])) == (5, [])
    assert (len(second["input_args"]), list(second["input_kwargs"])) == (2, ["weight"])
    assert (len(third["input_args"]), list(third["input_kwargs"])) == (0, ["input", "normalized_shape", "bias"])
    assert data["Functional.softmax.0.forward"]["input_args"][1]["value"] == 0
    assert list(data["Tensor.norm.0.forward"]["input_kwargs"]) == ["dim"]
    assert len(data["Tensor.norm.0.forward"]["input_args"]) == 2
    assert list(data["Torch.norm.0.forward"]["input_kwargs"]) == ["p"]
    assert list(data["Functional.dropout.0.forward"]["input_kwargs"]) == ["training"]


def test_in_place_calls_show_what_was_there_before(make: Any, read: Any) -> None:
    def run() -> None:
        y = X.clone()
        y.add_(10)

    record = _capture(make, read, run)["Tensor.add_.0.forward"]
    assert record["input_args"][0]["Max"] == 4.0
    assert record["output"][0]["Max"] == 14.0


def test_a_failing_call_is_no_node_and_the_next_ones_are(make: Any, read: Any) -> None:
    def run() -> None:
        with pytest.raises(RuntimeError):
            torch.matmul(X, torch.ones(3, 3))
        with pytest.raises(TypeError):
            F.softmax(X, dim="x")  # type: ignore[arg-type]
        F.relu(X)
        torch.matmul(X, X)

    assert list(_capture(make, read, run)) == ["Functional.relu.0.forward", "Torch.matmul.0.forward"]


def test_device_contexts_may_begin_and_end_across_start_and_stop(make: Any, read: Any) -> None:
    debugger = make(level="L1", risk_level="ALL")
    with torch.device("meta"):
        debugger.start()
        inside = torch.ones(2) + 1
    outside = torch.ones(2) * 2
    context = torch.device("meta")
    with context:
        torch.ones(2) - 1
        debugger.stop()
        late = torch.ones(2)
    debugger.step()
    assert inside.is_meta
    assert late.is_meta
    assert not outside.is_meta
    assert list(read().data) == ["Tensor.__add__.0.forward", "Tensor.__mul__.0.forward", "Tensor.__sub__.0.forward"]
    assert torch._C._len_torch_function_stack() == 0


def test_low_risk_calls_are_in_construct_only(make: Any, read: Any) -> None:
    whole = nn.ModuleDict({"a": nn.Flatten()})
    debugger = make(level="mix")
    debugger.start(whole)
    F.relu(whole["a"](X[None]))
    debugger.stop()
    debugger.step()
    assert "Tensor.flatten.0.forward" not in read().data
    assert read().construct["Tensor.flatten.0.forward"] == "Module.a.Flatten.forward.0"
    assert "Functional.relu.0.forward" in read().data


@pytest.mark.parametrize("numbering", ["own", "msprobe"])
def test_what_computes_is_a_node_though_msprobe_calls_it_low_risk(make: Any, read: Any, numbering: str) -> None:
    def run() -> None:
        torch.clamp(X, 0, 1)
        X.tril()
        torch.cat([X, X])
        X.view(4).view(2, 2)

    calls = ["Torch.clamp.0.forward", "Tensor.tril.0.forward"]
    own = numbering == "own"
    assert list(_capture(make, read, run, risk_level="FOCUS", numbering=numbering)) == calls * own
    left_out = {"Torch.cat": 1, **({} if own else {"Torch.clamp": 1, "Tensor.tril": 1})}
    assert read().run["unrecorded"] == {"torch.Tensor.view": 2, **left_out}


def test_core_keeps_kernels_that_compute_and_a_list_switches_risk_off(make: Any, read: Any) -> None:
    def run() -> None:
        F.relu(F.linear(X, X))
        torch.cat([X, X])

    assert list(_capture(make, read, run, risk_level="CORE")) == ["Functional.linear.0.forward"]


def test_listed_names_are_kept_at_any_risk(make: Any, read: Any) -> None:
    def run() -> None:
        F.relu(F.linear(X, X))
        torch.cat([X, X])

    assert list(_capture(make, read, run, risk_level="CORE", section={"list": ["cat", "relu"]})) == [
        "Functional.relu.0.forward", "Torch.cat.0.forward"]  # fmt: skip


def test_a_scope_holds_from_its_first_name_to_its_last(make: Any, read: Any) -> None:
    def run() -> None:
        for _ in range(4):
            F.relu(X)
            F.gelu(X)

    data = _capture(make, read, run, section={"scope": ["Functional.gelu.0.forward", "Functional.relu.2.forward"]})
    assert list(data) == [
        "Functional.gelu.0.forward",
        "Functional.relu.1.forward",
        "Functional.gelu.1.forward",
        "Functional.relu.2.forward",
    ]


@pytest.mark.parametrize(
    ("modes", "keys", "directions"),
    [
        (["forward"], {"input_args", "input_kwargs", "output"}, {"forward"}),
        (["backward"], {"input", "output"}, {"backward"}),
        (["input"], {"input_args", "input_kwargs", "input"}, {"forward", "backward"}),
        (["forward", "output"], {"output"}, {"forward"}),
    ],
)
def test_data_mode_keeps_directions_and_sides(
    make: Any, read: Any, modes: list[str], keys: set[str], directions: set[str]
) -> None:
    x = X.clone().requires_grad_()
    data = _capture(make, read, lambda: F.gelu(x).sum().backward(), section={"data_mode": modes})
    assert {key for record in data.values() for key in record} - set(NODE_KEYS) == keys
    assert {node.rsplit(".", 1)[-1] for node in data} == directions


def test_threads_of_the_program_are_recorded_inside_their_modules(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    debugger = make(level="mix")
    debugger.start(model)
    threads = [threading.Thread(target=lambda: [model(X) for _ in range(10)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    debugger.stop()
    debugger.step()
    data, construct = read().data, read().construct
    assert sum(node.startswith("Functional.linear.") for node in data) == 40
    assert sum(node.startswith("Module.0.Linear.forward.") for node in data) == 40
    assert all(
        str(construct[node]).startswith("Module.0.Linear") for node in data if node.startswith("Functional.linear.")
    )
    assert not read().errors


@pytest.mark.parametrize(
    ("numbering", "linear"), [("own", "forward.1000000 backward.0"), ("msprobe", "forward.1 backward.1")]
)
def test_recomputed_calls_are_nodes_of_the_open_backward(make: Any, read: Any, numbering: str, linear: str) -> None:
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    debugger = make(level="mix", numbering=numbering)
    debugger.start(model)
    checkpoint(model, X.clone().requires_grad_(), use_reentrant=True).sum().backward()
    debugger.stop()
    debugger.step()
    data = read().data
    forward, backward = linear.split()
    assert f"Module.0.Linear.{forward}" in data
    assert f"Module.0.Linear.{backward}" in data


@pytest.mark.parametrize(("numbering", "number"), [("own", "1000000"), ("msprobe", "1")])
@pytest.mark.parametrize("reentrant", [True, False])
def test_recomputed_calls_carry_a_mark(make: Any, read: Any, reentrant: bool, numbering: str, number: str) -> None:
    from torch.utils.checkpoint import checkpoint  # noqa: PLC0415

    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, x: torch.Tensor) -> torch.Tensor:
            return x * 2

        @staticmethod
        def backward(context: Any, gradient: torch.Tensor) -> torch.Tensor:
            return torch.mul(gradient, 2)  # a call of the backward pass, and none that is made again

    model = nn.Sequential(nn.Linear(2, 2), nn.Tanh())
    debugger = make(level="mix", numbering=numbering)
    debugger.start(model)
    x = Doubled.apply(X.clone().requires_grad_())
    checkpoint(model, x, use_reentrant=reentrant).sum().backward()
    debugger.stop()
    debugger.step()
    marked = {name for name, body in read().data.items() if "recomputed" in body}
    assert marked >= {
        f"Functional.linear.{number}.forward",
        f"Module.0.Linear.forward.{number}",
        f"Torch.tanh.{number}.forward",
    }
    assert all(f".{number}" in name for name in marked)
    assert "Torch.mul.0.forward" in read().data
    assert not read().errors


def test_custom_functions_are_recorded_until_they_are_restored(make: Any, read: Any) -> None:
    import types  # noqa: PLC0415

    library = types.ModuleType("library")
    library.fused = lambda x, scale=1.0: F.relu(x) * scale  # type: ignore[attr-defined]
    original = library.fused
    debugger = make(level="L1")
    debugger.register_custom_api(library, "fused", "Mine")
    debugger.start()
    library.fused(X, scale=2.0)
    debugger.stop()
    debugger.restore_custom_api(library, "fused")
    assert library.fused is original
    debugger.step()
    assert list(read().data) == ["Mine.fused.0.forward"]
    assert list(read().data["Mine.fused.0.forward"]["input_kwargs"]) == ["scale"]
    with pytest.raises(ConfigError, match="absent"):
        debugger.register_custom_api(library, "absent")


class Library:
    """What a program may register parts of."""

    @staticmethod
    def double(x: torch.Tensor) -> torch.Tensor:  # named like a function of low risk
        return x * 2

    @classmethod
    def typed(cls, x: torch.Tensor) -> tuple[type, torch.Tensor]:
        return cls, x + 1

    def plain(self, x: torch.Tensor) -> torch.Tensor:
        return x - 1


class Derived(Library):
    pass


def test_methods_of_every_kind_may_be_registered_and_are_left_as_they_were(make: Any, read: Any) -> None:
    before = dict(Library.__dict__)
    one = Derived()
    debugger = make(level="L1")
    for owner, name in ((Library, "double"), (Library, "typed"), (Library, "plain"), (Derived, "plain")):
        debugger.register_custom_api(owner, name)
    debugger.register_custom_api(one, "plain", "One")
    x = X.clone().requires_grad_()
    debugger.start()
    doubled = [Library.double(x), one.double(x)]
    kinds = [Derived.typed(X)[0], one.typed(X)[0]]
    less = [Library().plain(X), Derived().plain(X), one.plain(X)]
    doubled[0].backward(torch.ones_like(X))
    debugger.stop()
    assert all(torch.equal(value, X * 2) for value in doubled)
    assert kinds == [Derived, Derived]
    assert all(torch.equal(value, X - 1) for value in less)
    debugger.step()
    for owner, name in (
        (one, "plain"),
        (Derived, "plain"),
        (Library, "plain"),
        (Library, "typed"),
        (Library, "double"),
    ):
        debugger.restore_custom_api(owner, name)
    assert dict(Library.__dict__) == before
    assert "plain" not in Derived.__dict__
    assert not one.__dict__
    assert list(read().data) == [
        "Library.double.0.forward", "Library.double.1.forward", "Library.typed.0.forward", "Library.typed.1.forward",
        "Library.plain.0.forward", "Derived.plain.0.forward", "One.plain.0.forward",
        "Library.double.0.backward",
    ]  # fmt: skip


def test_operators_of_named_namespaces_are_recorded(make: Any, read: Any) -> None:
    with torch.library._scoped_library("dumpscope_test", "DEF") as library:
        library.define("twice(Tensor x) -> Tensor")
        library.impl("twice", lambda x: x * 2, "CompositeExplicitAutograd")
        data = _capture(make, read, lambda: torch.ops.dumpscope_test.twice(X), custom_op_namespaces=["dumpscope_test"])
    assert list(data) == ["dumpscope_test.twice.0.forward"]


@pytest.mark.parametrize("namespace", ["_C", "torchvision", "npu", "flash_attn"])
def test_operators_of_any_library_are_recorded_by_default(make: Any, read: Any, namespace: str) -> None:
    with torch.library._scoped_library(namespace, "FRAGMENT") as library:
        library.define("one_dumpscope_(Tensor(a!) x) -> Tensor(a!)")
        library.impl("one_dumpscope_", lambda x: x.fill_(1), "CompositeExplicitAutograd")

        def run() -> None:
            operators = getattr(torch.ops, namespace)
            operators.one_dumpscope_(X.sum())
            operators.one_dumpscope_.default(X.sum())
            torch.ops.aten.relu(X)

        data = _capture(make, read, run, risk_level="FOCUS")
    prefix = "NPU" if namespace == "npu" else namespace
    assert [name for name in data if "sum" not in name] == [f"{prefix}.one_dumpscope_.{n}.forward" for n in range(2)]


def test_a_custom_operator_is_found_again_by_its_name() -> None:
    with torch.library._scoped_library("dumpscope_test", "DEF") as library:
        library.define("thrice(Tensor x) -> Tensor")
        library.impl("thrice", lambda x: x * 3, "CompositeExplicitAutograd")
        assert function("dumpscope_test.thrice")(X).equal(X * 3)
        with pytest.raises(LookupError):
            function("dumpscope_test.four_times")


def test_calls_that_are_no_nodes_are_counted_by_name(make: Any, read: Any) -> None:
    def run() -> None:
        y = X.view(4).clone()
        y.copy_(X.view(4))
        X.size(), X.shape, len(X), X.requires_grad, y.is_contiguous()
        torch.ops.aten.add(y, y)
        F.relu(y[0])

    data = _capture(make, read, run, risk_level="FOCUS")
    assert list(data) == ["Functional.relu.0.forward"]
    assert read().run["unrecorded"] == {
        "torch.Tensor.view": 2, "aten.add": 1, "torch.Tensor.__getitem__": 1, "torch.Tensor.clone": 1, "torch.Tensor.copy_": 1,
    }  # fmt: skip


def test_a_list_may_name_a_call_of_risk_level_all(make: Any, read: Any) -> None:
    data = _capture(make, read, lambda: X[0].view(2), risk_level="FOCUS", section={"list": ["Tensor.view"]})
    assert list(data) == ["Tensor.view.0.forward"]


def test_a_comparison_names_calls_that_the_dump_does_not_hold(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    debugger = make(level="L1")
    for wrong in (False, True):  # two steps, each a dump
        x = torch.ones(3, requires_grad=True)
        debugger.start()
        y = torch.zeros(3).copy_(F.relu(x))
        if wrong:
            y.data.zero_()
        F.gelu(y)
        debugger.stop()
        debugger.step()
    (tmp_path / "other").mkdir()
    (tmp_path / "dump" / "step1").rename(tmp_path / "other" / "step0")
    with pytest.raises(SystemExit):
        main(["compare", str(tmp_path / "other"), str(tmp_path / "dump"), "--json"])
    (origin,) = json.loads(capsys.readouterr().out)["origins"]
    assert all(name in json.dumps(origin) for name in ("torch.Tensor.copy_", "torch.Tensor.zero_", "torch.zeros"))


def test_calls_of_a_package_imported_after_the_debugger_was_made_are_recorded(
    make: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import types  # noqa: PLC0415

    monkeypatch.delitem(sys.modules, "torch_npu", raising=False)
    with torch.library._scoped_library("npu", "DEF") as library:
        library.define("npu_twice(Tensor x) -> Tensor")
        library.impl("npu_twice", lambda x: x * 2, "CompositeExplicitAutograd")
        torch.ops.npu.npu_twice(X)
        debugger = make(level="L1", custom_op_namespaces=["of_others"])
        debugger.start()
        torch.ops.npu.npu_twice(X)
        debugger.stop()
        monkeypatch.setitem(sys.modules, "torch_npu", types.ModuleType("torch_npu"))
        debugger.start()
        torch.ops.npu.npu_twice(X)
        debugger.stop()
        debugger.step()
    assert list(read().data) == ["NPU.npu_twice.0.forward"]


def test_a_list_of_the_users_own_replaces_the_shipped_one(make: Any, read: Any, tmp_path: Any) -> None:
    path = tmp_path / "ops.yaml"
    path.write_text("functional: ['*elu']\ntensor: [__neg__]\n", encoding="utf-8")

    def run() -> None:
        F.gelu(X)
        F.softmax(X, 0)
        -X  # noqa: B018

    assert list(_capture(make, read, run, wrap_ops=str(path))) == [
        "Functional.gelu.0.forward",
        "Tensor.__neg__.0.forward",
    ]
    path.write_text("functional: 3", encoding="utf-8")
    with pytest.raises(ConfigError, match="functional"):
        read_list(str(path))


def test_every_listed_name_of_torch_reaches_the_table() -> None:
    wanted = read_list()
    table = Table(wanted)
    for name in wanted.names["functional"]:
        function = getattr(F, name, None)
        if function is not None:
            assert table.find(function, None, ()) is not None, name


def test_stacks_begin_in_the_program_and_hide_the_capture(make: Any, read: Any) -> None:
    model = nn.Sequential(nn.LayerNorm(2))
    debugger = make(level="mix")
    debugger.start(model)
    model(X)
    debugger.stop()
    debugger.step()
    stacks = {node: frames for nodes, frames in read().json("stack.json").values() for node in nodes}
    frames = stacks["Functional.layer_norm.0.forward"]
    assert "normalization.py" in frames[0]
    assert "in forward" in frames[0]
    assert any("test_functions.py" in frame for frame in frames)
    assert not [frame for frame in frames if "dumpscope_capture" in frame or "overrides.py" in frame]


def test_calls_keep_plain_names_where_the_bytecode_cannot_be_read(
    make: Any, read: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later Python may lay code out in another way: then a call has the name and the arguments that torch gives it."""

    def unreadable(code: Any) -> Any:
        raise ValueError("unknown instruction")

    monkeypatch.setattr(bytecode.dis, "get_instructions", unreadable)
    monkeypatch.setattr(bytecode, "_sites", {})
    monkeypatch.setattr(bytecode, "_codes", {})

    def run() -> None:
        F.softmax(2 * X + X, dim=-1)
        torch.relu(X).add(X)

    data = _capture(make, read, run)
    assert list(data) == [
        f"{name}.0.forward" for name in ("Tensor.mul", "Tensor.add", "Functional.softmax", "Torch.relu")
    ] + ["Tensor.add.1.forward"]
    assert len(data["Tensor.add.0.forward"]["input_args"]) == 2
    assert not read().errors
