"""What a call is: its name, its place in the source, who observes it, whether it is recorded."""
