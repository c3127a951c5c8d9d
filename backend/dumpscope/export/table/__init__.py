"""The result table of a unit: its columns, cells and text."""
