"""One batch or one sequence that a run computed in several passes of its model: found, and put together like shards."""
