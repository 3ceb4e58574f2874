"""The stages that tables of the synthetic side are made of, and their settings in the manifest."""

from privacy_assets.orchestration.settings.privacy_budget import NOISY_MODEL
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Synthesis


def settings_of(release: ReleaseSettings) -> dict[str, str]:
    """Return the settings of a stage as named in the manifest."""
    generalized = {} if release.generalize_synthetic is None else {"generalized_synthetic": "generalized_synthetic"}
    return {"split": "original", "synthetic": "synthetic", **generalized}


def lineage_of(release: ReleaseSettings) -> dict[str, tuple[str, ...]]:
    """Return the stages that each table of the synthetic side must have been made from."""
    lineage: dict[str, tuple[str, ...]] = {}
    if release.generalize_synthetic is not None:
        lineage["generalized_synthetic"] = ("synthetic",)
    if isinstance(release.synthetic, Synthesis):
        lineage["synthetic"] = ("original",) if release.private is None else (NOISY_MODEL,)
        lineage |= {} if release.private is None else {NOISY_MODEL: ("original",)}
    if release.source is not None:
        lineage |= {"original": ("source",), "control": ("source",)}
    return lineage
