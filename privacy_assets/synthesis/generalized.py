"""Generalization of synthetic records before they are assessed, if they single out people.

Each *distinct* record counts as a person, so that copies of one record do not make a class. Originals and control are
assessed with the labels of the classes that the same cuts assign to them, because unmatched labels would look like no
risk. Repeated records are removed before generalization; afterwards, equal records are different people, which protects
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.cut_tree import NO_CLASS, apply_cuts
from privacy_assets.anonymization.quasi_identifiers import Scale, code_values
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.parts import Parts
from privacy_assets.errors import InvalidSettingError
from privacy_assets.mpucc.people import without_repeated_people
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess

DISTINCT_RECORD = "(distinct record)"
OUTSIDE_LABEL = "(in no class)"
"""Label of a value that no class contains; released tables never have this label."""


def number_distinct_records(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a column `DISTINCT_RECORD`, in which equal rows have the same number."""
    groups = table.groupby(list(table.columns), dropna=False, observed=True, sort=False)
    return table.assign(**{DISTINCT_RECORD: groups.ngroup().to_numpy()})


def preprocess_generalized(
    original: pd.DataFrame,
    synthetic: pd.DataFrame,
    control: pd.DataFrame,
    generalized: Anonymization,
    *,
    numeric_precision: int | Mapping[str, int] | None,
    datetime_precision: str | Mapping[str, str] | None,
    deduplicate: bool,
    person: str | None = None,
    parts: Parts | None = None,
    invented: Sequence[str] = (),
) -> PreprocessedTables:
    """Label originals and control like generalized synthetic records, and convert all three to codes.

    The tables have the released columns, as values. ``deduplicate`` is whether records with equal values count once;
    for the other settings see `preprocess`: precisions apply to the columns that were not generalized.
    """
    labels = labels_alone(generalized, list(synthetic.columns))
    if deduplicate:
        rows = generalized.members["row"].to_numpy()
        original, control = (
            table.drop_duplicates() if person is None else without_repeated_people(table, person)
            for table in (original, control)
        )
        labels = labels[~synthetic.duplicated().to_numpy()[rows]].reset_index(drop=True)
    prepared = preprocess(
        generalize_people(generalized, original, synthetic, person),
        labels,
        generalize_people(generalized, control, synthetic, person),
        numeric_precision=numeric_precision,
        datetime_precision=datetime_precision,
        deduplicate=False,
        person=person,
        parts=parts,
        invented=invented,
    )
    written = prepared.as_written and replace(prepared.as_written, deduplicate=deduplicate)
    return replace(prepared, deduplicate=deduplicate, as_written=written)


def generalize_people(
    anonymization: Anonymization, table: pd.DataFrame, anonymized: pd.DataFrame, person: str | None
) -> pd.DataFrame:
    """Label the rows of another table as `generalize_alike` does, and keep their people."""
    if person is None:
        return generalize_alike(anonymization, table, anonymized)
    labels = generalize_alike(anonymization, table.drop(columns=person), anonymized)
    return labels.assign(**{person: table[person].to_numpy()})


def generalize_alike(anonymization: Anonymization, table: pd.DataFrame, anonymized: pd.DataFrame) -> pd.DataFrame:
    """Label the rows of another table with the classes that the stored cuts assign to them.

    The anonymization is made by the method "mondrian" without hierarchies, not relaxed, with the output "labels",
    nothing suppressed; others cannot be applied to other rows. ``anonymized`` is the table that was anonymized, as
    values.

    A category or a missing value that the anonymized table lacks gets `OUTSIDE_LABEL`. The other columns of such a row
    get the labels of the class of a record that agrees on all of them, or else of the class of the row with the most
    frequent value in place of the unknown one, so that a person with a rare category does not appear to be protected on
    all other columns.
    """
    require_cuts_that_apply(anonymization.settings)
    assert anonymization.tree is not None  # noqa: S101 - the method "mondrian" always leaves its cuts
    table = table.reset_index(drop=True)
    quasi_identifiers = anonymization.settings["quasi_identifiers"]
    unknown = {name: _unknown_values(table[name], scale) for name, scale in _scales(anonymization).items()}
    filled = table.assign(
        **{name: _most_frequent_instead(table[name], anonymized[name], unknown[name]) for name in unknown}
    )
    classes = apply_cuts(anonymization.tree, filled)
    _use_classes_of_copies(classes, table, anonymized, unknown, anonymization)
    own = anonymization.members["class"].to_numpy()
    first_row = np.empty(len(anonymization.classes), np.int64)
    first_row[own[::-1]] = np.arange(len(own))[::-1]
    columns = {}
    for name in table.columns:
        if name in quasi_identifiers:
            labels = anonymization.table[name].astype(str).to_numpy(dtype=object)[first_row[classes]]
            columns[name] = pd.Series(np.where(unknown[name], OUTSIDE_LABEL, labels), dtype=str)
        else:
            columns[name] = table[name]
    return pd.DataFrame(columns)


