"""The result of :func:`~privacy_assets.semantic_risk.assess.assess_semantic_risk`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import Drawn
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.artifact import Artifact, EqualByContent
from privacy_assets.storage.result_columns import texts_to_tuples, tuples_to_text

KIND = "SemanticAssessment"
LACKED_COLUMNS = "records_at_risk_by_lacked_column"
"""Figure of an assessment: a count for each column."""
_TUPLES = (("advice", "columns"), ("chains", "attributes"), ("neighborhood", "attributes"))


class SemanticProgress(NamedTuple):
    """Progress of an assessment: records (during suppression the remaining ones), and columns that are forgotten.

    ``n_rows_done`` of ``n_rows`` distinct rows have their semantic risk; 0 in other stages.
    """

    stage: str
    n_records: int
    columns: tuple[str, ...] = ()
    n_rows_done: int = 0
    n_rows: int = 0

    @property
    def bar(self) -> tuple[str, int, int]:
        """Stage, the amount done, and the total, for a progress bar."""
        stage = f"{self.stage} without {', '.join(self.columns)}" if self.columns else self.stage
        return stage, self.n_rows_done, self.n_rows


@dataclass(frozen=True, eq=False, repr=False)
class SemanticAssessment(EqualByContent, ShowsFigures, ShowsPictures):
    """Result of :func:`~privacy_assets.semantic_risk.assess.assess_semantic_risk`, see ``docs/semantic-risk.md``.

    Attributes are named by column and number, without values of the table. Only ``records`` (labels of the index) and
    ``attributes`` (the meaning of each attribute) are private.

    Attributes
    ----------
    scores : dict
        Figures of the whole table.
    records : DataFrame
        One row per record, in the order of the table: ``record`` (label of the index), ``row`` (number of the distinct
        row), ``class_size``, ``extent_size``, ``smallest_difference``, ``positive_facts_risk``,
        ``basic_semantic_risk``, ``classical_risk``, ``semantic_risk`` (on request, NaN where its search
        ended at its bounds), ``lacked_attribute`` (name of the attribute whose absence leaves ``smallest_difference``
        records, empty if the record's own attributes leave equally few), ``neighbor_size`` (records that have it in
        addition: the lower neighbor that shows the risk), ``confidence_bound``, ``region``
        (with ``three_way``) and ``is_kept`` (with ``risk_limit``). Private.
    rounds : DataFrame
        Suppression: ``records``, ``maximum_semantic_risk`` and ``records_removed`` by round; no rows without a
        ``risk_limit``.
    advice : DataFrame
        Effect of forgetting columns, see `advise`; no rows without
        ``advice``.
    chains : DataFrame
        Maximal chains with identification risk, see `find_risk_chains`; no
        rows without a ``risk_limit``.
    neighborhood : DataFrame
        The riskiest concept of a record and its neighbors, see
        :func:`~privacy_assets.semantic_risk.concept_lattice.describe_neighborhood`.
    attributes : DataFrame
        ``attribute``, ``column`` and ``label`` of each attribute. Private.
    settings : dict
        All settings that affect the result, as JSON values without values of the table.
    notes : tuple of str
        Notes for readers of the figures.
    """

    pictures = ("risks", "concept")
    main_figures = (
        "maximum_semantic_risk",
        "medium_semantic_risk",
        "max_weighted_semantic_risk",
        "records",
        "records_at_risk",
        "records_not_kept",
    )

    scores: dict[str, Any]
    records: pd.DataFrame
    rounds: pd.DataFrame
    advice: pd.DataFrame
    chains: pd.DataFrame
    neighborhood: pd.DataFrame
    attributes: pd.DataFrame
    settings: dict[str, Any]
    notes: tuple[str, ...]

    def _draw(self, what: str) -> Drawn:
        from privacy_assets.semantic_risk.pictures import draw_risk_distribution, draw_riskiest_concept

        if what == "concept":
            return draw_riskiest_concept(self.neighborhood)
        return draw_risk_distribution(self.records, self.settings)

    @property
    def kept(self) -> pd.Index[Any] | None:
        """Labels of the records of the greatest acceptable subset; None without a ``risk_limit``.

        Raises
        ------
        InvalidTableError
            If labels repeat, as after `pandas.concat`: they do not identify which of their records are withheld.
            `kept_mask` does.
        """
        if "is_kept" not in self.records:
            return None
        n_repeated = int(self.records["record"].duplicated(keep=False).sum())
        if n_repeated:
            raise InvalidTableError(
                f"{n_repeated} of {len(self.records)} records share their index label with another one, so labels do "
                "not identify the records to keep. Select by position with table[found.kept_mask], or give the table "
                "a unique index (reset_index) before it is assessed."
            )
        kept: pd.Index[Any] = pd.Index(self.records["record"][self.records["is_kept"]])
        return kept

    @property
    def kept_mask(self) -> NDArray[np.bool_] | None:
        """Whether each record, in the order of the table, is in the greatest acceptable subset.

        Of shape (n_records,), dtype bool; None without a ``risk_limit``.
        """
        return self.records["is_kept"].to_numpy(dtype=bool) if "is_kept" in self.records else None

    def _frames(self) -> dict[str, pd.DataFrame]:
        names = ("records", "rounds", "advice", "chains", "neighborhood", "attributes")
        return {name: getattr(self, name) for name in names}

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header; tuples become JSON text."""
        frames = self._frames()
        for name, column in _TUPLES:
            frames[name] = frames[name].assign(**{column: tuples_to_text(frames[name][column])})
        return Artifact(KIND, {"scores": self.scores, "settings": self.settings, "notes": list(self.notes)}, frames)

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> SemanticAssessment:
        """Read the output of :meth:`to_artifact`."""
        header, frames = artifact.header, dict(artifact.frames)
        for name, column in _TUPLES:
            frames[name] = frames[name].assign(**{column: texts_to_tuples(frames[name][column])})
        return cls(
            scores=dict(header["scores"]), settings=dict(header["settings"]), notes=tuple(header["notes"]), **frames
        )
