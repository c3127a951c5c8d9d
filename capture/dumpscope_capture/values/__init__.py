"""Values into records: statistics, hashes, snapshots, and deduplication of repeated tensors."""
