# ruff: noqa: PLC0415 - each model imports its own library
"""The tiny models of the healthy pairs: those of libraries, and some written here, of which a few compute what a library's does.

The weights depend on their shapes and order alone: other kernels and versions of torch draw other random numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

WORDS: Final = 64
ROWS: Final = 4
LENGTH: Final = 12
TINY: Final[dict[str, Any]] = {
    "vocab_size": WORDS, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip

if TYPE_CHECKING:
    Batch = dict[str, torch.Tensor]


@dataclass(frozen=True)
class Made:
    """loss: of the model and a batch; blocks: modules that a wrapper may take one by one"""

    model: nn.Module
    batch: Batch
    loss: Callable[[nn.Module, Batch], torch.Tensor]
    blocks: Callable[[nn.Module], list[tuple[nn.Module, str]]] = field(default=lambda model: [])


MODELS: Final[dict[str, Callable[[dict[str, Any]], Made]]] = {}


def model(build: Callable[[dict[str, Any]], Made]) -> Callable[[dict[str, Any]], Made]:
    MODELS[build.__name__] = build
    return build


_DRAWN = {"weights": 11, "tokens": 5, "images": 6}
"""Seeds by which numbers are drawn, the same with every version of torch."""


def draw(seed: int | None) -> None:
    """Draw other weights and data from here on; None: as always."""
    if seed is not None:
        _DRAWN.update(weights=seed + 1, tokens=seed + 2, images=seed + 3)


def fill(some: nn.Module) -> None:
    """Weights and buffers of a model, in their order."""
    numbers = np.random.RandomState(_DRAWN["weights"])
    seen = set()
    with torch.no_grad():
        for name, value in some.named_parameters():
            if id(value) in seen:
                continue
            seen.add(id(value))
            drawn = torch.from_numpy(numbers.standard_normal(tuple(value.shape))).to(value.dtype)
            if value.ndim > 1:
                value.copy_(drawn / math.sqrt(value[0].numel()))
            else:
                value.copy_(0.1 * drawn + (name.endswith(("weight", "scale")) or "gamma" in name))


def calm(some: nn.Module) -> None:
    """No dropout of any kind."""
    for module in some.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            module.p = 0.0
        for name in ("attention_dropout", "dropout", "activation_dropout", "attn_dropout", "dropout_p", "layerdrop"):
            if isinstance(getattr(module, name, None), float):
                setattr(module, name, 0.0)


def tokens(rows: int = ROWS, length: int = LENGTH) -> torch.Tensor:
    return torch.from_numpy(np.random.RandomState(_DRAWN["tokens"]).randint(3, WORDS, (rows, length)))


def images(*size: int) -> torch.Tensor:
    return torch.from_numpy(np.random.RandomState(_DRAWN["images"]).standard_normal((ROWS, *size))).float()


def text(pad: int = 0) -> Batch:
    """Token ids with labels, the last row padded on the left by `pad`."""
    ids = tokens()
    mask = torch.ones_like(ids)
    mask[-1, :pad] = 0
    labels = ids.masked_fill(mask == 0, -100)
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


def own_loss(some: nn.Module, batch: Batch) -> torch.Tensor:
    """Of models written here: cross entropy of what they make of `x`, against `y`."""
    made = some(batch["x"])
    found: torch.Tensor = F.cross_entropy(made.flatten(0, -2).float(), batch["y"].flatten())
    return found


def words() -> Batch:
    ids = tokens()
    return {"x": ids[:, :-1].contiguous(), "y": ids[:, 1:].contiguous()}


def pictures(*size: int) -> Batch:
    return {"x": images(*size), "y": torch.arange(ROWS) % 3}


def blocks_of(some: nn.Module) -> list[tuple[nn.Module, str]]:
    """Modules of the model's lists, each as its owner and name."""
    return [
        (owner, name)
        for owner in some.modules()
        if isinstance(owner, nn.ModuleList)
        for name, _ in owner.named_children()
    ]


# -- written here ------------------------------------------------------------------------------------------------------


@model
def mlp(form: dict[str, Any]) -> Made:
    net = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.LayerNorm(48), nn.Linear(48, 32), nn.Tanh(), nn.Linear(32, 3))
    return Made(net, pictures(24), own_loss)


