"""What the pages of a comparison ask: lists, search, strips, trends, data flow."""
