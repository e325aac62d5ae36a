"""`python -m backprobe`."""

import sys

from backprobe.cli import main

if __name__ == "__main__":
    sys.exit(main())
