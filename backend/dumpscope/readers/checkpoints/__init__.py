"""Reads checkpoints without torch: which tensors they hold and where their bytes are. Nothing in a file is ever executed."""
