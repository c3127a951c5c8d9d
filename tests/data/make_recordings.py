"""Make recordings.tar.xz: one small model with and without a fault, recorded by the real tools of others and by our own capture.

python tests/data/make_recordings.py --torchtitan activation_tracer.py --sglang DIR

Needs torch 2.13, transformers, safetensors, pyzmq and dumpscope_capture. activation_tracer.py: from
agent_tooling/numerics_debugging of torchtitan's repository (July 2026), which is one file. DIR: a folder with the package sglang
unpacked from its wheel (0.5.23); its dumper is run alone, with stand-ins for the parts of a server that it imports.

    debug_mode/     golden.log, fault.log: torch function, ids, stacks, modules, sums of magnitudes of inputs and outputs
                    plain.log: default settings; both.log: both hashes; hash.log, hash_fault.log: integer hashes
                    compiled.log: torch.compile with aot_eager; nothing.log: without hashes
    torchtitan/     golden/rank_0_activations.log, fault/...
    transformers/   printed, printed_fault: use_repr=True, all layers; saved, saved_fault: with .safetensors
    sglang/         golden/*.pt, fault/*.pt: two steps
    ours/           mix: the model of debug_mode, statistics; llama: that of transformers, tensors

The fault: a product by 1.02 behind the first of two blocks (debug_mode, torchtitan), the activation of layer 1 is 5 % too
large (transformers, sglang).
"""

# ruff: noqa: PLC0415  (each tool is imported where it is run)

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import tarfile
import tempfile
import types
from pathlib import Path
from typing import Any

import torch
from torch import nn

ARCHIVE = Path(__file__).with_name("recordings.tar.xz")


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(16, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.fc(x)) + x)


class Net(nn.Module):
    def __init__(self, factor: float) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(16, 20)
        self.factor = factor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layers[0](x) * self.factor
        x = self.layers[1](x)
        return self.head(x).softmax(-1)


def make_net(fault: bool) -> tuple[nn.Module, torch.Tensor]:
    torch.manual_seed(0)
    return Net(1.02 if fault else 1.0), torch.randn(80, 16)


def train(net: Any, data: torch.Tensor) -> None:
    (net(data) ** 2).sum().backward()


def debug_mode(folder: Path) -> None:
    from torch.utils._debug_mode import DebugMode

    full = {"record_torchfunction": True, "record_ids": True, "record_stack_trace": True, "record_nn_module": True}
    cases: list[tuple[str, bool, dict[str, Any], Any]] = [
        ("golden", False, full, "norm"),
        ("fault", True, full, "norm"),
        ("plain", False, {}, "norm"),
        ("both", False, full, ["norm", "hash_tensor"]),
        ("hash", False, full, "hash_tensor"),
        ("hash_fault", True, full, "hash_tensor"),
        ("nothing", False, full, None),
        ("compiled", False, full, "norm"),
    ]
    folder.mkdir()
    for name, fault, settings, hashes in cases:
        net, data = make_net(fault)
        run = torch.compile(net, backend="aot_eager") if name == "compiled" else net
        with DebugMode(**settings) as mode:
            if hashes is None:
                train(run, data)
            else:
                with DebugMode.log_tensor_hashes(hash_fn=hashes, hash_inputs=True):
                    train(run, data)
        (folder / f"{name}.log").write_text(mode.debug_string())


def torchtitan(folder: Path, tracer: Path) -> None:
    spec = importlib.util.spec_from_file_location("activation_tracer", tracer)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["activation_tracer"] = module
    spec.loader.exec_module(module)
    for name in ("golden", "fault"):
        net, data = make_net(name == "fault")
        running = module.DebugModeTracer(net)
        with running:
            train(net, data)
        captures = running._captures
        module.dump_captures_to_file(
            captures, str(folder / name / "rank_0_activations.log"), skipped_excluded_ops=set()
        )


def llama(fault: bool) -> tuple[nn.Module, torch.Tensor]:
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
        vocab_size=50,
    )  # fmt: skip
    model = LlamaForCausalLM(config).eval()
    if fault:
        activation = model.model.layers[1].mlp.act_fn
        right = activation.forward
        activation.forward = lambda x: right(x) * 1.05
    return model, torch.arange(6)[None]


def transformers(folder: Path) -> None:
    from transformers import model_addition_debugger_context

    for name in ("printed", "printed_fault", "saved", "saved_fault"):
        model, ids = llama(name.endswith("fault"))
        place = str(folder / name)
        with model_addition_debugger_context(
            model, debug_path=place, do_prune_layers=False, use_repr=name.startswith("printed")
        ):
            model(input_ids=ids)


