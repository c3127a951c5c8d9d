"""The records of a step: calls in order, backward passes, gradients, checks."""
