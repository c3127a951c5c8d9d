"""Finds which tensors of two checkpoints are the same one: by names first, by words, shapes and bytes where names differ."""
