"""Runs one call of a dump alone: used by the pre-check, and copied into generated scripts.

A call is a JSON document (dumpscope_format.replay). The modules import only torch, numpy and each other, so that their
texts can be joined to a script that does not need this package. So each function name must be unique among them.
"""
