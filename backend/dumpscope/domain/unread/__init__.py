"""Content that a call holds but nobody reads: undefined buffers and uninitialised memory."""
