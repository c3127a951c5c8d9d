"""Routes about dumps."""
