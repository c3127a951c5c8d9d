"""Which ranks of two dumps are compared with each other: one by one, or joined by a plan."""
