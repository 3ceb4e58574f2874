"""The settings of the linkage audit of anonymized records."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.linkage.audit import DEFAULT_N_RECORDS, Method, check_audit_settings
from privacy_assets.linkage.fellegi_sunter import require_splink
from privacy_assets.setting_checks import described, setting

LINKAGE_AUDIT = "linkage_audit"
"""The stage of the linkage audit."""


@described
@dataclass(frozen=True, kw_only=True)
class LinkageAuditSettings:
    """How anonymized records are linked to the source, to audit what a linkage method finds and can know.

    The figures only inform: no policy limits them, and the release does not depend on them.
    """

    method: Method = setting(
        "distance",
        "Linkage to the nearest originals, or by Fellegi and Sunter (extra linkage; at most 25 million pairs).",
        "fellegi_sunter",
    )
    known: Sequence[str] | None = setting(
        None,
        "Released columns that the attacker knows about everybody; by default all quasi-identifiers.",
        ["age", "plan"],
    )
    n_records: int | None = setting(
        DEFAULT_N_RECORDS, "Released records to link, drawn at random if there are more; null for all.", 500, at_least=1
    )
    softness: float | None = setting(
        None,
        "For distance: claims decrease with exp(-distance / softness); by default only the nearest originals are "
        "claimed.",
        0.5,
        above=0,
    )
    seed: int = setting(0, "Seed of the drawn records and of the method.", 1, at_least=0)

    def __post_init__(self) -> None:
        if isinstance(self.known, Sequence) and not isinstance(self.known, str):
            object.__setattr__(self, "known", tuple(self.known))
        check_audit_settings(**self.arguments)

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The arguments of :func:`~privacy_assets.linkage.audit.audit_linkage`."""
        return dict(vars(self))

    def check(self, contract: TableContract, output: str) -> None:
        """Refuse settings that fit no table of the release, whose classes are written as ``output``."""
        unknown = [name for name in self.known or () if name not in contract.released_columns]
        if unknown:
            raise InvalidSettingError(
                f"The linkage audit assumes that an attacker knows {unknown}, which the release does not have. Its "
                f"columns are {list(contract.released_columns)}."
            )
        if output == "centroid":
            raise InvalidSettingError(
                "A linkage audit is configured, but class centers are published, which do not bound any single value. "
                "Expected output='labels', or no linkage audit."
            )
        if self.method == "fellegi_sunter":
            require_splink()
