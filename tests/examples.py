"""How many examples hypothesis tries: a quarter of them by default, all where the environment asks for it.

PRIVACY_ASSETS_ALL_EXAMPLES=1 pytest
"""

import os

ALL = os.environ.get("PRIVACY_ASSETS_ALL_EXAMPLES") == "1"
FEWEST = 10


def examples(number: int) -> int:
    """The number of examples of a test that has so many in full."""
    return number if ALL else max(min(number, FEWEST), number // 4)
