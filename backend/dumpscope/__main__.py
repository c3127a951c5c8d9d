"""`python -m dumpscope`."""

from dumpscope.cli import main

if __name__ == "__main__":
    main()
