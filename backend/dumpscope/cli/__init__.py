"""The command line. Start-up matters: only the command that runs is imported."""

from __future__ import annotations

from dumpscope.cli.app import main

__all__ = ["main"]
