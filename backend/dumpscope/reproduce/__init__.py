"""From the records of a call to something that runs it alone: a script, or a line for the pre-check's workers. Pure."""
