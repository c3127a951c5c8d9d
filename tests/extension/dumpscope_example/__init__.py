"""A dump format, a metric and a causal rule for dumpscope, brought by another package."""
