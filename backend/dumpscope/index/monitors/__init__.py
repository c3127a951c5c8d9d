"""Monitored runs that a server examines: their catalogue."""
