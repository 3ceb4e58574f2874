"""The settings of the semantic risk of a release."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.scales import Binary, ConceptualScale, Generalized, Ordinal, Windows, read_scale
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.release.policy import Policy
from privacy_assets.semantic_risk.formal_context import released_scales
from privacy_assets.semantic_risk.settings import SemanticSettings, smallest_acceptable
from privacy_assets.setting_checks import described, setting


@described
@dataclass(frozen=True, kw_only=True)
class SemanticRiskSettings(SemanticSettings):
    """How to assess what the concepts of the anonymized records reveal (`assess_semantic_risk`).

    Records are counted: with a limit, or `withhold`, nobody may have several. By default generalized quasi-identifiers
    have the attributes of all labels that contain theirs, and nodes of a hierarchy those of all nodes above them.
    """

    scales: Mapping[str, Any] | None = setting(
        None,
        "How columns are read, in addition to the scales of the contract: nominal, ordinal, binary, generalized, or a "
        "mapping with ordinal, interval or hierarchy.",
        {"income": {"ordinal": [1000, 2000]}},
    )
    withhold: bool = setting(False, "Whether to leave out the records that no acceptable subset can contain.", True)
    of_source: bool = setting(False, "Whether to assess also the source, for comparison.", True)

    def check(self) -> None:
        """Refuse settings out of their range, and scales that do not exist."""
        super().check()
        for scale in (self.scales or {}).values():
            read_scale(scale)

    def limit(self, policy: Policy) -> float | None:
        """Return the largest accepted risk of a record: for a limit "below", the next smaller 1 / n."""
        asked = policy.limit_on("maximum_semantic_risk")
        if self.risk_limit is not None or asked is None:
            return self.risk_limit
        if asked.holds_for(asked.value):
            return asked.value
        n_records = smallest_acceptable(asked.value)
        return 1 / n_records if asked.holds_for(1 / n_records) else 1 / (n_records + 1)

    def resolve(self, policy: Policy) -> "SemanticRiskSettings":
        """Return the settings with the limit of the policy, unless they have their own."""
        return replace(self, risk_limit=self.limit(policy))

    def check_columns(self, contract: TableContract, labelled: Collection[str] = ()) -> None:
        """Refuse settings that do not fit; ``labelled`` are the columns that are released as nodes of a hierarchy."""
        self.check()
        for column, scale in self.declared_scales(contract).items():
            if column not in contract.released_columns:
                raise InvalidSettingError(
                    f"There is a scale for {column!r}, which is not released. The released columns are "
                    f"{list(contract.released_columns)}."
                )
            self._check_scale(column, read_scale(scale), column in labelled)
        if self.withhold and self.risk_limit is None:
            raise InvalidSettingError(
                "Records at risk are to be withheld, but neither risk_limit nor a limit on maximum_semantic_risk "
                "defines that risk. Set one of them."
            )

    def _check_scale(self, column: str, scale: ConceptualScale, is_labelled: bool) -> None:
        """Refuse scales that fit no table of the release."""
        if isinstance(scale, Generalized) and self.of_source:
            raise InvalidSettingError(
                f"Column {column!r} has a generalized scale, but of_source is set and nothing in the source is "
                "generalized. Leave out the scale, which is the default for the released table, or of_source."
            )
        if is_labelled and isinstance(scale, Ordinal | Windows | Binary | Generalized):
            raise InvalidSettingError(
                f"Column {column!r} has a scale of the kind {scale.kind}, but is released as nodes of its "
                "hierarchy, which are text. Expected a nominal or hierarchy scale, or leave it out: by default "
                "nodes have the attributes of all nodes above them."
            )

    def declared_scales(self, contract: TableContract) -> dict[str, Any]:
        """Return the scales of the contract and those given here."""
        return contract.metadata("scale") | dict(self.scales or {})

    def scales_for(
        self, anonymization: Anonymization, contract: TableContract, hierarchies: Mapping[str, Hierarchy] | None = None
    ) -> dict[str, Any]:
        """Return the scale of each column: as declared, or for quasi-identifiers one that fits their labels."""
        quasi_identifiers = anonymization.settings["quasi_identifiers"]
        by_label = released_scales(anonymization.table, quasi_identifiers, anonymization.model, hierarchies)
        return by_label | self.declared_scales(contract)