@model
def conv(form: dict[str, Any]) -> Made:
    net = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 12, 3, groups=2), nn.GroupNorm(3, 12),
        nn.SiLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 3),
    )  # fmt: skip
    return Made(net, pictures(3, 16, 16), own_loss)


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.words, self.gru, self.lstm = nn.Embedding(WORDS, 16), nn.GRU(16, 24, batch_first=True), nn.LSTM(24, 24)
        self.out = nn.Linear(24, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made = self.gru(self.words(x))[0]
        found: torch.Tensor = self.out(self.lstm(made.transpose(0, 1))[0].transpose(0, 1))
        return found


@model
def recurrent(form: dict[str, Any]) -> Made:
    return Made(Recurrent(), words(), own_loss)


class Plain(nn.Module):
    """An encoder layer, with attention in each form that `form` asks for."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.first, self.second = nn.LayerNorm(32), nn.LayerNorm(32)
        self.mix, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)

    def attend(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.shape[-2]
        kept = torch.ones(length, length, dtype=torch.bool).tril()
        if self.form == "causal":
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        if self.form == "bool":
            return F.scaled_dot_product_attention(q, k, v, attn_mask=kept)
        if self.form == "wide":
            return F.scaled_dot_product_attention(q, k, v, attn_mask=kept[None, None])
        low = -math.inf if self.form in ("infinite", "scores infinite") else torch.finfo(q.dtype).min
        mask = torch.zeros(length, length, dtype=q.dtype).masked_fill(~kept, low)
        if not self.form.startswith("scores"):
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        weights = (q @ k.transpose(-1, -2)) * q.shape[-1] ** -0.5 + mask
        return torch.softmax(weights, -1) @ v

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (one.unflatten(-1, (4, 8)).transpose(1, 2) for one in self.mix(self.first(x)).chunk(3, -1))
        x = x + self.out(self.attend(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.second(x))))


class Stack(nn.Module):
    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 32), nn.Parameter(torch.zeros(LENGTH, 32))
        self.layers, self.out = nn.ModuleList(layers), nn.Linear(32, WORDS)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.words(x) + self.places[: x.shape[1]]
        for layer in self.layers:
            x = layer(x)
        found: torch.Tensor = self.out(x)
        return found


@model
def attention(form: dict[str, Any]) -> Made:
    asked = form.get("attention", "added")
    return Made(Stack([Plain(asked), Plain(asked)]), words(), own_loss, blocks_of)


class Experts(nn.Module):
    """The two best of four experts, each with the rows that chose it."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.gate = nn.LayerNorm(32), nn.Linear(32, 4, bias=False)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(32, 40), nn.SiLU(), nn.Linear(40, 32)) for _ in range(4)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows = self.norm(x).flatten(0, 1)
        share, chosen = torch.topk(torch.softmax(self.gate(rows), -1), 2)
        made = torch.zeros_like(rows)
        for number, expert in enumerate(self.experts):
            at, place = torch.where(chosen == number)
            made.index_add_(0, at, (expert(rows[at]) * share[at, place, None]).to(made.dtype))
        return x + made.view_as(x)


@model
def experts(form: dict[str, Any]) -> Made:
    return Made(Stack([Plain("causal"), Experts()]), words(), own_loss, blocks_of)


# -- what a library's model computes, in other words -------------------------------------------------------------------


class Rms(nn.Module):
    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.scale, self.eps = nn.Parameter(torch.ones(size)), eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.float()
        return self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.eps)).to(x.dtype)


def turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, -1)
    return x * cos + torch.cat((-right, left), -1) * sin


class Layer(nn.Module):
    """A layer of Llama; its parameters stand in the order of the library's."""

    def __init__(self, form: str) -> None:
        super().__init__()
        self.form = form
        self.wq, self.wk, self.wv = (nn.Linear(32, size, bias=False) for size in (32, 16, 16))
        self.wo = nn.Linear(32, 32, bias=False)
        self.w1, self.w3, self.w2 = (
            nn.Linear(32, 48, bias=False),
            nn.Linear(32, 48, bias=False),
            nn.Linear(48, 32, bias=False),
        )
        self.before, self.after = Rms(32, 1e-6), Rms(32, 1e-6)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        here = self.before(x)
        q = turn(self.wq(here).view(rows, length, 4, 8).transpose(1, 2), cos, sin)
        k = turn(self.wk(here).view(rows, length, 2, 8).transpose(1, 2), cos, sin)
        v = self.wv(here).view(rows, length, 2, 8).transpose(1, 2)
        k, v = k.repeat_interleave(2, 1), v.repeat_interleave(2, 1)
        if self.form == "eager":
            kept = torch.ones(length, length, dtype=torch.bool).tril()
            weights = (q @ k.transpose(2, 3)) / math.sqrt(8)
            made = torch.softmax(weights.masked_fill(~kept, -math.inf), -1) @ v
        else:
            made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.wo(made.transpose(1, 2).reshape(rows, length, 32))
        here = self.after(x)
        return x + self.w2(F.silu(self.w1(here)) * self.w3(here))


