"""A monitored training: statistics of every step (docs/monitor.md)."""
