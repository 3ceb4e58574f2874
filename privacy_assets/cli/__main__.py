"""The command, as ``python -m privacy_assets.cli``."""

import sys

from privacy_assets.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
