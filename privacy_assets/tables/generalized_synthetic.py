"""Synthetic records, generalized before they are assessed: what to do when they single people out.

Each *distinct* record counts as a person, so that copies of one record make no class. Originals and control are
assessed under the labels of the classes that the same cuts put them into: labels that nobody else bears would match
nothing, and say that nothing is at risk. Repeated records are left out before that, as values; after it, equal records
are different people, and what protects them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from privacy_assets.tables.anonymization import Anonymization
from privacy_assets.tables.cut_tree import NO_CLASS, apply_cuts
from privacy_assets.tables.errors import InvalidSettingError
from privacy_assets.tables.preprocess import PreprocessedTables, preprocess

DISTINCT_RECORD = "(distinct record)"
OUTSIDE_LABEL = "(in no class)"
"""What a row reads that no class holds; no label of a released table reads so."""


def number_distinct_records(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a column `DISTINCT_RECORD`: equal rows have one number."""
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
) -> PreprocessedTables:
    """Bring originals and control under the labels of generalized synthetic records, and all three to codes.

    Parameters
    ----------
    original, synthetic, control : DataFrame
        The released columns, as values.
    generalized : Anonymization
        What became of ``synthetic``.
    numeric_precision, datetime_precision
        See `preprocess`; for the columns that were not generalized.
    deduplicate : bool
        Whether records that are equal as values count once.

    Returns
    -------
    PreprocessedTables
        Its ``deduplicate`` says whether repeated values were left out.
    """
    rows = generalized.members["row"].to_numpy()
    labels = _labels_alone(generalized, list(synthetic.columns))
    if deduplicate:
        original, control = original.drop_duplicates(), control.drop_duplicates()
        labels = labels[~synthetic.duplicated().to_numpy()[rows]].reset_index(drop=True)
    prepared = preprocess(
        generalize_alike(generalized, original),
        labels,
        generalize_alike(generalized, control),
        numeric_precision=numeric_precision,
        datetime_precision=datetime_precision,
        deduplicate=False,
    )
    return replace(prepared, deduplicate=deduplicate)


def generalize_alike(anonymization: Anonymization, table: pd.DataFrame) -> pd.DataFrame:
    """Give the rows of another table the labels of the classes that the stored cuts put them into.

    Parameters
    ----------
    anonymization : Anonymization
        Made by the method "mondrian", not relaxed, with the output "labels".
    table : DataFrame
        Rows with the quasi-identifiers that were cut, of the same kinds.

    Returns
    -------
    DataFrame of shape (n_rows, n_columns)
        The table with a label, as text, in the place of each quasi-identifier. Rows that no class holds, because of a
        category or a missing value that the anonymized table does not have, read `OUTSIDE_LABEL`.

    Raises
    ------
    InvalidSettingError
        The classes cannot be told for other rows.
    """
    require_cuts_that_apply(anonymization.settings)
    assert anonymization.tree is not None  # noqa: S101 - the method "mondrian" always leaves its cuts
    classes = apply_cuts(anonymization.tree, table)
    own = anonymization.members["class"].to_numpy()
    first_row = np.empty(len(anonymization.classes), np.int64)
    first_row[own[::-1]] = np.arange(len(own))[::-1]
    columns = {}
    for name in table.columns:
        if name not in anonymization.settings["quasi_identifiers"]:
            columns[name] = table[name].reset_index(drop=True)
            continue
        labels = anonymization.table[name].astype(str).to_numpy(dtype=object)
        columns[name] = pd.Series(np.where(classes == NO_CLASS, OUTSIDE_LABEL, labels[first_row[classes]]), dtype=str)
    return pd.DataFrame(columns)


def require_cuts_that_apply(settings: Mapping[str, Any]) -> None:
    """Refuse settings whose classes cannot be told for the rows of another table."""
    found = {name: settings[name] for name in ("method", "relaxed", "output")}
    expected = {"method": "mondrian", "relaxed": False, "output": "labels"}
    if found != expected:
        raise InvalidSettingError(
            f"The anonymization has {found}, but its classes must be told for other rows, too. Expected {expected}."
        )


def _labels_alone(anonymization: Anonymization, columns: list[str]) -> pd.DataFrame:
    """Return the released table with one column of text for each quasi-identifier, as `generalize_alike` gives it."""
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
