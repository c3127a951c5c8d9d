"""Comparisons of checkpoints: their catalogue, and the list of their tensors."""
