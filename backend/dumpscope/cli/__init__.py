"""The command line. Start-up matters: every command imports what it needs when it runs, never here."""

from __future__ import annotations

from dumpscope.cli import proof
from dumpscope.cli.app import main

__all__ = ["main", "proof"]
