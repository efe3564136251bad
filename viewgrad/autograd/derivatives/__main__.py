"""`python -m viewgrad.autograd.derivatives`, the former name of `python -m viewgrad.operators`."""

import sys

from ...operators.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
