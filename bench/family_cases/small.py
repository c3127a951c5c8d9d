"""Tiny random models of the families of transformers, made by shrinking the default configuration of each, and their inputs."""

from __future__ import annotations

import inspect
from typing import Any, Final

import torch
import transformers
from transformers import CONFIG_MAPPING
from transformers.models.auto import modeling_auto

SMALL: Final[dict[str, int]] = {
    **dict.fromkeys(("hidden_size", "d_model", "n_embd", "dim", "embed_dim", "embedding_size"), 32),
    **dict.fromkeys(("intermediate_size", "ffn_dim", "d_ff", "n_inner", "encoder_ffn_dim", "decoder_ffn_dim", "hidden_dim"), 64),
    **dict.fromkeys(("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers", "decoder_layers"), 2),
    **dict.fromkeys(("num_decoder_layers", "num_encoder_layers", "num_key_value_heads", "n_group", "num_experts_per_tok"), 2),
    **dict.fromkeys(("num_attention_heads", "n_head", "n_heads", "num_heads", "num_experts", "num_local_experts"), 4),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads", "n_routed_experts", "sliding_window"), 4),
    **dict.fromkeys(("head_dim", "d_kv", "qk_rope_head_dim", "qk_nope_head_dim", "v_head_dim", "patch_size", "state_size"), 8),
    **dict.fromkeys(("q_lora_rank", "kv_lora_rank", "num_mel_bins"), 16),
    **dict.fromkeys(("moe_intermediate_size", "shared_expert_intermediate_size", "image_size"), 32),
    **dict.fromkeys(("max_position_embeddings", "n_positions", "max_seq_len", "max_source_positions"), 64),
    "max_target_positions": 64, "vocab_size": 99, "topk_group": 1, "first_k_dense_replace": 1, "rotary_dim": 4,
    "type_vocab_size": 2, "window_size": 4, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
    "decoder_start_token_id": 1,
}  # fmt: skip
TYPES: Final = ("layer_types", "mlp_layer_types", "layers_block_type")
"""Lists with a word for each layer."""
HEADS: Final = ("CAUSAL_LM", "SEQ_TO_SEQ_CAUSAL_LM", "MASKED_LM", "IMAGE_CLASSIFICATION", "")
"""Which model of a family is taken: the first of these that it has, else the bare one."""
MOST: Final = 8_000_000
"""Parameters of a model that is tried."""


def families() -> list[str]:
    return sorted(CONFIG_MAPPING.keys())


def build(family: str, attention: str | None = None) -> Any:
    """A model of the family, always with the same weights. attention: the implementation that it uses; None for its own

    Raises what the library raises for a configuration that it does not take, LookupError for a family without a model.
    """
    with torch.device("meta"):
        config = shrink(family)
        kind = _class_of(family)
        if sum(one.numel() for one in kind(config).parameters()) > MOST:
            raise LookupError(f"{family} stays large")
    torch.manual_seed(0)
    config = shrink(family)
    if attention is not None:
        config._attn_implementation = attention
    return kind(config)


def shrink(family: str) -> Any:
    """The default configuration of a family with few and small layers."""
    kind = CONFIG_MAPPING[family]
    known = inspect.signature(kind.__init__).parameters
    default = kind()
    given = {name: size for name, size in SMALL.items() if name in known and _is_number(getattr(default, name, None))}
    try:
        config = kind(**given)
    except Exception:  # sizes that do not go together here
        config = default
    _shrink(config)
    return config


def _shrink(config: Any) -> None:
    for part in list(vars(config).values()):
        if hasattr(part, "model_type"):
            _shrink(part)
    for name, size in SMALL.items():
        if _is_number(vars(config).get(name)):
            setattr(config, name, size)
    if "kv_lora_rank" in vars(config) and "num_key_value_heads" in vars(config):
        config.num_key_value_heads = SMALL["num_attention_heads"]
    for name in TYPES:
        words = vars(config).get(name)
        if isinstance(words, list):
            setattr(config, name, [*dict.fromkeys(words), *words][:2])


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _class_of(family: str) -> Any:
    for head in HEADS:
        table = getattr(modeling_auto, f"MODEL_FOR_{head}_MAPPING_NAMES" if head else "MODEL_MAPPING_NAMES")
        names = table.get(family)
        if names:
            return getattr(transformers, names if isinstance(names, str) else names[0])
    raise LookupError(f"{family} has no model")


def inputs(model: Any) -> dict[str, Any]:
    """Two rows of a batch, one of them padded on the right, as the model takes them."""
    config = model.config
    drawn = torch.Generator().manual_seed(1)
    names = inspect.signature(model.forward).parameters
    found: dict[str, Any] = {}
    if "input_ids" in names:
        found["input_ids"] = torch.randint(3, 90, (2, 12), generator=drawn)
        if "attention_mask" in names:
            found["attention_mask"] = torch.ones(2, 12, dtype=torch.long)
            found["attention_mask"][1, 9:] = 0
    if "pixel_values" in names:
        side = getattr(getattr(config, "vision_config", config), "image_size", 32) or 32
        sides = (side, side) if isinstance(side, int) else tuple(side)
        found["pixel_values"] = torch.randn(2, getattr(config, "num_channels", 3) or 3, *sides, generator=drawn)
    if "input_values" in names:
        found["input_values"] = torch.randn(2, 4000, generator=drawn)
    if "input_features" in names and "input_ids" not in names:
        length = 2 * getattr(config, "max_source_positions", 64)
        found["input_features"] = torch.randn(2, getattr(config, "num_mel_bins", 80), length, generator=drawn)
    if "decoder_input_ids" in names:
        found["decoder_input_ids"] = torch.randint(3, 90, (2, 7), generator=drawn)
    if "use_cache" in names:
        found["use_cache"] = False
    if "labels" in names and "input_ids" in found and type(model).__name__.endswith("CausalLM"):
        found["labels"] = found["input_ids"].clone()
    return found


def loss_of(result: Any) -> torch.Tensor:
    """The model's own loss, or the mean square of all that it puts out."""
    if getattr(result, "loss", None) is not None:
        return result.loss  # type: ignore[no-any-return]
    parts = [one.float().pow(2).mean() for one in result.values() if torch.is_tensor(one) and one.is_floating_point()]
    return torch.stack(parts).sum()
