"""Figures of one tensor alone."""
