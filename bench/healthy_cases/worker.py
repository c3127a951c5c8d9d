"""Records runs of tiny models, each in a forked process, one for each rank.

    python worker.py RUNS.json        a list of {"folder", "run", "record"}; runs with a folder are left out

This process imports what the runs need and computes nothing, so that a run finds torch as if it were the first.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import random
import shutil
import sys
import traceback
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import torch
from healthy_cases.models import MODELS, Made, calm, draw, fill
from model_cases.garbage import Garbage
from torch import nn

if TYPE_CHECKING:
    from healthy_cases.models import Batch

DTYPES: Final = {"float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}


class Inner(nn.Module):
    """A wrapper that keeps the model as `module`, as data parallel ones do."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)


class DataParallel(Inner):
    """With the name by which torch's own is known."""


class Averaged(Inner):
    """With a name of its own."""


def wrapped(made: Made, way: str) -> nn.Module:
    """The model, wrapped or changed as `way` says."""
    some = made.model
    if way == "ddp":
        return nn.parallel.DistributedDataParallel(some)
    if way == "module":
        return DataParallel(some)
    if way == "own wrapper":
        return Averaged(some)
    if way.startswith("compile "):
        return torch.compile(some, backend=way.partition(" ")[2])  # type: ignore[return-value]
    if way == "compiled blocks":
        for owner, name in made.blocks(some):
            setattr(owner, name, torch.compile(getattr(owner, name), backend="eager"))
    if way == "checkpoint":
        if hasattr(some, "gradient_checkpointing_enable"):
            some.gradient_checkpointing_enable()
        else:
            from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper  # noqa: PLC0415

            for owner, name in made.blocks(some):
                setattr(owner, name, checkpoint_wrapper(getattr(owner, name)))
    if way == "fsdp1":
        from torch.distributed.fsdp import FullyShardedDataParallel  # noqa: PLC0415

        options: dict[str, Any] = {"use_orig_params": True, "device_id": torch.device("cpu")}
        for owner, name in made.blocks(some):
            setattr(owner, name, FullyShardedDataParallel(getattr(owner, name), **options))
        return FullyShardedDataParallel(some, **options)
    if way == "fsdp2":
        from torch.distributed.device_mesh import init_device_mesh  # noqa: PLC0415
        from torch.distributed.fsdp import fully_shard  # noqa: PLC0415

        mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
        for owner, name in made.blocks(some):
            fully_shard(getattr(owner, name), mesh=mesh)
        fully_shard(some, mesh=mesh)
    if way == "peft":
        from peft import LoraConfig, get_peft_model  # noqa: PLC0415

        targets = (
            ["c_attn"] if "GPT2" in type(some).__name__ else ["query"] if "Bert" in type(some).__name__ else ["q_proj"]
        )
        adapted = get_peft_model(some, LoraConfig(r=2, target_modules=targets))
        adapted.base_model.disable_adapter_layers()
        for name, value in adapted.named_parameters():
            value.requires_grad_("lora_" not in name)
        return adapted  # type: ignore[no-any-return]
    return some


def part_of(batch: Batch, place: int, parts: int) -> Batch:
    """Some rows of a batch: the `place`-th of so many equal parts."""
    rows = len(next(iter(batch.values()))) // parts
    return {key: value[place * rows : (place + 1) * rows].clone() for key, value in batch.items()}


def asked(batch: Batch, run: dict[str, Any]) -> Batch:
    """So many rows, so much of each text, and so many more words on its left, which are masked, as `run` asks for."""
    batch = {key: value[: run.get("rows", len(value))] for key, value in batch.items()}
    if "length" in run:
        batch = {key: value[:, : run["length"]] for key, value in batch.items()}
    if "pads" in run:
        fills = {"labels": -100, "attention_mask": 0}
        batch = {
            key: nn.functional.pad(value, (run["pads"], 0), value=fills.get(key, 3)) for key, value in batch.items()
        }
    return batch


