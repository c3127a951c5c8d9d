"""Values into records: statistics, hashes, snapshots, and what is kept of repeated tensors."""
