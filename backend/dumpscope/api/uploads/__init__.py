"""Bodies of uploads while they stream."""
