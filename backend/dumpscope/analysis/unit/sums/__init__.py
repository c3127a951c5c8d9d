"""Results that are sums: what their terms are, and what is made of those that cancel."""
