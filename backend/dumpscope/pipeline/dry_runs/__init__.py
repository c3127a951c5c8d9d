"""Tries a plan or a policy on stored dumps and comparisons; nothing is stored."""
