"""Writes checkpoints.tar.xz: one small model, saved by the tools themselves in every form, healthy and with one change.

    python -m venv recipe && recipe/bin/pip install torch safetensors transformers accelerate
    recipe/bin/python tests/data/make_checkpoints.py

Every form is a folder with `healthy` and `planted`; in `planted` one element (or one moment of the optimizer) differs, as
facts.json says: {form: {"tensor", "index", "by"}}. Megatron's folders are written by torch.save in the form of its legacy format,
as Megatron itself needs GPUs; the distributed ones by two processes of torch.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import save_file
from torch import multiprocessing
from torch.distributed.checkpoint.state_dict import get_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

HERE = Path(__file__).parent
LAYER = "model.layers.1.mlp.down_proj.weight"
INDEX = (5, 7)
BY = 0.5
facts: dict[str, dict[str, Any]] = {}


def make_model(*, tied: bool = False) -> LlamaForCausalLM:
    torch.manual_seed(3)
    config = LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
        vocab_size=64, tie_word_embeddings=tied,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def make_optimizer(model: torch.nn.Module) -> torch.optim.AdamW:
    """After one step, with two groups, as trainers make them."""
    decay = [one for one in model.parameters() if one.ndim > 1]
    rest = [one for one in model.parameters() if one.ndim <= 1]
    optimizer = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}], lr=1e-3
    )
    model(input_ids=torch.arange(16).reshape(2, 8), labels=torch.arange(16).reshape(2, 8)).loss.backward()
    optimizer.step()
    return optimizer


def plant(model: torch.nn.Module) -> None:
    with torch.no_grad():
        dict(model.named_parameters())[LAYER][INDEX] += BY


def both(form: str, save: Any, *, tensor: str = LAYER) -> None:
    """Save a healthy and a planted model."""
    for state in ("healthy", "planted"):
        folder = Path(form) / state
        folder.mkdir(parents=True)
        model = make_model()
        if state == "planted":
            plant(model)
        save(model, folder)
    facts[form] = {"tensor": tensor, "index": list(INDEX), "by": BY}


def save_legacy(model: torch.nn.Module, folder: Path) -> None:
    torch.save({"model": model.state_dict(), "args": argparse.Namespace(lr=1e-3, name="run"), "epoch": 3},
               folder / "model.pth", _use_new_zipfile_serialization=False)  # fmt: skip


def save_shards(model: torch.nn.Module, folder: Path) -> None:
    """Two files of torch.save with an index, as transformers wrote them before safetensors."""
    held = list(model.state_dict().items())
    names = ["pytorch_model-00001-of-00002.bin", "pytorch_model-00002-of-00002.bin"]
    for name, part in zip(names, (held[:10], held[10:]), strict=True):
        torch.save(dict(part), folder / name)
    table = {key: names[place >= 10] for place, (key, _) in enumerate(held)}
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": table}))


def save_training(state: str) -> None:
    folder = Path("training") / state
    folder.mkdir(parents=True)
    model = make_model()
    optimizer = make_optimizer(model)
    saved = optimizer.state_dict()
    if state == "planted":
        saved["state"][3]["exp_avg"][2, 1] += BY
    torch.save({"state_dict": model.state_dict(), "optimizer_states": [saved], "lr_schedulers": [], "global_step": 1,
                "rng": torch.get_rng_state()}, folder / "last.ckpt")  # fmt: skip


def distributed(rank: int, where: str) -> None:
    os.chdir(where)
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29512")
    dist.init_process_group("gloo", rank=rank, world_size=2)
    for state in ("healthy", "planted"):
        model = make_model()
        if state == "planted":
            plant(model)
        mesh = init_device_mesh("cpu", (2,))
        for layer in model.model.layers:
            fully_shard(layer, mesh=mesh)
        fully_shard(model, mesh=mesh)
        optimizer = torch.optim.AdamW(model.parameters(), lr=0.0, weight_decay=0.0)
        model(input_ids=torch.arange(16).reshape(2, 8), labels=torch.arange(16).reshape(2, 8)).loss.backward()
        for one in model.parameters():
            one.grad.zero_()
        optimizer.step()
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optim": moments, "step": 1}, checkpoint_id=f"distributed/{state}")
    dist.destroy_process_group()


def megatron(state: str) -> None:
    """Tensor-parallel 2, pipeline 2: gate and value of each shard in one tensor, layers counted from 0 on every stage."""
    model = make_model()
    if state == "planted":
        plant(model)
    held = model.state_dict()
    for shard in range(2):
        for stage in range(2):
            part: dict[str, torch.Tensor | io.BytesIO] = {}

            def cut(name: str, dimension: int, shard: int = shard) -> torch.Tensor:
                return held[name].chunk(2, dimension)[shard].clone()

            if stage == 0:
                padded = torch.cat([held["model.embed_tokens.weight"], torch.zeros(16, 32)])
                part["embedding.word_embeddings.weight"] = padded.chunk(2)[shard].clone()
            layer, into = f"model.layers.{stage}", "decoder.layers.0"
            part[f"{into}.self_attention.linear_proj.weight"] = cut(f"{layer}.self_attn.o_proj.weight", 1)
            part[f"{into}.self_attention.linear_proj._extra_state"] = io.BytesIO(b"fp8")
            part[f"{into}.self_attention.linear_qkv.weight"] = torch.cat(
                [cut(f"{layer}.self_attn.{one}_proj.weight", 0) for one in "qkv"]
            )
            part[f"{into}.mlp.linear_fc1.weight"] = torch.cat(
                [cut(f"{layer}.mlp.gate_proj.weight", 0), cut(f"{layer}.mlp.up_proj.weight", 0)]
            )
            part[f"{into}.mlp.linear_fc2.weight"] = cut(f"{layer}.mlp.down_proj.weight", 1)
            part[f"{into}.input_layernorm.weight"] = held[f"{layer}.input_layernorm.weight"].clone()
            if stage == 1:
                part["decoder.final_layernorm.weight"] = held["model.norm.weight"].clone()
                part["output_layer.weight"] = cut("lm_head.weight", 0)
            folder = Path("megatron") / state / "iter_0000100" / f"mp_rank_{shard:02}_{stage:03}"
            folder.mkdir(parents=True)
            torch.save({"model": part, "args": argparse.Namespace(tensor_model_parallel_size=2), "iteration": 100,
                        "checkpoint_version": 3.0}, folder / "model_optim_rng.pt")  # fmt: skip
    (Path("megatron") / state / "latest_checkpointed_iteration.txt").write_text("100")


def main() -> None:
    where = tempfile.mkdtemp()
    os.chdir(where)
    both("safetensors", lambda model, folder: save_file(model.state_dict(), folder / "model.safetensors"))
    both("sharded", lambda model, folder: model.save_pretrained(folder, max_shard_size="24KB"))
    both("torch", lambda model, folder: torch.save(model.state_dict(), folder / "model.pt"))
    both("legacy", save_legacy)
    both("torch_shards", save_shards)
    for state in ("healthy", "planted"):
        save_training(state)
        megatron(state)
    facts["training"] = {
        "tensor": "optimizer.model.layers.0.self_attn.v_proj.weight.exp_avg", "index": [2, 1], "by": BY,
    }  # fmt: skip
    facts["megatron"] = {"tensor": "decoder.layers.1.mlp.linear_fc2.weight", "index": list(INDEX), "by": BY}
    multiprocessing.spawn(distributed, (where,), nprocs=2)
    facts["distributed"] = {"tensor": f"model.{LAYER}", "index": list(INDEX), "by": BY}
    Path("others").mkdir()
    tied = make_model(tied=True)
    torch.save(tied.state_dict(), "others/tied.pt")
    tied.save_pretrained("others/tied")
    torch.save(make_model(), "others/whole_module.pt")
    Path("facts.json").write_text(json.dumps(facts, indent=1))
    with tarfile.open(HERE / "checkpoints.tar.xz", "w:xz") as archive:
        for name in sorted(os.listdir(".")):
            archive.add(name)
    shutil.rmtree(where)


if __name__ == "__main__":
    sys.exit(main())
