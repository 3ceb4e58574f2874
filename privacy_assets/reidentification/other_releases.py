"""Other releases of the same people, which an attacker may have in addition to the assessed one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.column_names import positions, require_unique_text_names
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import ReleaseModel, Suppressed, columns_of
from privacy_assets.errors import ConflictError, InvalidSettingError, InvalidTableError, MaskError
from privacy_assets.reidentification.candidate_index import CandidateIndex, combine
from privacy_assets.reidentification.masked_columns import refuse_weighing
from privacy_assets.reidentification.record_keys import code_keys, match_keys, true_positions
from privacy_assets.storage.fingerprint import fingerprint


@dataclass(frozen=True, eq=False)
class OtherRelease:
    """Another release of the same people.

    Attributes
    ----------
    table : Anonymization or DataFrame
        The result of ``anonymize``, or any released table.
    key : str
        Column that links the records of both releases, such as a pseudonym.
    model : ReleaseModel, optional
        Masks of the columns of a plain table; its columns are those of the original.
    name : str
        Name used in messages.
    quasi_identifiers : sequence of str, optional
        Its columns that an attacker may know. Default: its quasi-identifiers, or for a plain table all columns that are
        not suppressed.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies that the model names.
    truth : str or array-like of int, optional
        Where each row comes from, if the key is of people and repeats: the name of a column that identifies the rows of
        table and original, or positions in the original. Default: what an Anonymization of the same original has.
    """

    table: Anonymization | pd.DataFrame
    key: str
    model: ReleaseModel | None = None
    name: str = "other"
    quasi_identifiers: Sequence[str] | None = None
    hierarchies: Mapping[str, Hierarchy] | None = None
    truth: str | ArrayLike | None = None

    def __post_init__(self) -> None:
        if isinstance(self.table, Anonymization) == (self.model is not None):
            raise InvalidSettingError(
                f"Release {self.name!r} is an Anonymization with a model, or a plain table without a model. Expected "
                "a model if and only if it is a plain table. Nothing was assessed."
            )
        if isinstance(self.table, pd.DataFrame):
            require_unique_text_names(self.table)
        if isinstance(self.model, ReleaseModel):
            refuse_weighing(self.model)
        check_quasi_identifiers(self.name, self.quasi_identifiers)

    def used_model(self) -> ReleaseModel:
        """Return the masks of the columns."""
        if isinstance(self.table, Anonymization):
            return self.table.model
        assert self.model is not None  # noqa: S101 - checked in __post_init__
        return self.model

    def known_columns(self) -> list[str]:
        """Return the columns that an attacker may know."""
        if self.quasi_identifiers is not None:
            return list(self.quasi_identifiers)
        if isinstance(self.table, Anonymization):
            return list(self.table.settings["quasi_identifiers"])
        masks = self.used_model().masks.items()
        return [name for name, mask in masks if not isinstance(mask, Suppressed) and name != self.key]

    def released(self) -> pd.DataFrame:
        """Return the table."""
        return self.table.table if isinstance(self.table, Anonymization) else self.table

    def columns_to_be_described(self) -> list[str]:
        """Return the columns whose masks must describe the table.

        For a plain table without its own quasi-identifiers, these are all columns: suppressed ones must be absent.
        """
        if self.quasi_identifiers is None and not isinstance(self.table, Anonymization):
            return [name for name in self.used_model().masks if name != self.key]
        return self.known_columns()

    def described(self) -> dict[str, Any]:
        """Return name, key and model as JSON values."""
        return {"name": self.name, "key": self.key, "model": self.used_model().to_json()}

    def intersect(self, index: CandidateIndex, original: pd.DataFrame, subject: str | None) -> CandidateIndex:
        """Restrict the candidates of a release to those of this one.

        Raises
        ------
        InvalidTableError
            If keys are missing or repeated, or this release lacks some keys.
        ConflictError
            If the original behind a key is not among the candidates here.
        """
        table = self.released()
        # Other records, such as those withheld here, do not affect the candidates of these records.
        table = table.iloc[match_keys(self.key, index.keys, "release", table, f"release {self.name!r}")]
        return combine([index, self._read(table, index.truth, index, original, subject)], self.key)

    def join(
        self, index: CandidateIndex, groups: NDArray[np.int64], original: pd.DataFrame, subject: str | None
    ) -> tuple[CandidateIndex, NDArray[np.int64]]:
        """Index the rows that a key of people ties to groups of rows of a release, and return the group of each.

        Rows whose key is missing, or not in one group there, are left out: they are nobody's, or the others' there.

        Raises
        ------
        InvalidTableError
            If a table lacks the key, the rows cannot be assigned to originals, or no key is in both.
        ConflictError
            If a key belongs to different people, or the original of a row is not among its candidates.
        """
        table, words = self.released(), f"release {self.name!r}"
        codes, own = code_keys(self.key, index.keys, "release", table, words)
        truth = self._origin(table, original)
        pairs = pd.DataFrame({"key": codes, "group": groups})[codes >= 0].drop_duplicates()
        group_of_key = pairs.drop_duplicates("key", keep=False).set_index("key")["group"]
        own_groups = group_of_key.reindex(own, fill_value=-1).to_numpy()
        rows = np.flatnonzero(own_groups >= 0)
        if not len(rows):
            raise InvalidTableError(
                f"No key {self.key!r} of {words} is in the assessed release. Expected a column that both releases have "
                "with the same values. Nothing was assessed."
            )
        other = self._read(table.iloc[rows], truth[rows], index, original, subject)
        here, there = (each.truth if each.people is None else each.people[each.truth] for each in (index, other))
        is_same = pd.MultiIndex.from_arrays([own[rows], there]).isin(pd.MultiIndex.from_arrays([codes, here]))
        n_differing = len(np.setdiff1d(own[rows], own[rows][is_same]))
        if n_differing:
            raise ConflictError(
                f"In {words}, {n_differing} keys {self.key!r} belong to other people than in the assessed release. "
                "Expected the same people under the same keys. Nothing was assessed; correct the keys."
            )
        return other, own_groups[rows]

    def _origin(self, table: pd.DataFrame, original: pd.DataFrame) -> NDArray[np.int64]:
        if self.truth is not None:
            return true_positions(self.truth, original, table)
        if isinstance(self.table, Anonymization) and int(self.table.stats["n_rows"]) == len(original):
            return self.table.members["row"].to_numpy()
        raise InvalidTableError(
            f"The key {self.key!r} shows which rows of release {self.name!r} are of one person, but not from which "
            "original each comes. Expected an Anonymization of the same original, or `truth`; a table that was "
            "published earlier has neither, and counts unless it is declared in `withdrawn`. Nothing was assessed."
        )

    def _read(
        self,
        table: pd.DataFrame,
        truth: NDArray[np.int64],
        index: CandidateIndex,
        original: pd.DataFrame,
        subject: str | None,
    ) -> CandidateIndex:
        try:
            return CandidateIndex(
                self.used_model(),
                original,
                table,
                truth,
                hierarchies=self.hierarchies,
                subject=subject,
                keys=[self.key],
                n_threads=index.n_threads,
            )
        except MaskError as error:
            problem = str(error)
        raise ConflictError(
            f"Release {self.name!r} contradicts the assessed release, or is described wrongly. {problem}"
        )


def check_quasi_identifiers(name: str, names: Sequence[str] | None) -> None:
    """Refuse invalid quasi-identifiers of another release: without any, the release would have no effect."""
    if names is not None and (isinstance(names, str) or not len(names) or len(set(names)) < len(names)):
        raise InvalidSettingError(
            f"The quasi_identifiers of the other release {name!r} must be a non-empty list of distinct column names, "
            "or None for those it was anonymized by. Nothing was assessed."
        )


def require_described_columns(
    name: str, table: pd.DataFrame, key: str, model: ReleaseModel, also: Collection[str] = ()
) -> None:
    """Refuse a table with columns other than those of ``key``, ``model`` and ``also``.

    Their names may be values of a file without a header, so the message counts them and does not name them.
    """
    described = {key, *model.masks, *also, *(column for mask in model.masks.values() for column in columns_of(mask))}
    unknown = [place for place, column in enumerate(table.columns) if column not in described]
    if unknown:
        raise InvalidTableError(
            f"{len(unknown)} of the {len(table.columns)} columns of the other release {name!r} are neither its key nor "
            f"in its model or the contract ({positions(unknown)}). Their names are withheld, because in a file without "
            "a header they are values. Add the header, describe each column in the model, or remove these columns. "
            "Nothing was stored."
        )


def is_part_of(published: OtherRelease, anonymization: Anonymization) -> bool:
    """Return whether an anonymization covers a published table: its records, cell by cell, and its masks.

    Records that the table lacks, such as withheld ones, are ignored.
    """
    table, whole = published.table, anonymization.table
    assert isinstance(table, pd.DataFrame)  # noqa: S101 - a published release has a model
    described_alike = (
        published.used_model() == anonymization.model
        and list(table.columns) == list(whole.columns)
        and set(published.known_columns()) <= set(anonymization.settings["quasi_identifiers"])
    )
    if not described_alike:
        return False
    try:
        rows = match_keys(published.key, table, "published table", whole, "anonymized table")
    except InvalidTableError:
        return False
    return fingerprint(whole.take(rows)) == fingerprint(table)


def join_original(
    original: pd.DataFrame, other: pd.DataFrame, key: str, name: str, *, is_of_people: bool = False
) -> pd.DataFrame:
    """Add columns of another release's original to the originals, record by record; columns of both are the originals'.

    Missing or repeated keys are refused, and so is a record that the other original lacks. If the key is of people, so
    that it may repeat, both must have the same rows in the same order.
    """
    added = [column for column in other.columns if column not in original.columns]
    if is_of_people:
        codes, its_codes = code_keys(key, original, "release", other, f"release {name!r}")
        if not np.array_equal(codes, its_codes):
            raise InvalidTableError(
                f"The key {key!r} is of people, and the sources of this release and of {name!r} do not have the same "
                "keys row by row, so their rows cannot be matched. Expected the same source for both, in the same "
                "order. Nothing was assessed."
            )
        rows = np.arange(len(original))
    else:
        rows = match_keys(key, original, "release", other, f"release {name!r}")
    joined = other[added].take(rows).set_axis(original.index)
    return pd.concat([original, joined], axis=1)
