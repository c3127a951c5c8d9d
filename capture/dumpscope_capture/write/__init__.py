"""Writes dumps: records, tensor files, the lock of a folder."""
