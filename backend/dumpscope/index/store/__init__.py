"""Tables, the database with its one writer, and how rows are encoded."""
