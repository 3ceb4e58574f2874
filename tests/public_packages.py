"""The packages with public names, and these names."""

import privacy_assets
from privacy_assets import linkage, reidentification, semantic_risk

PACKAGES = {
    "privacy_assets": privacy_assets,
    "privacy_assets.linkage": linkage,
    "privacy_assets.reidentification": reidentification,
    "privacy_assets.semantic_risk": semantic_risk,
}
PUBLIC = {name: getattr(package, name) for package in PACKAGES.values() for name in package.__all__}
PATHS = {name: f"{path}.{name}" for path, package in PACKAGES.items() for name in package.__all__}
