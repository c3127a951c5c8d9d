"""What the pages of one dump ask: nodes, values over steps, pre-checks."""