def sglang(folder: Path, package: Path) -> None:
    """In a process of its own for each run, as the dumper is one object of its module."""
    for name in ("golden", "fault"):
        environment = {
            **os.environ, "DUMPER_ENABLE": "1", "DUMPER_DIR": str(folder), "DUMPER_EXP_NAME": name,
            "DUMPER_ENABLE_OUTPUT_CONSOLE": "0",
        }  # fmt: skip
        command = [sys.executable, __file__, "--sglang", str(package), "--run", name]
        subprocess.run(command, env=environment, check=True)


def run_sglang(package: Path, fault: bool) -> None:
    model, ids = llama(fault)  # transformers looks for packages, so before there are stand-ins
    for name in ("sglang", "sglang.srt", "sglang.srt.managers"):
        sys.modules[name] = types.ModuleType(name)
    for name in ("sglang.srt.managers.io_struct", "sglang.srt.runtime_context", "sglang.srt.utils"):
        stand_in: Any = types.ModuleType(name)
        stand_in.__getattr__ = lambda _name: lambda *_given, **_named: None
        sys.modules[name] = stand_in
    sys.path.insert(0, str(package / "sglang" / "srt" / "debug_utils"))
    from dumper import dumper

    def dump(name: str, **tags: Any) -> Any:
        return lambda _module, _given, made: dumper.dump(name, made[0] if isinstance(made, tuple) else made, **tags)

    model.model.embed_tokens.register_forward_hook(dump("embed"))
    for number, layer in enumerate(model.model.layers):
        layer.self_attn.register_forward_hook(dump("attn_output", layer_id=number))
        layer.mlp.act_fn.register_forward_hook(dump("mlp_act", layer_id=number))
        layer.mlp.register_forward_hook(dump("mlp_output", layer_id=number))
    model.lm_head.register_forward_hook(dump("logits"))
    for step in range(2):
        model(input_ids=ids + step)
        dumper.step()


def ours(folder: Path) -> None:
    from dumpscope_capture import PrecisionDebugger

    net, data = make_net(False)
    debugger = PrecisionDebugger(dump_path=str(folder / "mix"), task="statistics", level="mix")
    debugger.start(net)
    train(net, data)
    debugger.stop()
    debugger.step()
    code = (
        "import runpy, sys; m = runpy.run_path(sys.argv[1]); from dumpscope_capture import PrecisionDebugger;"
        "model, ids = m['llama'](False); d = PrecisionDebugger(dump_path=sys.argv[2], task='tensor', level='L0');"
        "d.start(model); model(input_ids=ids); d.stop(); d.step()"
    )
    subprocess.run([sys.executable, "-c", code, __file__, str(folder / "llama")], check=True)


def neutral(folder: Path, here: Path) -> None:
    """Take names of this machine out of the texts, and process numbers out of folders."""
    libraries = str(Path(torch.__file__).parents[1])
    for path in folder.rglob("*"):
        if path.suffix in (".log", ".json", ".jsonl") and path.is_file():
            text = path.read_text().replace(str(here), "/job").replace(libraries, "/site-packages")
            path.write_text(text.replace(str(folder), "/dumps"))
    for rank in folder.glob("ours/*/step0/proc*"):
        (rank / "run.json").unlink()
        rank.rename(rank.with_name("rank0"))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--torchtitan", type=Path)
    parser.add_argument("--sglang", type=Path)
    parser.add_argument("--run")
    options = parser.parse_args()
    if options.run:
        run_sglang(options.sglang, options.run == "fault")
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        debug_mode(folder / "debug_mode")
        torchtitan(folder / "torchtitan", options.torchtitan)
        transformers(folder / "transformers")
        sglang(folder / "sglang", options.sglang)
        ours(folder / "ours")
        neutral(folder, Path(__file__).parent)
        with tarfile.open(ARCHIVE, "w:xz", preset=9, format=tarfile.USTAR_FORMAT, dereference=True) as archive:
            for path in sorted(folder.rglob("*")):
                entry = archive.gettarinfo(path, path.relative_to(folder).as_posix())
                entry.uid = entry.gid = entry.mtime = 0
                entry.uname = entry.gname = ""
                with path.open("rb") if path.is_file() else open(os.devnull, "rb") as content:
                    archive.addfile(entry, content if path.is_file() else None)
    print(f"{ARCHIVE}: {ARCHIVE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
