"""Operators that are written differently on both sides: fused calls, aten operators, runs of calls."""
