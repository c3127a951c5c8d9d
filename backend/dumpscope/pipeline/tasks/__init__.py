"""Runs tasks of a job on an executor, with temporary folders that are removed after a crash."""
