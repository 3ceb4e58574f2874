"""The versions of the algorithms that make stored results. Results of another version are stale at the gate.

Increase a version when the same table can get another result, so that evidence of earlier versions is made again.
"""

from collections.abc import Mapping
from typing import Any, Final

ALGORITHM: Final = "algorithm"
"""The setting that records the algorithm of a result."""
VERSIONS: Final[Mapping[str, int]] = {
    "mpucc_assessment": 5,
    "disclosure_assessment": 5,
    "reidentification_assessment": 1,
    "semantic_assessment": 1,
    "utility_assessment": 2,
    "linkage_audit": 1,
    "anonymization": 2,
}


def algorithm_of(result: str) -> str:
    """Return the algorithm of a kind of result, with its version."""
    return f"{result}/{VERSIONS[result]}"


def is_of_this_version(settings: Mapping[str, Any], result: str) -> bool:
    """Return whether a result records the version of its algorithm that this package has."""
    return settings.get(ALGORITHM) == algorithm_of(result)
