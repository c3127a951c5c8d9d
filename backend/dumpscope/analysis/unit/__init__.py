"""One unit (a rank of a step, compared) as the causal rules see it."""
