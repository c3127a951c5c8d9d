"""Examines monitored runs: one for what stands out in it, two for where they part."""
