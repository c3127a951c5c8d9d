"""Routes about comparisons."""
