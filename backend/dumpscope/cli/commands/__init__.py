"""One module a command. Each imports what it needs when it runs."""
