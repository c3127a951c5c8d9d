"""Operators that the two sides write in different ways: fused calls, aten operators, runs of calls."""
