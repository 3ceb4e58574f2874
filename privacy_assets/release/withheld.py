"""Figures that were computed on people's records, left out of releases of differentially private records."""

from collections.abc import Mapping
from typing import Any

from privacy_assets.release.metrics import METRICS, PRIVACY_BUDGET, SIDES

KEY = "figures_withheld"
"""Key of the manifest: true if the figures are withheld, else it is absent."""
WITHHELD = "withheld"
IN_WORDS = (
    "The figures that were computed on the people's records are withheld, and so are their pictures. The decisions on "
    "limits and conditions, and the number of refusals, depend on these figures and have no guarantee."
)


def are_withheld(manifest: Mapping[str, Any]) -> bool:
    """Return whether a release withholds its figures."""
    return manifest.get(KEY) is True


def is_withheld(metric: str) -> bool:
    """Return whether the figure of a limit is withheld if figures are: all except those of the guarantee."""
    return METRICS[metric].assessment != PRIVACY_BUDGET


def withheld_problems(manifest: Mapping[str, Any]) -> list[str]:
    """Check that a release that withholds its figures has none of them, and has a guarantee."""
    if not are_withheld(manifest):
        return []
    problems = []
    if manifest["stage"] != SIDES[PRIVACY_BUDGET] or "epsilon" not in manifest["figures"].get(PRIVACY_BUDGET, {}):
        problems.append("figures are withheld, but the records have no guarantee of differential privacy")
    withheld = [each for each in manifest["verdicts"] if each["metric"] is not None and is_withheld(each["metric"])]
    if any(each["value"] is not None for each in withheld) or set(manifest["figures"]) - {PRIVACY_BUDGET}:
        problems.append("figures are recorded although the manifest declares them withheld")
    if manifest["waivers"]:
        problems.append("a limit is waived, but its figure is withheld")
    return problems
