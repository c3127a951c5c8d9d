"""The calls a few steps around one call, and the way of the difference through them."""
