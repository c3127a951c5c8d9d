"""Compares two checkpoints: pairs their tensors, and measures every pair piece by piece."""
