"""Comparisons in the database: the catalogue, their units and results, notes on them."""
