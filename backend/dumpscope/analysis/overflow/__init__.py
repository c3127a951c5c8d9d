"""Where NaN and infinity were born in one dump."""
