"""The register of all releases, rewritten after each release and refusal."""

import logging
from pathlib import Path
from typing import Any

from privacy_assets.columns.safe_names import class_name
from privacy_assets.errors import PrivacyAssetsError
from privacy_assets.orchestration.evidence.refusals import every_refusal
from privacy_assets.orchestration.private.directories import mark_releases
from privacy_assets.orchestration.private.guard import log_openly, speaks
from privacy_assets.release.register import write_register


def update_register(context: Any, after: str) -> None:
    """Write the register again ``after`` a release or a refusal; if this fails, warn, and keep the decision."""
    root = Path(context.resources.release_store.base_path)
    reason = ""
    try:
        mark_releases(root)
        write_register(root, refusals=list(every_refusal(context.resources.private_tables)))
    except Exception as error:  # noqa: BLE001 - a problem with the register does not change the decision
        is_ours = isinstance(error, PrivacyAssetsError) and speaks(error)
        reason = f"{class_name(type(error))}: {error}" if is_ours else class_name(type(error))
    if reason:
        log_openly(
            context,
            f"The register of releases was not written ({reason}). The {after} itself is complete and recorded. The "
            "next release or refusal writes the whole register again, as does `privacy_assets register` on the "
            "directory of the releases.",
            logging.WARNING,
        )
