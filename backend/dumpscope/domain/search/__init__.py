"""What a search of calls asks for: terms, and expressions that are matched in linear time."""
