"""The evidence for the gate: stored tables and assessments, and Dagster's records of how they were made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from privacy_assets.disclosure.column_examination import ColumnExamination
from privacy_assets.disclosure.declared_unit import UnitDecision
from privacy_assets.release.metrics import MPUCC
from privacy_assets.release.row_links import LinkEvidence

SPLIT_STAGES = ("original", "control")
STAGES_ASSESSED = (*SPLIT_STAGES, "preprocessed")
"""Tables that an assessment is based on, in addition to the table to be released."""


@dataclass(frozen=True)
class TableEvidence:
    """The state of one stored artifact, and Dagster's record of how it was made.

    Parameters
    ----------
    digest : str or None
        Current fingerprint of a stored table, or digest of a stored result, keyed if the recorded one is; None if it
        cannot be read.
    recorded_digest, run_id : str or None
        Data version and run of the latest materialization; the run is None, too, if it was reported by hand, or the
        instance does not know the run.
    made_of : mapping of str to str
        Fingerprints of the tables it was made from, by stage, as recorded; keyed, but for the table to be released.
    content : str or None
        Fingerprint of the table that is to be released, or that the artifact contains; not keyed.
    """

    digest: str | None
    recorded_digest: str | None
    run_id: str | None
    made_of: Mapping[str, str] = field(default_factory=dict)
    content: str | None = None
    settings: Mapping[str, Any] | None = None

    @property
    def made_by_run(self) -> bool:
        """Whether a run made the latest materialization."""
        return self.run_id is not None


@dataclass(frozen=True)
class AssessmentEvidence(TableEvidence):
    """An assessment, with its figures."""

    metrics: Mapping[str, float | None] = field(default_factory=dict)


@dataclass(frozen=True)
class SigningEvidence:
    """The key that would sign a release: its identifier, or None and why it cannot be used, without any part of it."""

    key_id: str | None
    problem: str = ""


@dataclass(frozen=True)
class BudgetEvidence:
    """The finding on the privacy budget that records were charged to.

    It is recorded if the ledger is intact, and has the fit that the records come from and every fit known from
    elsewhere.
    """

    is_recorded: bool
    reason: str


@dataclass(frozen=True, kw_only=True)
class SplitEvidence:
    """What the private records have about the split of a table that was tested.

    Parameters
    ----------
    n_splits : int
        Splits of these people that were tested, with any synthesis; 0 if the test of this table is not recorded.
    n_tried_before : int
        Other splits that were tested with an answer before this one was, with any synthesis.
    n_others_with_leak : int
        Other splits on which records of the same synthesis leaked.
    published_together : tuple of str
        Fingerprints of the tables published of the same originals that were tested together with this one.
    untested : int
        Tables published of the same originals since.
    published_apart : sequence of str
        Releases of this name or of these people that were not tested together, such as of other splits or columns.
    """

    n_splits: int = 0
    n_tried_before: int = 0
    n_others_with_leak: int = 0
    published_together: tuple[str, ...] = ()
    untested: int = 0
    published_apart: Sequence[str] = ()

    @property
    def figures(self) -> dict[str, Any]:
        """What the manifest says."""
        apart = list(self.published_apart)
        return {
            "n_splits": self.n_splits,
            "n_published_together": len(self.published_together),
            "published_apart": apart,
        }


@dataclass(frozen=True)
class Evidence:
    """All evidence about a table that is to be released.

    Parameters
    ----------
    side, stage : str
        Side whose limits apply, and the stage whose table is to be released.
    columns : tuple of str
        Columns of the table that an assessment must have covered; parts of one column under its name.
    lineage, stands_on : mapping of str to tuple of str
        Stages that a table must have been made from, by its stage (empty for a table made elsewhere), and those that an
        assessment must be based on in addition to the table itself, by its name.
    keeps_contract : bool
        Whether the current contract admits the table unchanged; else ``problem`` can say why it was not measured.
    asked_for : mapping of str to mapping of str to JSON values
        Settings that an assessment must have been made with, by its name.
    measured : mapping of str to mapping of str to float or None
        Figures measured on this exact table, by the name of their assessment.
    must_succeed : tuple of str
        Assessments that must exist, regardless of limits. If they fail, releases contradict each other or the masks are
        described wrongly.
    remarks, advised : mapping of str to str
        Origin of a figure, by its metric: names of columns and counts. It is shown if the limit fails or the figure is
        yes or no. What to do about a failed limit, if the assessment has more specific advice than the policy.
    examined, must_be_examined
        Columns that are released unchanged, by the stage in which they were examined, and where they must be.
    acknowledged : mapping of str to str
        Reasons in the contract for releasing columns although they look identifying.
    links : LinkEvidence or None
        Released values that show which rows of exactly this table are of one person; None if this was not measured.
    may_link : mapping of str to str
        Reasons in the contract for releasing columns that do so.
    unit : UnitDecision or None
        Decision on whose the rows are, by the current contract on the recorded findings; None if it was not made.
    splits : SplitEvidence or None
        Other disclosure tests of the same people; None if disclosure is not assessed.
    undeclared : str or None
        What the declaration lacks; empty if it is complete, None if it was not read.
    has_person : bool
        Whether the contract has a person column, so that an mpUCC assessment must have counted people.
    views : mapping of str to tuple of str
        Of related tables, the columns of each view that an mpUCC assessment must have covered; empty for one table.
    broken_links : sequence of str or None
        Why related tables do not belong together as released ones must; None for one table.
    other_forms : sequence of str or None
        Releases of the same people in which their rows left in another form; None for one table.
    """

    side: str
    stage: str
    columns: tuple[str, ...]
    tables: Mapping[str, TableEvidence]
    assessments: Mapping[str, AssessmentEvidence]
    declared_precisions: Mapping[str, int | str] = field(default_factory=dict)
    lineage: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keeps_contract: bool = False
    stands_on: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: {MPUCC: STAGES_ASSESSED})
    asked_for: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    measured: Mapping[str, Mapping[str, float | None]] = field(default_factory=dict)
    must_succeed: tuple[str, ...] = ()
    signing: SigningEvidence | None = None
    problem: str = ""
    remarks: Mapping[str, str] = field(default_factory=dict)
    advised: Mapping[str, str] = field(default_factory=dict)
    examined: Mapping[str, Sequence[ColumnExamination]] = field(default_factory=dict)
    must_be_examined: tuple[str, ...] = ()
    acknowledged: Mapping[str, str] = field(default_factory=dict)
    links: LinkEvidence | None = None
    may_link: Mapping[str, str] = field(default_factory=dict)
    unit: UnitDecision | None = None
    undeclared: str | None = None
    has_person: bool = False
    parts: Mapping[str, Sequence[str]] = field(default_factory=dict)
    budget: BudgetEvidence | None = None
    splits: SplitEvidence | None = None
    views: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    broken_links: Sequence[str] | None = None
    other_forms: Sequence[str] | None = None
