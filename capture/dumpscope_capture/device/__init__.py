"""What the device and the environment of a run are."""
