# ruff: noqa: F403, F405
"""Compares two folders of ranks. Arguments: the two folders, and where the tables go."""

import sys

from ptdbg_ascend import *

compare_distributed(sys.argv[1], sys.argv[2], sys.argv[3], stack_mode=True)
