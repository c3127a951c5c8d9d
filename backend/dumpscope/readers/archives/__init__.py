"""Unpacks .zip and .tar archives without trusting them."""
