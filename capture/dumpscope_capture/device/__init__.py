"""The device and the environment of a run."""
