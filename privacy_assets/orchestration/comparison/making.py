"""One candidate, made and assessed with the functions and the limits of its release."""

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import pandas as pd

from privacy_assets.anonymization.anonymize import anonymize_with
from privacy_assets.anonymization.anonymized_table import (
    groups_of_linked_rows,
    linking_columns,
    measure_anonymity,
    models_that_fail,
)
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.records_of_people import count_records_of_people, require_one_record_each
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.contract.rule_violations import RULES
from privacy_assets.disclosure.rare_values import RARE_VALUES
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.orchestration.settings.monitoring import NO_MONITORING
from privacy_assets.orchestration.settings.options import Candidate, OptionsSettings
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Split
from privacy_assets.pipeline.measure import evidence_of, measure, released_columns
from privacy_assets.pipeline.settings.utility import SHARE_THAT_JUDGES, UtilitySettings
from privacy_assets.reidentification.assess import assess_reidentification
from privacy_assets.reidentification.membership import assess_membership
from privacy_assets.release.evidence import Evidence
from privacy_assets.release.gate import Verdict, limit_verdict, settings_verdict
from privacy_assets.release.metrics import (
    ANONYMITY,
    DISCLOSURE,
    LEAKAGE_DETECTED,
    MPUCC,
    REIDENTIFICATION,
    SEMANTIC,
    STATISTICS,
    UTILITY,
    figures_of,
    shown_figure,
)
from privacy_assets.release.policy import OF_STRANGERS, Limit
from privacy_assets.semantic_risk.assess import assess_semantic_risk_with
from privacy_assets.synthesis.generalized import number_distinct_records
from privacy_assets.synthesis.split import split_records
from privacy_assets.synthesis.synthesize import make_synthetic_records
from privacy_assets.utility.assess import Judge
from privacy_assets.utility.result import UtilityAssessment

SMALL_CURVE = 100
"""Records of the re-identification curve, which is not limited."""
RISKS = {"synthetic": "privacy_risk_score", "anonymized": "max_reidentification_probability"}
"""The figure that represents the risk of a side, in addition to the limited figures."""


class OutOfTime(Exception):  # noqa: N818 - it ends a candidate and is not an error
    """Ends a candidate that would be too late."""


