"""The cards of a release, which catalogs read: files next to the manifest that are made from it alone."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from privacy_assets.release.formats.croissant import croissant_of
from privacy_assets.release.formats.dcat import dcat_of
from privacy_assets.release.manifest import CROISSANT_FILE, DCAT_FILE

CARDS: Final[Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]]] = {
    CROISSANT_FILE: croissant_of,
    DCAT_FILE: dcat_of,
}
"""What makes each card from a manifest. It reads only the files of the data, which exist before the cards."""
