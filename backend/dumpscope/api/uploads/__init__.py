"""Reads bodies of uploads while they stream."""
