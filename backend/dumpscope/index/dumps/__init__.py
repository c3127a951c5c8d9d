"""Dumps in the database: the catalogue, their ranks, nodes and records."""
