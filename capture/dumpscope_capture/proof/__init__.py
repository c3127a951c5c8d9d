"""Proof that an operator is to blame: saved calls, calls run differently, failures of backward."""
