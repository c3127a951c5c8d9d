"""`python -m dumpscope`, and the `dumpscope` command."""

from __future__ import annotations

import gc
import signal


def main() -> None:
    """Run the command line. Ctrl-C while its modules are imported ends the process at once: Python may lose a KeyboardInterrupt
    that is raised there (see `cli.ending`)."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from dumpscope.cli import main as run  # noqa: PLC0415

    try:
        run()
    finally:
        gc.freeze()  # at its end Python would look for garbage among all objects: a tenth of a small comparison


if __name__ == "__main__":
    main()
