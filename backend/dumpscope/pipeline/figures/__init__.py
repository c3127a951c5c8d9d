"""Figures and single values of a stored comparison."""
