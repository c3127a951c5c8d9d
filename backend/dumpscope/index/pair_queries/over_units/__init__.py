"""Calls of a comparison over its steps and ranks."""