class OwnLlama(nn.Module):
    def __init__(self, form: str) -> None:
        super().__init__()
        self.tok = nn.Embedding(WORDS, 32, padding_idx=0)
        self.blocks = nn.ModuleList([Layer(form), Layer(form)])
        self.norm, self.head = Rms(32, 1e-6), nn.Linear(32, WORDS, bias=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        turns = 1.0 / (10000.0 ** (torch.arange(0, 8, 2).float() / 8))
        angle = torch.outer(torch.arange(ids.shape[1]).float(), turns)
        angle = torch.cat((angle, angle), -1)
        cos, sin = angle.cos(), angle.sin()
        x = self.tok(ids)
        for block in self.blocks:
            x = block(x, cos.to(x.dtype), sin.to(x.dtype))
        found: torch.Tensor = self.head(self.norm(x))
        return found


def shifted_loss(some: nn.Module, batch: Batch) -> torch.Tensor:
    made = some(batch["input_ids"])[:, :-1].float()
    found: torch.Tensor = F.cross_entropy(made.reshape(-1, WORDS), batch["input_ids"][:, 1:].reshape(-1))
    return found


@model
def own_llama(form: dict[str, Any]) -> Made:
    return Made(OwnLlama(form.get("attention", "sdpa")), {"input_ids": tokens()}, shifted_loss, blocks_of)


class OwnVit(nn.Module):
    """ViT of the library in other words; its parameters stand in the library's order."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.places = nn.Parameter(torch.zeros(1, 1, 32)), nn.Parameter(torch.zeros(1, 17, 32))
        self.cut = nn.Conv2d(3, 32, 8, 8)
        self.parts = nn.ModuleList([OwnVitLayer(), OwnVitLayer()])
        self.last, self.head = nn.LayerNorm(32, 1e-12), nn.Linear(32, 5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.cut(x).flatten(2).mT
        x = torch.cat((self.first.expand(len(x), -1, -1), x), 1) + self.places
        for part in self.parts:
            x = part(x)
        found: torch.Tensor = self.head(self.last(x)[:, 0])
        return found


class OwnVitLayer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(32, 32) for _ in range(4))
        self.before, self.after = nn.LayerNorm(32, 1e-12), nn.LayerNorm(32, 1e-12)
        self.up, self.down = nn.Linear(32, 48), nn.Linear(48, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        here = self.before(x)
        q, k, v = (one(here).unflatten(-1, (4, 8)).transpose(1, 2) for one in (self.q, self.k, self.v))
        x = x + self.o(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.after(x))))


@model
def own_vit(form: dict[str, Any]) -> Made:
    def loss(some: nn.Module, batch: Batch) -> torch.Tensor:
        return F.cross_entropy(some(batch["pixel_values"]), batch["labels"])

    return Made(OwnVit(), _photo(), loss, blocks_of)


# -- of libraries ------------------------------------------------------------------------------------------------------


def library_loss(some: nn.Module, batch: Batch) -> torch.Tensor:
    found: torch.Tensor = some(**batch).loss
    return found


def _settings(form: dict[str, Any]) -> dict[str, Any]:
    return {"attn_implementation": form["attention"]} if "attention" in form else {}


@model
def llama(form: dict[str, Any]) -> Made:
    from transformers import LlamaConfig, LlamaForCausalLM

    return Made(
        LlamaForCausalLM(LlamaConfig(**TINY, **_settings(form))), text(form.get("pad", 0)), library_loss, blocks_of
    )


@model
def bare_llama(form: dict[str, Any]) -> Made:
    """Without a mask, and the loss outside of the model."""
    made = llama(form)
    return Made(
        made.model, {"input_ids": tokens()}, lambda some, batch: shifted_loss(lambda ids: some(input_ids=ids).logits, batch),
        blocks_of,
    )  # fmt: skip


@model
def mixtral(form: dict[str, Any]) -> Made:
    from transformers import MixtralConfig, MixtralForCausalLM

    config = MixtralConfig(**TINY, num_local_experts=4, num_experts_per_tok=2, **_settings(form))
    return Made(MixtralForCausalLM(config), text(), library_loss, blocks_of)


@model
def qwen2_moe(form: dict[str, Any]) -> Made:
    from transformers import Qwen2MoeConfig, Qwen2MoeForCausalLM

    config = Qwen2MoeConfig(
        **TINY, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16, shared_expert_intermediate_size=24,
        **_settings(form),
    )  # fmt: skip
    return Made(Qwen2MoeForCausalLM(config), text(), library_loss, blocks_of)


@model
def bert(form: dict[str, Any]) -> Made:
    from transformers import BertConfig, BertForMaskedLM

    config = BertConfig(
        **{key: value for key, value in TINY.items() if key != "num_key_value_heads"}, **_settings(form)
    )
    return Made(BertForMaskedLM(config), text(3), library_loss, blocks_of)


@model
def t5(form: dict[str, Any]) -> Made:
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=WORDS, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, decoder_start_token_id=0,
        feed_forward_proj="gated-gelu",
    )  # fmt: skip
    return Made(T5ForConditionalGeneration(config), text(), library_loss, blocks_of)


@model
def gpt2(form: dict[str, Any]) -> Made:
    from transformers import GPT2Config, GPT2LMHeadModel

    config = GPT2Config(
        vocab_size=WORDS,
        n_positions=64,
        n_embd=32,
        n_layer=2,
        n_head=4,
        bos_token_id=1,
        eos_token_id=2,
        **_settings(form),
    )
    return Made(GPT2LMHeadModel(config), text(), library_loss, blocks_of)


@model
def whisper(form: dict[str, Any]) -> Made:
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    config = WhisperConfig(
        vocab_size=WORDS, num_mel_bins=8, d_model=32, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
        decoder_attention_heads=4, encoder_ffn_dim=48, decoder_ffn_dim=48, max_source_positions=16, max_target_positions=32,
        pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=1, **_settings(form),
    )  # fmt: skip
    return Made(
        WhisperForConditionalGeneration(config),
        {"input_features": images(8, 32), "labels": tokens()},
        library_loss,
        blocks_of,
    )


def _photo() -> Batch:
    return {"pixel_values": images(3, 32, 32), "labels": torch.arange(ROWS) % 3}


@model
def vit(form: dict[str, Any]) -> Made:
    from transformers import ViTConfig, ViTForImageClassification

    config = ViTConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32, patch_size=8,
        num_labels=5, **_settings(form),
    )  # fmt: skip
    return Made(ViTForImageClassification(config), _photo(), library_loss, blocks_of)


@model
def densenet(form: dict[str, Any]) -> Made:
    from torchvision.models import DenseNet

    return Made(DenseNet(4, (2, 2), 8, num_classes=5), pictures(3, 32, 32), own_loss)


@model
def convnext(form: dict[str, Any]) -> Made:
    from timm.models.convnext import ConvNeXt

    return Made(ConvNeXt(depths=(1, 1, 2, 1), dims=(8, 16, 24, 32), num_classes=5), pictures(3, 64, 64), own_loss)


@model
def unet(form: dict[str, Any]) -> Made:
    from diffusers import UNet2DConditionModel

    net = UNet2DConditionModel(
        sample_size=8, block_out_channels=(8, 16), norm_num_groups=4, layers_per_block=1, cross_attention_dim=16,
        attention_head_dim=4, down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip
    batch = {
        "x": images(4, 8, 8),
        "t": torch.tensor([3, 20, 50, 90]),
        "states": images(5, 16),
        "y": images(4, 8, 8).flip(0),
    }

    def loss(some: nn.Module, batch: Batch) -> torch.Tensor:
        return F.mse_loss(
            some(batch["x"], batch["t"], encoder_hidden_states=batch["states"]).sample.float(), batch["y"].float()
        )

    return Made(net, batch, loss)
