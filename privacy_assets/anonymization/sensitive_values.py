"""Sensitive columns and people as codes, and their models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.kernels.class_measures import measure_classes
from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, NO_L, RECURSIVE, Models, values_hold
from privacy_assets.anonymization.quasi_identifiers import Dimension, read_dimensions
from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.columns.coding import compact, numbers_of_people
from privacy_assets.columns.spelling import spelled_alike
from privacy_assets.display.numbers import against
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.table import Table

MOST_VALUES_DIVIDED = 100
"""Tasks of an engine count each bin by at most this many sensitive values; with more, one machine has all rows."""
_L_KINDS = {"distinct": DISTINCT, "entropy": ENTROPY, "recursive": RECURSIVE}


class SensitiveValues(NamedTuple):
    """All sensitive columns in one flat list of values, in which those of a column begin at ``first``.

    Every value occurs; a missing value is the last one of its column. ``codes`` (n_rows, n_sensitive) are positions in
    the list; the distance between values is that of their ranks if ``is_ordered``.
    """

    names: tuple[str, ...]
    codes: NDArray[np.int32]
    first: NDArray[np.int64]
    is_ordered: NDArray[np.bool_]

    def totals(self) -> NDArray[np.int64]:
        """Count the rows of each value."""
        return np.bincount(self.codes.ravel(), minlength=int(self.first[-1])).astype(np.int64)

    def limited(self, settings: AnonymizeSettings) -> SensitiveValues:
        """Leave out the columns without a limit, because cuts do not depend on them."""
        limits = {**settings.l_diversity, **settings.t_closeness}
        kept = [v for v, name in enumerate(self.names) if limits.get(name) is not None]
        first = np.cumsum([0, *(self.first[v + 1] - self.first[v] for v in kept)]).astype(np.int64)
        codes = self.codes[:, kept] - (self.first[kept] - first[:-1]).astype(np.int32)
        return SensitiveValues(tuple(self.names[v] for v in kept), codes, first, self.is_ordered[kept])


def read_sensitive(table: Table, names: tuple[str, ...]) -> SensitiveValues:
    """Read the sensitive columns, texts in one spelling."""
    return in_one_list(names, read_dimensions(table, names, spelled_alike), len(table))


def in_one_list(names: tuple[str, ...], dimensions: Sequence[Dimension], n_rows: int) -> SensitiveValues:
    """Put the values of sensitive columns into one list."""
    first = np.cumsum([0, *(d.scale.n_values for d in dimensions)]).astype(np.int64)
    codes = np.zeros((n_rows, len(dimensions)), np.int32)
    for v, dimension in enumerate(dimensions):
        codes[:, v] = dimension.codes
        codes[:, v] += np.int32(first[v])
    return SensitiveValues(names, codes, first, np.array([d.scale.is_ordered for d in dimensions], np.bool_))


def read_people(table: Table, subject: str) -> NDArray[np.int32]:
    """Assign a number to each person of a table; a row without a person is an error."""
    numbered = numbers_of_people(table[subject])
    if numbered is not None:
        return compact(*numbered)[0].astype(np.int32, copy=False)
    try:
        codes, _ = pd.factorize(table[subject])
    except TypeError:
        raise InvalidTableError(
            f"The subject column {subject!r} has values that cannot be compared. Expected one value per person."
        ) from None
    require_everybody(int((codes < 0).sum()), subject)
    return codes.astype(np.int32)


def require_everybody(n_missing: int, subject: str) -> None:
    """Refuse rows without a person."""
    if n_missing:
        raise InvalidTableError(
            f"{n_missing} rows have no value in the subject column {subject!r}. Expected the person of every row. "
            "Nothing was anonymized; drop those rows, or give them a person."
        )


def make_models(settings: AnonymizeSettings, values: SensitiveValues) -> Models:
    """Put the limits on these sensitive columns into arrays."""
    kinds, least, factor, most = [], [], [], []
    for name in values.names:
        diversity = settings.l_diversity.get(name)
        kinds.append(NO_L if diversity is None else _L_KINDS[diversity.kind])
        least.append(1.0 if diversity is None else float(diversity.least))
        factor.append(1.0 if diversity is None else float(diversity.c))
        most.append(float(settings.t_closeness.get(name, np.inf)))
    totals = values.totals()
    cumulative = [np.cumsum(own) for own in np.split(totals, values.first[1:-1])] if values.names else []
    prefix = [np.concatenate([[0.0], np.cumsum(own.astype(np.float64))]) for own in cumulative]
    return Models(
        int(settings.k),
        settings.criterion == "range",
        settings.subject is not None,
        settings.needs_values,
        values.first,
        np.array(kinds, np.int64),
        np.array(least, np.float64),
        np.array(factor, np.float64),
        np.array(most, np.float64),
        values.is_ordered,
        totals,
        np.concatenate([np.zeros(0, np.int64), *cumulative]),
        np.concatenate([np.zeros(0), *prefix]),
    )


def table_holds(models: Models, values: SensitiveValues) -> bool:
    """Whether the whole table satisfies every l; it always satisfies t."""
    if not models.needs_values:
        return True
    return bool(values_hold(models.totals, np.arange(len(models.totals)), len(values.codes), models))


def require_reachable(settings: AnonymizeSettings, values: SensitiveValues, models: Models) -> None:
    """Refuse a diversity that the whole table does not have; report the diversity of each column."""
    counts, n_rows = models.totals, len(values.codes)
    reached = measure_classes(values.codes, values.first, values.is_ordered, np.array([0, n_rows], np.int64))
    problems = []
    for v, name in enumerate(values.names):
        diversity = settings.l_diversity.get(name)
        alone = models._replace(l_kind=np.where(np.arange(len(models.l_kind)) == v, models.l_kind, NO_L))
        if diversity is None or values_hold(counts, np.arange(len(counts)), n_rows, alone):
            continue
        own = np.sort(counts[values.first[v] : values.first[v + 1]])[::-1]
        found = {
            "distinct": f"it has {reached.n_distinct[0, v]} values",
            "entropy": f"the whole table reaches {against(reached.entropy_l[0, v], diversity.least)[0]}",
            "recursive": f"its most frequent value has {own[0]} rows, and the values from the {int(diversity.least)}. "
            f"on together {own[int(diversity.least) - 1 :].sum()}",
        }[diversity.kind]
        c = f", c = {diversity.c}" if diversity.kind == "recursive" else ""
        problems.append(f"{diversity.kind} l = {diversity.least}{c} of {name!r}: {found}.")
    if problems:
        raise InvalidSettingError(
            f"l_diversity is more than the table as one class has: {' '.join(problems)} Expected at most that. Lower "
            "it, or allow leaving out rows with max_suppression. Nothing was anonymized."
        )


def has_few_values(models: Models) -> bool:
    """Whether the tasks of an engine can count the sensitive values that have limits."""
    return not models.needs_values or len(models.totals) <= MOST_VALUES_DIVIDED


def has_few_sensitive_values(table: pd.DataFrame, settings: AnonymizeSettings) -> bool:
    """Whether a table has few enough sensitive values with limits for the tasks of an engine to count them."""
    limits = {**settings.l_diversity, **settings.t_closeness}
    names = [name for name, limit in limits.items() if limit is not None]
    return sum(table[name].nunique(dropna=False) for name in names) <= MOST_VALUES_DIVIDED
