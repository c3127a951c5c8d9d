"""Reads dumps in msprobe's format: dump.json, stack.json, construct.json, run.json, and the journal of a killed run."""
