"""One module per command. Each imports what it needs when it runs."""
