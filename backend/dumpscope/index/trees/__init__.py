"""Module trees of dumps and comparisons, and which rows their lists show."""
