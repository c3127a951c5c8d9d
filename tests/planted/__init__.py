"""Pairs of dumps of small training runs with a planted fault whose place is known: `python -m planted.pairs OUT`."""
