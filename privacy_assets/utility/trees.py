"""A second opinion on the utility of a release, by gradient boosted trees; needs scikit-learn (extra ``trees``).

`assess_utility` judges pairs, counts and linear rules. Trees also see dependencies among more than three columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import read_dimension
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer, require

FEWEST_ROWS: Final = 300
MOST_ROWS: Final = 20_000
"""Rows of either table from which the discriminator learns."""
MOST_CATEGORIES: Final = 200
"""Values of an unordered column; the rarest are joined."""
MOST_CLASSES: Final = 10
"""A target of numbers with more values than this is predicted as a number."""


@dataclass(frozen=True)
class TreeAssessment:
    """Result of `assess_with_trees`.

    Attributes
    ----------
    discriminator_auc, discriminator_auc_of_originals : float
        How well trees distinguish records of the release, or of the originals, from those of the control: the area
        under the ROC curve on records from which they did not learn. 0.5 means not at all, 1 always.
    target : str or None
        The column that was predicted.
    explained, explained_of_originals : float or None
        Share of its variance in the control explained by trees that learned on the release, or on the originals; at
        most 1, below 0 if worse than the mean. For categories, the variance of one-hot columns; for numbers with more
        than 10 values, that of their ranks.
    """

    discriminator_auc: float
    discriminator_auc_of_originals: float
    target: str | None
    explained: float | None
    explained_of_originals: float | None


class _Features(NamedTuple):
    """Columns as numbers, of shape (n_rows, n_columns), and which of them are unordered."""

    numbers: NDArray[np.float64]
    is_unordered: NDArray[np.bool_]


def assess_with_trees(
    original: pd.DataFrame, released: pd.DataFrame, control: pd.DataFrame, *, target: str | None = None, seed: int = 0
) -> TreeAssessment:
    """Let gradient boosted trees distinguish a release from the control, and predict a column from the others.

    Parameters
    ----------
    original : DataFrame
        The records from which the release was made, with the columns to judge.
    released : DataFrame
        The release with all these columns, as plain values; draw records from generalized ones first (`draw_records`).
    control : DataFrame
        Records of other people with these columns.
    target : str, optional
        Column to predict. By default, no column is predicted.
    seed : int
        Seed of the trees and of the divisions of the records.

    Raises
    ------
    InvalidTableError
        If a table has fewer than 300 records or lacks a column, or values are of different kinds.
    InvalidSettingError
        If scikit-learn is not installed, the target is not a column or is the only one, or the seed is negative.

    Notes
    -----
    The discriminator learns from halves of at most 20,000 records of either table, equally many of both, and judges the
    other halves. Trees see the order of numbers, not their size.
    """
    require(is_integer(seed, 0), "seed", seed, "an integer of at least 0")
    tables = {"original": original, "released": released, "control": control}
    names = _check(tables, target)
    ensemble = _sklearn_ensemble()
    place = None if target is None else names.index(target)
    found = {}
    for side in ("released", "original"):
        # Each only with the control, so that the figures of the originals do not depend on the release.
        features = _encode(tables[side][names], control[names])
        judged = np.arange(len(tables[side]), len(features.numbers))
        rows = np.arange(len(tables[side]))
        auc = _discriminate(ensemble, features, rows, judged, seed)
        found[side] = auc, None if place is None else _explain(ensemble, features, place, rows, judged, seed)
    (auc, explained), (auc_of_originals, explained_of_originals) = found["released"], found["original"]
    return TreeAssessment(auc, auc_of_originals, target, explained, explained_of_originals)


def _check(tables: dict[str, pd.DataFrame], target: str | None) -> list[str]:
    for name, table in tables.items():
        if not isinstance(table, pd.DataFrame):
            raise InvalidTableError(f"The {name} table is a {type_name(table)}; expected a pandas DataFrame.")
        require_unique_text_names(table)
    names = list(tables["original"].columns)
    if not names:
        raise InvalidTableError("The original has no columns to judge. Expected at least one. Nothing was assessed.")
    for name, table in tables.items():
        lacking = [column for column in names if column not in table.columns]
        if lacking:
            raise InvalidTableError(f"The {name} table lacks the columns {lacking}. Nothing was assessed.")
    few = {name: len(table) for name, table in tables.items() if len(table) < FEWEST_ROWS}
    if few:
        raise InvalidTableError(
            f"These tables have too few records: {few}. Expected at least {FEWEST_ROWS}, so that trees can be judged. "
            "Nothing was assessed."
        )
    if target is not None and (target not in names or len(names) == 1):
        raise InvalidSettingError(
            f"`target` is {target!r}; expected one of several columns of the original, {names}. Nothing was assessed."
        )
    return names


def _encode(*tables: pd.DataFrame) -> _Features:
    """Return the ranks of ordered values, and numbers of the others by frequency; missing is NaN."""
    values, is_unordered = [], []
    for name in tables[0].columns:
        kinds = {read_dimension(table[name]).scale.kind for table in tables} - {"missing"}
        if len(kinds) > 1:
            raise InvalidTableError(
                f"Column {name!r} has values of different kinds in the tables: {sorted(map(str, kinds))}. Expected the "
                "same kind. Convert the column; for a generalized release, draw records first. Nothing was assessed."
            )
        parts = [table[name] for table in tables]
        is_category = any(isinstance(part.dtype, pd.CategoricalDtype) for part in parts)
        if is_category and len({part.dtype for part in parts}) > 1:
            parts = [part.astype(object) for part in parts]
        dimension = read_dimension(pd.concat(parts, ignore_index=True))
        codes = dimension.codes.astype(np.float64)
        if not dimension.scale.is_ordered:
            order = np.argsort(-np.bincount(dimension.codes, minlength=dimension.scale.n_known + 1), kind="stable")
            place = np.empty(len(order))
            place[order] = np.arange(len(order))
            codes = np.minimum(place[dimension.codes], MOST_CATEGORIES)
        values.append(np.where(dimension.codes == dimension.scale.n_known, np.nan, codes))
        is_unordered.append(not dimension.scale.is_ordered)
    return _Features(np.column_stack(values), np.array(is_unordered))


def _discriminate(
    ensemble: Any, features: _Features, one: NDArray[np.intp], other: NDArray[np.intp], seed: int
) -> float:
    """Return the mean area under the ROC curve of two halves, each judged by trees that learned on the other."""
    random = np.random.default_rng(seed)
    n_rows = min(len(one), len(other), MOST_ROWS)
    rows = np.concatenate([random.choice(one, n_rows, replace=False), random.choice(other, n_rows, replace=False)])
    is_one = np.arange(2 * n_rows) < n_rows
    half = np.tile(np.arange(n_rows) % 2 == 0, 2)
    found = []
    for learned in (half, ~half):
        trees = _trees(ensemble, features.is_unordered, seed)
        trees.fit(features.numbers[rows[learned]], is_one[learned])
        seen = trees.predict_proba(features.numbers[rows[~learned]])[:, 1]
        found.append(area_under_curve(seen, is_one[~learned]))
    return float(np.mean(found))


def area_under_curve(scores: NDArray[np.float64], is_positive: NDArray[np.bool_]) -> float:
    """Return the share of pairs of a positive and a negative in which the positive scores higher; ties count half."""
    ranks = pd.Series(scores).rank().to_numpy()
    n_positive = int(is_positive.sum())
    n_pairs = n_positive * (len(scores) - n_positive)
    return float((ranks[is_positive].sum() - n_positive * (n_positive + 1) / 2) / n_pairs)


def _explain(
    ensemble: Any, features: _Features, place: int, learned: NDArray[np.intp], judged: NDArray[np.intp], seed: int
) -> float | None:
    """Return the share of the variance of a column that trees explain; None if it has no variance in the control."""
    others = np.delete(np.arange(features.numbers.shape[1]), place)
    predictors, is_unordered = features.numbers[:, others], features.is_unordered[others]
    target = np.nan_to_num(features.numbers[:, place], nan=-1.0)
    if not features.is_unordered[place] and len(np.unique(target)) > MOST_CLASSES:
        truth = target[judged][:, None]
        trees = _trees(ensemble, is_unordered, seed, is_number=True)
        guessed = trees.fit(predictors[learned], target[learned]).predict(predictors[judged])[:, None]
    else:
        classes, codes = np.unique(target, return_inverse=True)
        truth = np.eye(len(classes))[codes[judged]]
        guessed = np.zeros(truth.shape)
        present = np.unique(codes[learned])
        if len(present) == 1:
            guessed[:, present] = 1.0
        else:
            trees = _trees(ensemble, is_unordered, seed)
            guessed[:, present] = trees.fit(predictors[learned], codes[learned]).predict_proba(predictors[judged])
    variance = float(((truth - truth.mean(axis=0)) ** 2).sum())
    return None if variance == 0 else 1 - float(((truth - guessed) ** 2).sum()) / variance


def _trees(ensemble: Any, is_unordered: NDArray[np.bool_], seed: int, *, is_number: bool = False) -> Any:
    kind = ensemble.HistGradientBoostingRegressor if is_number else ensemble.HistGradientBoostingClassifier
    return kind(categorical_features=is_unordered, early_stopping=False, random_state=seed)


def _sklearn_ensemble() -> Any:
    try:
        from sklearn import ensemble
    except ImportError:
        ensemble = None
    if ensemble is None:
        raise InvalidSettingError(
            "Trees need scikit-learn, which is not installed: pip install 'privacy-assets[trees]'. Nothing was "
            "assessed."
        )
    return ensemble
