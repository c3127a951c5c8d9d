"""Figures about the calls of a run."""
