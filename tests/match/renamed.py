"""Real dumps whose modules have other names, as a port to another framework gives them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Sequence
from pathlib import Path

PORTED = (
    (r"Module\.layers\.", "Module.decoder.layers."),
    (r"\.attn\.qkv\.Linear\.", ".self_attention.linear_qkv.ColumnParallelLinear."),
    (r"\.attn\.proj\.Linear\.", ".self_attention.linear_proj.RowParallelLinear."),
    (r"\.attn\.drop\.Dropout\.", ".self_attention.attention_dropout.Dropout."),
    (r"\.attn\.Attn\.", ".self_attention.SelfAttention."),
    (r"\.mlp\.fc1\.Linear\.", ".feed_forward.linear_fc1.ColumnParallelLinear."),
    (r"\.mlp\.fc2\.Linear\.", ".feed_forward.linear_fc2.RowParallelLinear."),
    (r"\.mlp\.Mlp\.", ".feed_forward.MLP."),
    (r"\.Block\.", ".TransformerLayer."),
    (r"\.ln1\.LayerNorm\.", ".input_layernorm.RMSNorm."),
    (r"\.ln2\.LayerNorm\.", ".pre_mlp_layernorm.RMSNorm."),
    (r"Module\.ln_f\.LayerNorm\.", "Module.decoder.final_layernorm.RMSNorm."),
    (r"Module\.tok\.Embedding\.", "Module.embedding.word_embeddings.VocabParallelEmbedding."),
    (r"Module\.pos\.Embedding\.", "Module.embedding.position_embeddings.Embedding."),
    (r"Module\.head\.Linear\.", "Module.output_layer.ColumnParallelLinear."),
)
"""No module keeps its path and its class."""


def ported(dump: Path, to: Path, changes: Sequence[tuple[str, str]] = PORTED) -> Path:
    """A copy of a dump with every name changed by these patterns."""
    shutil.copytree(dump, to)
    for file in to.rglob("*.json"):
        text = file.read_text(encoding="utf-8")
        for pattern, words in changes:
            text = re.sub(pattern, words, text)
        file.write_text(text, encoding="utf-8")
    return to
