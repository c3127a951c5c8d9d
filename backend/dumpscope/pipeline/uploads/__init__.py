"""Uploads that arrive in pieces."""
