"""The search language of call lists: its terms, and the regular expressions in it."""
