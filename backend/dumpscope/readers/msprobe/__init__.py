"""Reads dumps in msprobe's layout: dump.json, stack.json, construct.json, run.json, and the journal of a killed run."""
