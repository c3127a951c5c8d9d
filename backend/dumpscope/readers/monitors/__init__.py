"""Reads what monitors of a training wrote: our files, and the csv files of msprobe's monitor."""
