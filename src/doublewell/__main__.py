"""Run the command line: python -m doublewell."""

import sys

from doublewell.cli import main

if __name__ == "__main__":
    sys.exit(main())
