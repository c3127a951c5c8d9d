"""Models of what a training leaves beside dumps: checkpoints, monitored runs."""
