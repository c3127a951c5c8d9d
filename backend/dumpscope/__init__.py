"""dumpscope: find the operator that made two PyTorch runs diverge, from their dumps."""

import sys
from importlib.util import find_spec
from pathlib import Path

__version__ = "0.1.0"

if find_spec("dumpscope_format") is None:  # installed in a folder whose .pth files Python does not read
    sys.path.append(str(Path(__file__).with_name("bundled")))