@dataclass(frozen=True)
class Measured:
    """The findings about a candidate that was made once.

    ``figures`` are the limited figures of its side, those of people never seen that decide with them, the figure of its
    risk, and for synthetic records whether leakage was detected; ``failed`` has the reasons of the policy's blocking
    conditions that fail.
    """

    figures: dict[str, float | None]
    worth: UtilityAssessment
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Bench:
    """The people of a table, divided by the comparison's own seeds, and the judges of the candidates' records.

    ``release`` has the settings that candidates share, and ``table`` is the admitted table, with the person column if
    there is one; after the ``deadline``, a time of `time.monotonic`, nothing is begun.
    """

    release: ReleaseSettings
    table: pd.DataFrame
    options: OptionsSettings
    deadline: float

    def settings_of(self, candidate: Candidate) -> ReleaseSettings:
        """Return the settings of the release with a candidate; refuse settings that no release can have."""
        release = self.release
        labels = release.contract.columns_with_role("quasi_identifier") if candidate.generalize_synthetic else ()
        of_records = candidate.anonymized is not None
        return replace(
            release,
            source=_no_source,
            split=Split(self._share, self.options.seeds.split),
            synthetic=candidate.synthetic and candidate.synthetic.resolve(release.policy),
            generalize_synthetic=candidate.generalize_synthetic,
            anonymized=candidate.anonymized,
            assessment=(release.asked_assessment or release.assessment).resolve(release.contract, labels),
            reidentification=None,
            semantic_risk=release.semantic_risk if of_records else None,
            linkage_audit=None,
            utility=UtilitySettings(group=release.utility_settings.group),
            monitoring=NO_MONITORING,
            partitions_def=None,
            options=None,
        )

    def measure(self, candidate: Candidate, repeat: int) -> Measured:
        """Make a candidate once, and measure it; raise the error that prevents this, or `OutOfTime`."""
        settings = self.settings_of(candidate)
        return self._anonymized(settings) if candidate.anonymized is not None else self._synthetic(settings, repeat)

    @cached_property
    def _sides(self) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Originals and control of this comparison."""
        seed, person = self.options.seeds.split, self.release.contract.person
        return split_records(self.table, train_fraction=self._share, seed=seed, person=person)

    @property
    def _share(self) -> float:
        """Share of the people that synthesizers may see, which was chosen before."""
        return float(getattr(self.release.split, "train_fraction", 0.8))

    @property
    def _group(self) -> str | None:
        return self.release.utility_settings.group

    @cached_property
    def _judge_of_synthetic(self) -> Judge:
        original, control = (self._released(side) for side in self._sides)
        return Judge(original, control, group=self._group, seed=self.options.seeds.judge)

    def _judging(self, table: pd.DataFrame) -> pd.DataFrame:
        """Return the people who judge anonymized records of a table."""
        person, seed = self.release.contract.person, self.options.seeds.judge
        return self._released(
            split_records(table, train_fraction=1 - SHARE_THAT_JUDGES, seed=seed, person=person).control
        )

    @cached_property
    def _judge_of_all(self) -> Judge:
        people = self._released(self.table)
        return Judge(people, self._judging(self.table), group=self._group, seed=self.options.seeds.judge)

    def _released(self, table: pd.DataFrame) -> pd.DataFrame:
        return released_columns(self.release, table)

    def _stop(self, *_: Any) -> None:
        if time.monotonic() >= self.deadline:
            raise OutOfTime

    def _synthetic(self, release: ReleaseSettings, repeat: int) -> Measured:
        contract, synthesis, seed = release.contract, release.synthetic, self.options.seeds.repeats[repeat]
        original, control = self._sides
        whose = None if contract.person is None else original[contract.person]
        made = make_synthetic_records(
            self._released(original),
            synthesis.method,  # type: ignore[union-attr]
            synthesis.n_records,  # type: ignore[union-attr]
            seed,
            dict(synthesis.settings) or None,  # type: ignore[union-attr]
            whose,
            self._stop,
            rules=contract.rules,
        ).table
        self._stop()
        synthetic = contract.admit_synthetic(made)
        released, generalized, hierarchies = synthetic, None, None
        if release.generalize_synthetic is not None:
            generalized, hierarchies = self._generalized(release, "synthetic", number_distinct_records(synthetic), seed)
            released = generalized.table
        assessed = [each for each in (MPUCC, DISCLOSURE) if release.assesses(each)]
        tables = (original, synthetic, control)
        found = measure(release, tables, generalized, {MPUCC, RARE_VALUES, RULES, *assessed}, self._stop)
        worth = self._judge_of_synthetic.assess(
            released, generalized, hierarchies=hierarchies, domain=synthetic, seed=seed % 2**31
        )
        evidence = evidence_of(release.policy, contract, "synthetic", release.synthetic_stage, found | {UTILITY: worth})
        of_settings = settings_verdict(MPUCC, release.policy, evidence)
        made_so = _decided(release, evidence, worth, [] if of_settings.passed else [of_settings.reason])
        leakage = getattr(found[MPUCC].control, LEAKAGE_DETECTED, None)
        if DISCLOSURE in found:
            leakage = evidence.assessments[DISCLOSURE].metrics[LEAKAGE_DETECTED]
        made_so.figures.setdefault(RISKS["synthetic"], evidence.assessments[MPUCC].metrics.get(RISKS["synthetic"]))
        made_so.figures.setdefault(LEAKAGE_DETECTED, None if leakage is None else float(leakage))
        return made_so

    def _anonymized(self, release: ReleaseSettings) -> Measured:
        contract, policy = release.contract, release.policy
        if release.anonymized_stage != "anonymized":
            raise InvalidSettingError(
                "The release withholds records by their semantic risk, which a comparison does not do, so its results "
                "would not be those of the release."
            )
        table, control = self._sides if release.is_of_originals else (self.table, None)
        origin, seed = release.source_of_anonymized, self.options.seeds.judge
        anonymization, hierarchies = self._generalized(release, origin, table, seed)
        losses = require_measured(anonymization, table, hierarchies)
        report, statistics = measure_anonymity(anonymization, contract, table, contract.person, losses)
        figures = figures_of(ANONYMITY, {ANONYMITY: report.to_header(), STATISTICS: statistics})
        failed = models_that_fail(anonymization, report)
        if failed:
            raise InvalidTableError(f"The classes do not meet the requirements: {'; '.join(failed)}.")
        found: dict[str, Any] = {}
        limited = {limit.assessment_on("anonymized") for limit in policy.limits_of("anonymized")}
        if REIDENTIFICATION in limited:
            found[REIDENTIFICATION] = assess_reidentification(
                table,
                anonymization,
                known=policy.known or None,
                max_known=1,
                curve_sample=SMALL_CURVE,
                links=linking_columns(anonymization, contract),
                groups=groups_of_linked_rows(anonymization, contract, table, policy.people_per_class),
                known_rows=policy.known_rows,
                hierarchies=hierarchies,
                progress=self._stop,
            )
            if policy.limit_on("membership_advantage_upper") is not None:
                of_people = assess_membership(anonymization, table, control, hierarchies=hierarchies).scores
                found[REIDENTIFICATION] = replace(
                    found[REIDENTIFICATION], scores={**found[REIDENTIFICATION].scores, **of_people}
                )
        if SEMANTIC in limited:
            if contract.person is not None:
                whose = table[contract.person].take(anonymization.members["row"].to_numpy())
                require_one_record_each(count_records_of_people(whose))
            scales, asked = release.semantic_scales_of(anonymization), release.semantic_risk_settings
            found[SEMANTIC] = assess_semantic_risk_with(
                anonymization.table, scales, replace(asked, advice=False), anonymization.model, progress=self._stop
            )
        self._stop()
        members = anonymization.members["row"].to_numpy()
        if len(members) == len(self.table):
            judge = self._judge_of_all
        else:
            # In comparison with exactly the records that would be released.
            people = self._released(table.iloc[members])
            judge = Judge(people, self._judging(table), group=self._group, seed=seed)
        worth = judge.assess(anonymization.table, anonymization, hierarchies=hierarchies, domain=table)
        found[UTILITY] = worth
        evidence = evidence_of(policy, contract, "anonymized", "anonymized", found, {ANONYMITY: figures})
        made_so = _decided(release, evidence, worth)
        made_so.figures.setdefault(RISKS["anonymized"], 1 / (figures["smallest_class"] or 1))
        return made_so

    def _generalized(
        self, release: ReleaseSettings, made_of: str, table: pd.DataFrame, seed: int
    ) -> tuple[Anonymization, Any]:
        generalization = release.generalization(made_of)
        settings = generalization.settings
        used = replace(settings, seed=seed) if generalization.draws_seed else settings
        return anonymize_with(table, used, generalization.hierarchies, progress=self._stop), generalization.hierarchies


def _no_source() -> pd.DataFrame:
    """Replace the source, because the bench already has the table."""
    raise InvalidTableError("A comparison already has its table; nothing is read again.")


def _decided(
    release: ReleaseSettings, evidence: Evidence, worth: UtilityAssessment, failed: list[str] | None = None
) -> Measured:
    """Apply the limits of the policy on the side."""
    decided = [(limit, limit_verdict(limit, evidence)) for limit in release.policy.limits_of(evidence.side)]
    figures: dict[str, float | None] = {limit.metric: verdict.value for limit, verdict in decided}
    known = evidence.assessments[MPUCC].metrics if MPUCC in evidence.assessments else {}
    pairs = (pair for limit, _ in decided if limit.beyond is not None for pair in OF_STRANGERS[limit.metric])
    figures |= {name: known.get(name) for pair in pairs for name in pair if name not in figures}
    return Measured(figures, worth, [*(failed or ()), *(_said(limit, v) for limit, v in decided if v.blocks)])


def _said(limit: Limit, verdict: Verdict) -> str:
    """Describe the failed limit, with rounded figures; only a waiver needs every digit."""
    if verdict.value is None:
        return verdict.reason
    found, bound = shown_figure(limit.metric, str(limit.direction), verdict.value, limit.value)
    return f"{limit.metric} is {found}; expected {bound}"


def blocking_limits(release: ReleaseSettings, side: str) -> tuple[Limit, ...]:
    """Return the limits on a side that refuse a release."""
    return tuple(limit for limit in release.policy.limits_of(side) if limit.blocks)
