"""Probabilistic record linkage after Fellegi and Sunter (1969), by Splink, as an audited attacker."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import read_column
from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.masks import BoundedNoise, RankWindow
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification.candidate_index import CandidateIndex
from privacy_assets.reidentification.masked_columns import MaskedColumn
from privacy_assets.setting_checks import is_number
from privacy_assets.storage.temporary_directories import duckdb_connection

MAX_PAIRS = 25_000_000
# Probability of an agreement that does not occur in true pairs, and of one that does not occur in other pairs.
SMALLEST_PROBABILITY = 1e-9


def link_by_fellegi_sunter(
    index: CandidateIndex,
    original: pd.DataFrame,
    released: pd.DataFrame,
    known: Sequence[str],
    *,
    m_from: Literal["truth"] = "truth",
    seed: int = 0,
) -> NDArray[np.float64]:
    """Score originals by the match probability of the Fellegi-Sunter model.

    For each column, a pair of records agrees fully (noisy and rank-swapped numbers: equal; nearer than half of the
    noise), is within the mask, or disagrees. The agreement rate of true pairs (m) is counted on the labeled truth,
    that of others (u) on random pairs.

    Parameters
    ----------
    index : CandidateIndex
        The release, with its truth.
    original, released : DataFrame
        The tables of the index.
    known : sequence of str
        Columns to compare.
    m_from : {"truth"}
        Estimating m without labels, by expectation maximization, is refused: it found 3 % of the links where candidate
        sets allow 69 %, which would give false reassurance.
    seed : int
        Seed of the pairs drawn for u.

    Returns
    -------
    ndarray of shape (n_released, n_original), dtype=float64
        Match probabilities, divided by their sum in each row.

    Raises
    ------
    InvalidSettingError
        If Splink 5 is not installed (extra ``linkage``), no column is informative, there is a single original, or there
        are more than MAX_PAIRS pairs.
    """
    if m_from != "truth":
        raise InvalidSettingError(
            f"m_from is {m_from!r}. Expected 'truth': expectation maximization without labels underestimates the "
            "risk. Nothing was linked."
        )
    for table in (original, released):
        require_unique_text_names(table)
    if index.n_original < 2:
        raise InvalidSettingError(
            f"There is {index.n_original} original. Expected at least 2: the model compares how often true pairs "
            "agree with how often other pairs agree, and there are no others. Nothing was linked."
        )
    splink = require_splink()
    n_pairs = index.n_original * index.n_released
    columns = {name: index.masked([name]) for name in known}
    columns = {name: masks for name, masks in columns.items() if masks}
    if not columns or n_pairs > MAX_PAIRS:
        raise InvalidSettingError(
            f"{len(columns)} of the known columns are informative, and there are {n_pairs} pairs of records. Expected "
            f"at least one column and at most {MAX_PAIRS} pairs. Nothing was linked."
        )
    tables = ({"unique_id": np.arange(index.n_original)}, {"unique_id": np.arange(index.n_released)})
    comparisons = []
    for place, (name, masks) in enumerate(columns.items()):
        levels = _add_values(index, original, released, name, f"c{place}", tables)
        fits = [_add_sets(mask, f"c{place}_{number}", tables) for number, mask in enumerate(masks)]
        comparisons.append((f"c{place}", [*levels, " AND ".join(fits)]))
    return _score(splink, index, comparisons, tables, seed)


def require_splink() -> Any:
    """Return the module splink; refuse an environment without it, or with one that is too old."""
    try:
        import splink
    except ImportError:
        raise InvalidSettingError(
            "Linkage after Fellegi and Sunter needs Splink 5, which is not installed. Expected the extra `linkage`: "
            "pip install 'privacy-assets[linkage]'. Nothing was linked."
        ) from None
    if int(splink.__version__.split(".")[0]) < 5:
        raise InvalidSettingError(
            f"Splink {splink.__version__} is installed. Expected version 5. Update it. Nothing was linked."
        )
    return splink


def _add_values(
    index: CandidateIndex,
    original: pd.DataFrame,
    released: pd.DataFrame,
    name: str,
    column: str,
    tables: tuple[dict[str, Any], dict[str, Any]],
) -> list[str]:
    """Add the numbers of a noisy or rank-swapped column; return the conditions of its finer agreements."""
    mask = index.model.masks.get(name)
    if not isinstance(mask, BoundedNoise | RankWindow):
        return []
    for side, source in zip(tables, (original[name], released[mask.column]), strict=True):
        read = read_column(source, f"Column {name!r}")
        if read.kind not in ("number", "missing"):
            return []
        side[f"{column}_value"] = np.append(read.distinct.astype(np.float64), np.nan)[read.codes]
    difference = f"abs({column}_value_l - {column}_value_r)"
    conditions = [f"{difference} = 0"]
    if isinstance(mask, BoundedNoise) and is_number(mask.width, 0) and float(mask.width) > 0:
        conditions.append(f"{difference} <= {float(mask.width) / 2!r}")
    return conditions


def _add_sets(mask: MaskedColumn, column: str, tables: tuple[dict[str, Any], dict[str, Any]]) -> str:
    """Add codes of the originals and the possible codes of the release; return the condition that a pair matches."""
    sets = mask.sets
    if bool((np.diff(sets.first) == 1).all()):
        low, high = sets.low[sets.set_of_row], sets.high[sets.set_of_row]
        for side, own_low, own_high in ((tables[0], mask.codes, mask.codes), (tables[1], low, high)):
            side[f"{column}_low"], side[f"{column}_high"] = own_low.astype(np.int64), own_high.astype(np.int64)
        return f"{column}_low_l <= {column}_high_r AND {column}_low_r <= {column}_high_l"
    lists = [sets.codes_of(number).tolist() for number in range(sets.n_sets)]
    tables[0][f"{column}_codes"] = [[code] for code in mask.codes.tolist()]
    tables[1][f"{column}_codes"] = [lists[number] for number in sets.set_of_row.tolist()]
    return f"list_has_any({column}_codes_l, {column}_codes_r)"


def _score(
    splink: Any,
    index: CandidateIndex,
    comparisons: Sequence[tuple[str, Sequence[str]]],
    tables: tuple[dict[str, Any], dict[str, Any]],
    seed: int,
) -> NDArray[np.float64]:
    """Train the model, and score all pairs."""
    from splink import comparison_level_library as level_library
    from splink import comparison_library

    def level(condition: str | None) -> Any:
        own = level_library.ElseLevel() if condition is None else level_library.CustomLevel(condition)
        # Training replaces these, unless the level does not occur.
        return own.configure(m_probability=SMALLEST_PROBABILITY, u_probability=SMALLEST_PROBABILITY)

    settings = splink.SettingsCreator(
        link_type="link_only",
        comparisons=[
            comparison_library.CustomComparison(
                output_column_name=name, comparison_levels=[level(condition) for condition in [*conditions, None]]
            )
            for name, conditions in comparisons
        ],
        blocking_rules_to_generate_predictions=["1=1"],
        probability_two_random_records_match=1 / index.n_original,
        retain_matching_columns=False,
    )
    with duckdb_connection() as connection:
        scored = _scored_pairs(splink, splink.DuckDBAPI(connection), settings, index, tables, seed)
    claims = np.zeros((index.n_released, index.n_original))
    is_original_left = (scored["source_dataset_l"] == "original").to_numpy()
    left, right = scored["unique_id_l"].to_numpy(), scored["unique_id_r"].to_numpy()
    row, column = np.where(is_original_left, right, left), np.where(is_original_left, left, right)
    claims[row, column] = scored["match_probability"].to_numpy()
    return np.asarray(claims / claims.sum(axis=1, keepdims=True))


def _scored_pairs(
    splink: Any,
    database: Any,
    settings: Any,
    index: CandidateIndex,
    tables: tuple[dict[str, Any], dict[str, Any]],
    seed: int,
) -> pd.DataFrame:
    """Train the model in a database, and return the scores of all pairs."""
    names = ("original", "released")
    sources = [
        database.register(pd.DataFrame(table), dataset_display_name=name)
        for table, name in zip(tables, names, strict=True)
    ]
    labels = pd.DataFrame(
        {
            "source_dataset_l": "original",
            "unique_id_l": index.truth,
            "source_dataset_r": "released",
            "unique_id_r": np.arange(index.n_released),
        }
    )
    linker = splink.Linker(sources, settings, log_level=logging.CRITICAL)
    linker.training.estimate_u_using_random_sampling(max_pairs=1e6, seed=seed)
    linker.training.estimate_m_from_pairwise_labels(database.register(labels))
    scored: pd.DataFrame = linker.inference.predict().as_pyarrow_table().to_pandas()
    return scored
