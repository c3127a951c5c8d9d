"""One call of a dump, run alone: what a generated script carries in itself, and what the pre-check runs on.

A call is a JSON document (dumpscope_format.replay). The modules import torch, numpy and each other only, so that their text can
be put one behind the other into a script that needs nothing of this package.
"""
