"""Healthy pairs: two runs that compute the same name no operator and end with status 0."""
