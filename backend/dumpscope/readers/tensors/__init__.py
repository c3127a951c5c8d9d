"""Reads tensor files without torch: `.pt` in both forms, `.npy`, and many small files at once."""