def train(run: dict[str, Any], record: dict[str, Any], folder: Path, rank: int) -> None:
    size = run.get("ranks", 1)
    grouped = size > 1 or run.get("wrap") in ("ddp", "fsdp1", "fsdp2")
    torch.set_num_threads(run.get("threads", 1))
    if grouped:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    number = run.get("seed", 1)
    torch.manual_seed(number)
    random.seed(number)
    draw(run.get("seed"))
    with torch.backends.mkldnn.flags(enabled=run.get("mkldnn", True)):
        made = MODELS[run["model"]](run)
        some = made.model
        fill(some)
        calm(some)
        dtype = run.get("dtype", "float32")
        batch = asked(part_of(made.batch, rank, size), run)
        if dtype in DTYPES:
            some.to(DTYPES[dtype])
            batch = {
                key: value.to(DTYPES[dtype]) if value.is_floating_point() else value for key, value in batch.items()
            }
        some.train()
        some = wrapped(made, run.get("wrap", ""))
        weights = [one for one in some.parameters() if one.requires_grad]
        adam = run.get("optimizer") == "adam"
        optimizer = torch.optim.AdamW(weights, lr=1e-3) if adam else torch.optim.SGD(weights, lr=0.01, momentum=0.9)
        cast = torch.autocast("cpu", dtype=torch.bfloat16) if dtype == "autocast" else nullcontext()
        seed = run.get("garbage")
        debugger = recorder(record, folder, rank)
        with Garbage(seed) if seed is not None else nullcontext():
            for _ in range(run.get("steps", 1)):
                debugger.start(some)
                for place in range(run.get("micro", 1)):
                    with cast:
                        loss = made.loss(some, part_of(batch, place, run.get("micro", 1)))
                    (loss / run.get("micro", 1)).backward() if "micro" in run else loss.backward()
                optimizer.step()
                debugger.stop()
                debugger.step()
                optimizer.zero_grad()
    if grouped:
        torch.distributed.destroy_process_group()


def recorder(record: dict[str, Any], folder: Path, rank: int) -> Any:
    from dumpscope_capture import PrecisionDebugger  # noqa: PLC0415

    logging.getLogger("dumpscope").setLevel(logging.WARNING)
    task, mode = record["task"], record.get("mode")
    settings: dict[str, Any] = {"task": task, "level": record["level"], "dump_path": str(folder)}
    settings[task] = {"summary_mode": mode} if mode else {}
    config = folder / f"config{rank}.json"
    config.write_text(json.dumps(settings), encoding="utf-8")
    return PrecisionDebugger(str(config))


def library_case(run: dict[str, Any], record: dict[str, Any], folder: Path, rank: int) -> None:
    """A case of bench/model_cases, with other uninitialised memory."""
    from model_cases.cases import CASES  # noqa: PLC0415
    from model_cases.runs import SEED, Captured, seed  # noqa: PLC0415

    torch.set_num_threads(1)
    size = CASES[run["case"]].ranks
    if size > 1:
        os.environ.update(RANK=str(rank), WORLD_SIZE=str(size))
        torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=size)
    seed(run.get("seed", SEED))
    settings = {"task": record["task"], "level": record["level"]}
    garbage = run.get("garbage")
    with Garbage(garbage) if garbage is not None else nullcontext():
        CASES[run["case"]].run(Captured(settings, rank, size, folder))
    if size > 1:
        torch.distributed.destroy_process_group()


def ranks_of(run: dict[str, Any]) -> int:
    if "case" in run:
        from model_cases.cases import CASES  # noqa: PLC0415

        return CASES[run["case"]].ranks
    return int(run.get("ranks", 1))


def record_run(run: dict[str, Any], record: dict[str, Any], folder: Path) -> None:
    """Fork a process for each rank; FOLDER/failed.txt says why one failed."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    children = []
    for rank in range(ranks_of(run)):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                (library_case if "case" in run else train)(run, record, folder, rank)
                code = 0
            except BaseException:
                (folder / "failed.txt").write_text(traceback.format_exc(), encoding="utf-8")
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        children.append(child)
    if any(os.waitpid(child, 0)[1] for child in children) and not (folder / "failed.txt").exists():
        (folder / "failed.txt").write_text("the process died\n", encoding="utf-8")
    (folder / ".made").touch()


def main(path: str) -> None:
    torch.set_num_threads(1)
    wanted = json.loads(Path(path).read_text(encoding="utf-8"))
    for name in ("transformers", "peft", "torchvision", "timm", "diffusers", "dumpscope_capture"):
        with suppress(Exception):
            importlib.import_module(name)
    for one in wanted:
        folder = Path(one["folder"])
        if not (folder / ".made").exists():
            record_run(one["run"], one["record"], folder)
            print(folder.name, "failed" if (folder / "failed.txt").exists() else "made", one["run"], flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
