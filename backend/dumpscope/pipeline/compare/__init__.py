"""Compares two dumps: plan the ranks, match, measure, judge, conclude; in this process or on the server."""
