"""What only a server does: job kinds, taking dumps into the index, caches."""
