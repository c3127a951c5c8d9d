"""Result files: saved, opened, exported, reported."""
