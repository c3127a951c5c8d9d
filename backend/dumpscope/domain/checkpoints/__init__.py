"""Checkpoints: their tensors, and how two of them differ."""
