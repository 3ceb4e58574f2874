"""Consistency of the rare values recorded in a manifest, with each other and with the released table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from privacy_assets.disclosure.rare_values import RARE_VALUES, RARE_VALUES_RELEASED, RareColumn, is_text_or_category
from privacy_assets.release.policy import Policy


def rare_values_problems(table: pd.DataFrame, manifest: Mapping[str, Any], policy: Policy) -> list[str]:
    """Check the rare values recorded in a manifest for consistency, with each other and with the released table.

    Which values are rare cannot be determined without the source.
    """
    if policy.limit_on(RARE_VALUES_RELEASED) is None:
        return []
    found = [verdict["value"] for verdict in manifest["verdicts"] if verdict["metric"] == RARE_VALUES_RELEASED]
    recorded = manifest["figures"].get(RARE_VALUES)
    if recorded is None:
        return [] if found == [None] else ["rare values are limited, but their counts by column are not recorded"]
    by_column = {name: RareColumn(**own) for name, own in recorded["by_column"].items()}
    total, records = recorded[RARE_VALUES_RELEASED], recorded["records_with_rare_values"]
    problems = []
    if recorded["people_per_value"] != policy.people_per_value:
        problems.append("rare values were not counted for the number of people that the policy requires")
    if found != [total] or total != sum(own.n_values for own in by_column.values()):
        problems.append(f"the figure for {RARE_VALUES_RELEASED!r} differs from the sum over its columns")
    of_labels = {each["column"]: each["generalizes"] for each in manifest["columns"] if "generalizes" in each}
    plain = {name for name in table.columns if name not in of_labels and is_text_or_category(table[name])}
    if not plain <= set(by_column) <= plain | set(of_labels.values()):
        problems.append("rare values were not counted in the text and category columns of the table")
    most = {name: (table[name].nunique(), int(table[name].notna().sum())) for name in plain & set(by_column)}
    are_possible = all(_is_possible(own, *most.get(name, (None, len(table)))) for name, own in by_column.items())
    of_columns = [own.n_records for own in by_column.values()]
    if not are_possible or not max(of_columns, default=0) <= records <= min(sum(of_columns), len(table)):
        problems.append("the recorded rare values are impossible for the records of the table")
    return problems


def _is_possible(own: RareColumn, n_values: int | None, n_records: int) -> bool:
    """Return whether a column can have this many rare values; one label may contain several."""
    if n_values is None:
        return own.n_values >= 0 and 0 <= own.n_records <= n_records and (own.n_values > 0) == (own.n_records > 0)
    return 0 <= own.n_values <= min(own.n_records, n_values) and own.n_records <= n_records * (own.n_values > 0)
