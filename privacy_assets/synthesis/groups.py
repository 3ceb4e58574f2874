"""The column by whose groups a synthesizer is asked to be right: which columns can be one."""

from __future__ import annotations

import warnings
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import people_of_values
from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.number_lines import shares_of_people

MAX_GROUPS: Final = 200
LARGE_GROUP: Final = 100
"""People; at least half of all must be in groups of this size."""
ENOUGH_PER_GROUP: Final = 300
"""People per group on average: with 150, leakage was detected more often than by chance."""


def check_group(table: pd.DataFrame, group: str, whose: NDArray[np.intp] | None, synthesizer: str) -> None:
    """Refuse a column that is not there, or has too many or too small groups; warn of rather small ones."""
    if group not in table.columns:
        raise InvalidSettingError(
            f"`group` of {synthesizer!r} is {group!r}, which is not a column that it learns. It learns "
            f"{list(table.columns)}. Nothing was synthesized."
        )
    codes, values = pd.factorize(table[group], use_na_sentinel=False)
    codes, n_groups = codes.astype(np.intp), len(values)
    if n_groups > MAX_GROUPS:
        raise InvalidSettingError(
            f"`group` of {synthesizer!r} is {group!r}, which has {n_groups:,} values; expected at most {MAX_GROUPS}. "
            "Coarsen the column, or choose another. Nothing was synthesized."
        )
    shares, people = shares_of_people(codes, whose), people_of_values(codes, n_groups, whose)
    in_large, n_people = shares[people >= LARGE_GROUP].sum(), shares.sum()
    if in_large < n_people / 2:
        raise InvalidSettingError(
            f"`group` of {synthesizer!r} is {group!r}: {in_large:,.0f} of {n_people:,.0f} people are in groups of "
            f"{LARGE_GROUP} people or more; expected at least half. Coarsen the column, or leave `group` out. Nothing "
            "was synthesized."
        )
    if n_people < ENOUGH_PER_GROUP * n_groups:
        warnings.warn(
            f"`group` of {synthesizer!r}: {group!r} has {n_groups} groups of {n_people / n_groups:,.0f} people on "
            f"average. With fewer than {ENOUGH_PER_GROUP}, leakage is detected more often; coarser groups are safer.",
            stacklevel=2,
        )