def _scales(anonymization: Anonymization) -> dict[str, Scale]:
    assert anonymization.tree is not None  # noqa: S101 - checked by `generalize_alike`
    return {scale.name: scale for scale in anonymization.tree.scales}


def _unknown_values(column: pd.Series[Any], scale: Scale) -> NDArray[np.bool_]:
    """Return which cells have a category or a missing value that the anonymized table lacks."""
    return np.asarray(code_values(scale, column) < 0)


def _most_frequent_instead(
    column: pd.Series[Any], anonymized: pd.Series[Any], unknown: NDArray[np.bool_]
) -> pd.Series[Any]:
    if not unknown.any():
        return column
    counts = anonymized.value_counts(dropna=False, sort=False)
    value = counts.index[int(np.argmax(counts.to_numpy()))]
    filled = column.astype(object)
    filled[unknown] = value
    return filled


def _use_classes_of_copies(
    classes: NDArray[np.int64],
    table: pd.DataFrame,
    anonymized: pd.DataFrame,
    unknown: Mapping[str, NDArray[np.bool_]],
    anonymization: Anonymization,
) -> None:
    """Assign a row with unknown values to the class of an anonymized record that agrees on all its other columns."""
    class_of_row = np.empty(len(anonymized), np.int64)
    class_of_row[anonymization.members["row"].to_numpy()] = anonymization.members["class"].to_numpy()
    pattern = np.column_stack(list(unknown.values()))
    for lacking in np.unique(pattern[pattern.any(axis=1)], axis=0):
        rows = np.flatnonzero((pattern == lacking).all(axis=1))
        without = {name for name, is_unknown in zip(unknown, lacking, strict=True) if is_unknown}
        known = [name for name in table.columns if name not in without]
        if not known:
            continue
        both = pd.concat([anonymized[known], table.loc[rows, known]], ignore_index=True)
        numbers = both.groupby(known, dropna=False, observed=True, sort=False).ngroup().to_numpy()
        class_of_number = np.full(int(numbers.max()) + 1, NO_CLASS)
        class_of_number[numbers[: len(anonymized)]] = class_of_row
        found = class_of_number[numbers[len(anonymized) :]]
        classes[rows] = np.where(found == NO_CLASS, classes[rows], found)


def require_cuts_that_apply(settings: Mapping[str, Any]) -> None:
    """Refuse settings whose classes cannot be applied to the rows of another table."""
    found = {name: settings[name] for name in ("method", "relaxed", "output", "max_suppression")}
    expected = {"method": "mondrian", "relaxed": False, "output": "labels", "max_suppression": 0}
    if found != expected:
        raise InvalidSettingError(
            f"The anonymization has {found}, but its classes must also apply to other rows. Expected {expected}."
        )
    if settings.get("hierarchies"):
        raise InvalidSettingError(
            f"The anonymization cuts {sorted(settings['hierarchies'])} along hierarchies, but its classes must also "
            "apply to other rows, and their values may be under a released node without occurring in the table that "
            "was cut. Expected no hierarchies. Leave them out."
        )


def labels_alone(anonymization: Anonymization, columns: list[str]) -> pd.DataFrame:
    """Return the released table with one column of text per quasi-identifier, as `generalize_alike` does."""
    generalized = anonymization.settings["quasi_identifiers"]
    released = anonymization.table
    return pd.DataFrame(
        {
            name: pd.Series(released[name].astype(str).to_numpy(dtype=object), dtype=str)
            if name in generalized
            else released[name]
            for name in columns
        }
    )
