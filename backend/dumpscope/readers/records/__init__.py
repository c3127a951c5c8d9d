"""Columns of records and module trees, built in the same way for every dump format."""
