"""Figures about one pair of tensors."""
