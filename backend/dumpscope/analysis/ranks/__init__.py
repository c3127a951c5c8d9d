"""Origins and communication over ranks."""
