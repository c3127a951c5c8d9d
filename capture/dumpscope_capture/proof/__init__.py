"""Proof that an operator is wrong: saved calls, calls run differently, failures of backward."""
