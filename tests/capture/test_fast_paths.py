"""Layers that run as one fused kernel without capture do so with it, to the bit, and the dump says it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

import pytest
import torch
from torch import nn

from dumpscope_capture.hooks.functions import FunctionMode, mode_stack
from dumpscope_capture.proof.call_counter import CALL_COUNTER

LEVELS: Final = ("L0", "L1", "mix", "L2")


def _encoder(layers: int = 2, **options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, **options)
    return nn.TransformerEncoder(layer, layers, enable_nested_tensor=not options).eval()


def _padding(rows: int, length: int, padded: int) -> torch.Tensor:
    mask = torch.zeros(rows, length, dtype=torch.bool)
    mask[:, length - padded :] = True
    return mask


def _window_of_padding() -> Any:
    """Rows that see nothing: NaN in the fused kernel, zeros in the other one."""
    model = _encoder(1, norm_first=True)
    places = torch.arange(16)
    distance = places[:, None] - places[None]
    mask = ~((distance >= 0) & (distance < 4))
    return model, lambda: model(torch.randn(1, 16, 32), mask=mask, src_key_padding_mask=_padding(1, 16, 12))


def _nested() -> Any:
    model = _encoder()
    return model, lambda: model(torch.randn(3, 10, 32), src_key_padding_mask=_padding(3, 10, 4))


def _plain() -> Any:
    model = _encoder(activation="gelu")
    return model, lambda: model(torch.randn(3, 10, 32))


def _attention() -> Any:
    model = nn.Sequential()
    torch.manual_seed(0)
    model.add_module("attend", nn.MultiheadAttention(32, 4, batch_first=True).eval())

    def run() -> Any:
        x = torch.randn(3, 10, 32)
        return model.attend(x, x, x, key_padding_mask=_padding(3, 10, 2))[0]

    return model, run


def _decoder() -> Any:
    torch.manual_seed(0)
    model = nn.TransformerDecoder(nn.TransformerDecoderLayer(32, 4, 64, batch_first=True), 2).eval()
    return model, lambda: model(torch.randn(2, 6, 32), torch.randn(2, 5, 32))


def _odd_heads() -> Any:
    """A layer that chooses the slow way by itself."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.TransformerEncoderLayer(30, 3, 64, batch_first=True)).eval()
    return model, lambda: model(torch.randn(2, 6, 30))


def _unbatched() -> Any:
    model = _encoder(norm_first=True)
    return model, lambda: model(torch.randn(6, 32))


CASES: Final[dict[str, tuple[Callable[[], Any], int]]] = {
    "window": (_window_of_padding, 1), "nested": (_nested, 2), "plain": (_plain, 2), "attention": (_attention, 1),
    "decoder": (_decoder, 2), "odd heads": (_odd_heads, 0), "unbatched": (_unbatched, 0),
}  # fmt: skip
"""(model and call, number of layers that run as one kernel)"""


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", CASES)
def test_the_same_kernels_run_with_and_without_capture(make: Any, read: Any, level: str, case: str) -> None:
    build, fused = CASES[case]
    model, call = build()
    with torch.no_grad():
        torch.manual_seed(1)
        bare = call()
        debugger = make(level=level, task="tensor")
        debugger.start(model)
        torch.manual_seed(1)
        captured = call()
        after = torch.relu(torch.ones(2))  # the function mode is back
        debugger.stop()
        debugger.step()
    assert after.tolist() == [1, 1]
    assert torch.equal(bare.nan_to_num(7.5), captured.nan_to_num(7.5))
    assert not read().errors
    if case == "window":
        assert int(captured.isnan().any(-1).sum()) == 9
    if level == "L2":
        return
    assert level == "L0" or "Torch.relu.0.forward" in read().data
    noted = read().run.get("notes", {}).get("fast_path", [])
    if level == "L1":  # modules have no names
        assert len(noted) == bool(fused)
    else:
        assert len(noted) == fused
        assert all(name.startswith("Module.") and f"{name}.forward.0" in read().data for name in noted)
    if not fused and level != "L0":
        assert any(name.startswith("Functional.linear") for name in read().data)


def test_the_slow_way_is_recorded_as_ever(make: Any, read: Any) -> None:
    """In training, with gradients, and where the layers are no self-attention."""
    model = _encoder(norm_first=True)
    debugger = make(level="mix")
    debugger.start(model)
    model(torch.randn(2, 4, 32)).sum().backward()
    model.train()
    model(torch.randn(2, 4, 32)).sum().backward()
    debugger.stop()
    debugger.step()
    assert "notes" not in read().run
    assert sum(name.startswith("Functional.linear") and "forward" in name for name in read().data) == 2 * 2 * 2


def test_a_mode_of_the_program_makes_layers_slow_as_without_capture(make: Any, read: Any) -> None:
    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return func(*args, **(kwargs or {}))

    model, call = _window_of_padding()
    with torch.no_grad(), Mode():
        torch.manual_seed(1)
        bare = call()
        debugger = make(level="mix")
        debugger.start(model)
        torch.manual_seed(1)
        captured = call()
        debugger.stop()
        debugger.step()
    assert not bare.isnan().any()
    assert torch.equal(bare, captured)
    assert "notes" not in read().run
    assert any(name.startswith("Functional.linear") for name in read().data)


def test_layers_stay_fused_while_calls_are_only_counted() -> None:
    _, call = _window_of_padding()
    with torch.no_grad():
        torch.manual_seed(1)
        bare = call()
        CALL_COUNTER.retain()
        try:
            torch.manual_seed(1)
            counted = call()
            assert [type(mode) for mode in mode_stack()] == [FunctionMode]
        finally:
            CALL_COUNTER.release()
    assert mode_stack() == []
    assert torch.equal(bare.nan_to_num(7.5), counted.nan_to_num(7.5))


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_fused_layer_that_raises_gives_the_mode_back(
    make: Any, read: Any, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: Any) -> Any:
        raise error

    model = _encoder(norm_first=True)
    debugger = make(level="mix")
    with torch.no_grad(), monkeypatch.context() as patch:
        patch.setattr(torch, "_transformer_encoder_layer_fwd", fail)
        debugger.start(model)
        with pytest.raises(error):
            model(torch.randn(2, 4, 32))
    model.layers[0].linear1(torch.ones(1, 32))
    debugger.stop()
    debugger.step()
    assert read().construct["Functional.linear.0.forward"] == "Module.layers.0.linear1.Linear.forward.0"
    assert read().construct["Module.layers.0.linear1.Linear.forward.0"] is None
    assert mode_stack() == []


def test_layers_in_another_thread_stay_fused(make: Any, read: Any) -> None:
    model, call = _window_of_padding()
    found = []

    def run() -> None:
        with torch.no_grad():
            torch.manual_seed(1)
            found.append(call())

    debugger = make(level="mix")
    run()
    debugger.start(model)
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    debugger.stop()
    debugger.step()
    assert torch.equal(found[0].nan_to_num(7.5), found[1].nan_to_num(7.5))
    assert read().run["notes"] == {"fast_path": ["Module.layers.0.TransformerEncoderLayer"]}
