"""Runs that hold other amounts of the same data: other batches or lengths, and caches that are longer on one side."""
