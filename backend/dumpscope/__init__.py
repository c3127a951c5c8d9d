"""dumpscope: find the operator that made two PyTorch runs diverge, from their dumps."""

__version__ = "0.1.0"
