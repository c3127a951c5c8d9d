"""Names, schema and layout of a dump: the one thing that capture and server share (standard library only)."""
