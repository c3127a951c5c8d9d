"""Which pairs of healthy runs there are: few models in many ways. Both runs of a pair compute the same by other means."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Final

Settings = dict[str, Any]

STATISTICS: Final[Settings] = {"level": "mix", "task": "statistics"}
TENSORS: Final[Settings] = {"level": "mix", "task": "tensor"}
CALLS: Final[Settings] = {"level": "L1", "task": "statistics"}
CALL_TENSORS: Final[Settings] = {"level": "L1", "task": "tensor"}
MODULES: Final[Settings] = {"level": "L0", "task": "statistics"}
HASHES: Final[Settings] = {"level": "mix", "task": "statistics", "mode": "md5"}
NOISY: Final = (STATISTICS, CALL_TENSORS, TENSORS, CALLS, MODULES)
"""Records of pairs whose bits differ, taken in turn; bit-equal ones have hashes too."""

PLAIN: Final = ("mlp", "conv", "recurrent", "attention", "experts", "own_llama", "own_vit")
NEWEST: Final = "newest"
"""The interpreter of most runs; others are told by their torch."""


@dataclass(frozen=True)
class Recorded:
    """A run and how it is recorded. run: settings that worker.py takes"""

    run: Settings
    record: Settings

    @property
    def folder(self) -> str:
        text = json.dumps([self.run, self.record], sort_keys=True)
        return hashlib.md5(text.encode()).hexdigest()[:16]

    @property
    def process(self) -> tuple[str, str]:
        """Interpreter and kernels, which a process cannot change: runs that have them in common are made together."""
        return self.run.get("torch", NEWEST), self.run.get("kernels", "")


@dataclass(frozen=True)
class Pair:
    """way: what differs between the sides; other: a kind of origin that is a true difference of these runs, "" for none"""

    way: str
    name: str
    target: Recorded
    golden: Recorded
    other: str = ""


def _both(way: str, name: str, target: Settings, golden: Settings, record: Settings, other: str = "") -> Pair:
    label = f"{name}, {record['level']} {record.get('mode', record['task'])}"
    return Pair(way, label, Recorded(target, record), Recorded(golden, record), other)


def _each(
    way: str, models: str, target: Settings, golden: Settings, records: tuple[Settings, ...] = NOISY, note: str = ""
) -> Iterator[Pair]:
    """A pair for each model, with the records in turn."""
    for number, name in enumerate(models.split()):
        record = records[(number + len(way)) % len(records)]
        yield _both(way, f"{name}{note}", {"model": name, **target}, {"model": name, **golden}, record)


EQUAL: Final = (STATISTICS, HASHES, TENSORS, CALLS, MODULES)
MEMORY: Final = (
    "llama llama_checkpoint mixtral qwen2_moe bert t5 gpt2 whisper generate vit resnet18 detector convnext unet lora trainer "
    "accelerated lightning ddp fsdp1 fsdp2 compiled"
)  # fmt: skip


def _same_twice() -> Iterator[Pair]:
    again = "same model, other uninitialised memory"
    for name in MEMORY.split():
        records = [STATISTICS]
        if name in ("mixtral", "qwen2_moe", "convnext", "detector", "fsdp2", "unet", "generate"):
            records += [HASHES, CALL_TENSORS] if name != "detector" else [HASHES]
        for record in records:
            yield _both(again, name, {"case": name, "garbage": 1}, {"case": name, "garbage": 2}, record)


def _kernels() -> Iterator[Pair]:
    way = "kernels of other instructions"
    slow: Settings = {"kernels": "default"}
    yield from _each(
        way, "mlp conv recurrent attention experts own_llama llama bert t5 gpt2 mixtral whisper vit densenet convnext unet",
        slow, {},
    )  # fmt: skip
    more: Settings = {"steps": 2, "optimizer": "adam"}
    yield from _each(way, "mlp attention llama conv", {**slow, **more}, more, note=", two steps with Adam")
    half: Settings = {"dtype": "bfloat16"}
    yield from _each(way, "llama gpt2 mlp attention experts conv", {**slow, **half}, half, note=" in bfloat16")
    way = "without oneDNN"
    yield from _each(way, "conv densenet unet llama vit convnext recurrent", {"mkldnn": False}, {})
    yield from _each("two threads", "llama conv bert densenet experts", {"threads": 2}, {})


def _dtypes() -> Iterator[Pair]:
    yield from _each(
        "float32 : float64",
        "mlp conv recurrent attention own_llama llama bert vit gpt2 unet",
        {},
        {"dtype": "float64"},
    )
    yield from _each(
        "bfloat16 : float32",
        "mlp conv attention own_llama llama gpt2 t5 vit densenet whisper",
        {"dtype": "bfloat16"},
        {},
    )
    yield from _each("autocast : float32", "mlp conv attention llama bert vit convnext unet", {"dtype": "autocast"}, {})


def _wrappings() -> Iterator[Pair]:
    for way, models in (
        ("compile aot_eager", "mlp attention llama vit"), ("compile eager", "conv bert gpt2"),
        ("compiled blocks", "own_llama llama"), ("ddp", "llama conv experts"), ("module", "gpt2 conv own_llama"),
        ("own wrapper", "llama vit"), ("fsdp1", "llama own_llama"), ("fsdp2", "llama attention"),
        ("checkpoint", "llama gpt2 attention own_llama"), ("peft", "llama gpt2 bert"),
    ):  # fmt: skip
        name = {"ddp": "DDP of one rank", "module": "`module.`", "peft": "PEFT's base"}.get(way, way)
        yield from _each(f"wrapped: {name}", models, {"wrap": way}, {}, EQUAL)


def _attention() -> Iterator[Pair]:
    for name in ("llama", "bert", "gpt2", "vit", "whisper", "mixtral"):
        for record in (STATISTICS, CALL_TENSORS):
            yield _both(
                "attention: eager : fused", name, {"model": name, "attention": "eager"}, {"model": name, "attention": "sdpa"},
                record,
            )  # fmt: skip
    for one, other in (
        ("causal", "added"), ("bool", "added"), ("wide", "bool"), ("infinite", "added"), ("causal", "bool"),
        ("scores", "scores infinite"), ("scores", "added"),
    ):  # fmt: skip
        for record in (STATISTICS, CALL_TENSORS):
            target, golden = ({"model": "attention", "attention": form} for form in (one, other))
            yield _both("attention: forms of the mask", f"{one} : {other}", target, golden, record)


def _rewritten() -> Iterator[Pair]:
    for record in (STATISTICS, CALL_TENSORS, MODULES):
        for form in ("sdpa", "eager"):
            target, golden = ({"model": name, "attention": form} for name in ("own_llama", "bare_llama"))
            yield _both("written again", f"llama {form}", target, golden, record, "structure")
        yield _both("written again", "vit", {"model": "own_vit"}, {"model": "vit"}, record, "structure")


def _batches() -> Iterator[Pair]:
    way = "two ranks : one process"
    for record in (STATISTICS, CALL_TENSORS):
        for name in ("mlp", "attention", "own_llama", "llama", "vit"):
            yield _both(way, name, {"model": name, "ranks": 2, "wrap": "ddp"}, {"model": name}, record)
    for number, name in enumerate(("mlp", "attention", "own_llama", "llama", "vit", "gpt2")):
        target, golden = ({"model": name, "ranks": ranks, "wrap": "ddp"} for ranks in (2, 4))
        yield _both("two ranks : four", name, target, golden, NOISY[number % 4])


def _amounts() -> Iterator[Pair]:
    """What is made of other data cannot be compared, so these pairs are not fully judged at best."""
    for way, models, target, golden in (
        ("four rows : one", "mlp attention own_llama llama vit gpt2", {}, {"rows": 1}),
        ("micro-batches : one batch", "mlp attention own_llama llama vit bert", {"micro": 2}, {}),
        ("beginning of texts : whole", "attention own_llama llama gpt2", {"length": 7}, {}),
        ("padded on the left : bare", "llama", {"rows": 1, "pads": 3}, {"rows": 1}),
    ):
        for record in (STATISTICS, TENSORS):
            for name in models.split():
                yield _both(way, name, {"model": name, **target}, {"model": name, **golden}, record)


def _versions() -> Iterator[Pair]:
    yield from _each("torch 2.13 : 2.14", "llama bert gpt2 t5 mixtral whisper vit unet", {"torch": "2.13"}, {})
    yield from _each("torch 2.5 : 2.14", " ".join(PLAIN), {"torch": "2.5"}, {})
    yield from _each("torch 2.1 : 2.13", "mlp conv attention own_llama", {"torch": "2.1"}, {"torch": "2.13"})
    yield from _each("torch 2.7 : 2.9", "recurrent experts own_vit conv", {"torch": "2.7"}, {"torch": "2.9"})


def _records() -> Iterator[Pair]:
    """One run recorded in two ways."""
    for one, other, models in (
        (TENSORS, STATISTICS, "llama conv experts"), (CALLS, STATISTICS, "llama attention vit"),
        (HASHES, STATISTICS, "bert recurrent"), (MODULES, STATISTICS, "gpt2 conv"), (HASHES, TENSORS, "mlp own_llama"),
    ):  # fmt: skip
        for name in models.split():
            label = " : ".join(f"{record['level']} {record.get('mode', record['task'])}" for record in (one, other))
            yield Pair(
                "recorded in two ways",
                f"{name}, {label}",
                Recorded({"model": name}, one),
                Recorded({"model": name}, other),
            )


def all_pairs(seed: int | None = None) -> list[Pair]:
    """seed: by which other weights and data are drawn"""
    pairs = [
        *_same_twice(), *_kernels(), *_dtypes(), *_wrappings(), *_attention(), *_rewritten(), *_batches(), *_amounts(),
        *_versions(), *_records(),
    ]  # fmt: skip
    return pairs if seed is None else [_drawn(pair, seed) for pair in pairs]


def _drawn(pair: Pair, seed: int) -> Pair:
    sides = [replace(side, run={**side.run, "seed": seed}) for side in (pair.target, pair.golden)]
    return replace(pair, target=sides[0], golden=sides[1])
