# ruff: noqa: F403, F405
"""Prints what a dump says of calls that begin alike. Arguments: the .pkl file, and the beginning."""

import sys

from ptdbg_ascend import *

parse(sys.argv[1], sys.argv[2])
