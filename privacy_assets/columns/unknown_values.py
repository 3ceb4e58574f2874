"""The guard against blind columns: synthetic values that nobody has cannot show whether records are copies.

Copies whose zip codes have a prefix, or whose names are hashed, equal nobody. A column is blind if many more of its
synthetic values than of the real ones are values that nobody (else) has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import ColumnValues, EncodedColumn, as_numbers, people_of_values
from privacy_assets.display.numbers import percent

BLIND: Final = 0.10
"""Share of synthetic numbers outside the range of real ones above which a column is blind."""
BLIND_TEXTS: Final = 0.005
"""Share of synthetic texts that nobody has, beyond that of real people, above which a column is blind.

Synthesizers make up numbers, but no texts.
"""
BY_CHANCE: Final = 1e-3
"""Probability of as many unknown values, were they as rare as among real people, below which they are no chance."""
INVENTED: Final = 0.90
"""Share of values that nobody has from which a column that may be invented is invented."""
ROUNDING: Final = 0.005
"""Share of the range by which numbers may be outside it, because synthesizers round to fewer decimals."""
MOST_COLUMNS_NAMED: Final = 10

UnknownValues = Mapping[str, Mapping[str, Any]]
"""By column: shares ``unknown`` and ``expected``, and whether it is ``blind``, was left out because ``invented``, and
is compared ``by_range``."""


def unknown_shares(
    tables: Sequence[ColumnValues], encoded: EncodedColumn, whose: NDArray[Any] | None, *, may_be_invented: bool
) -> dict[str, Any] | None:
    """Compare the synthetic values of a column with those of all real people, regardless of who is an original.

    The tables are those of `encode_spelled`; ``whose`` is the person of each real row, originals first. ``unknown`` is
    the share of the synthetic values that no real person has; of numbers and moments, of those outside the range of
    real people (``by_range``). ``expected`` is the same of a real person, who is left out: the share of real values
    that nobody else has; of numbers 2 / n. None for booleans, and without values on either side. A column that
    ``may_be_invented`` is not blind.
    """
    codes = encoded.all_spelled
    missing = [code for code, label in enumerate(encoded.labels[-1:], len(encoded.labels) - 1) if label is None]
    synthetic, real = codes.pop(1), np.concatenate(codes)
    synthetic, is_known = synthetic[~np.isin(synthetic, missing)], ~np.isin(real, missing)
    real = real[is_known]
    if encoded.kind in ("boolean", "missing") or not len(synthetic) or not len(real):
        return None
    if encoded.kind == "text":
        n_people = people_of_values(real, len(encoded.labels), None if whose is None else whose[is_known], 2)
        own = n_people[synthetic]
        unknown, expected = float((own == 0).mean()), float((n_people[real] == 1).mean())
    else:
        people = [table for table in (tables[0], *tables[2:]) if table.kind != "missing"]
        known = np.concatenate([as_numbers(table, encoded.precision) for table in people])
        own = as_numbers(tables[1], encoded.precision)[tables[1].codes[tables[1].codes >= 0]]
        low, high = np.nanmin(known), np.nanmax(known)
        is_outside = (own < low - ROUNDING * (high - low)) | (own > high + ROUNDING * (high - low))
        unknown, expected = float(is_outside.mean()), 2 / len(real)
    by_range = encoded.kind != "text"
    n, n_real, n_unknown = len(own), len(real), round(unknown * len(own))
    chance = probability_of_unknown(n_unknown, n, round(expected * n_real), n_real)
    is_more = unknown - expected > (BLIND if by_range else BLIND_TEXTS) and chance < BY_CHANCE
    return {
        "unknown": unknown,
        "expected": expected,
        "blind": is_more and not may_be_invented,
        "invented": may_be_invented and unknown >= INVENTED,
        "by_range": by_range,
    }


def probability_of_unknown(n_unknown: int, n: int, n_alone: int, n_real: int) -> float:
    """Return the probability of as many unknown among n synthetic values if they were as rare as among real ones.

    It is the one-sided p value of Fisher's exact test (of scipy.special alone, which needs less memory).
    """
    from scipy.special import gammaln

    def log_ways(all_values: Any, chosen: Any) -> Any:
        return gammaln(all_values + 1) - gammaln(chosen + 1) - gammaln(all_values - chosen + 1)

    every, total = n_unknown + n_alone, n + n_real
    by_count = np.arange(max(n_unknown, n + every - total), min(every, n) + 1)
    logs = log_ways(every, by_count) + log_ways(total - every, n - by_count) - log_ways(total, n)
    return float(np.exp(logs).sum())


def blind_columns(unknown_values: UnknownValues) -> list[str]:
    """Return the blind columns."""
    return [name for name, shares in unknown_values.items() if shares["blind"]]


def said_of_blind(unknown_values: UnknownValues) -> str:
    """Describe the blind columns and what to do; empty if there are none."""
    blind = blind_columns(unknown_values)
    if not blind:
        return ""
    said = [
        f"Column {name!r}: {percent(own['unknown'])} of the synthetic values are "
        + ("outside the range of real people's" if own["by_range"] else "values that nobody has")
        + f" ({percent(own['expected'])} of real people's)."
        for name, own in unknown_values.items()
        if name in blind[:MOST_COLUMNS_NAMED]
    ]
    more = f" The same holds for {len(blind) - len(said)} more columns." if len(blind) > len(said) else ""
    return (
        f"{' '.join(said)}{more} Copies in another notation cannot be seen there. Write the values as the source does, "
        "or leave the column out."
    )


def frame_of(unknown_values: UnknownValues) -> pd.DataFrame:
    """Return one row per column that has a guard: ``column, unknown, expected, blind, invented, by_range``."""
    rows = [{"column": name, **shares} for name, shares in unknown_values.items()]
    return pd.DataFrame(rows, columns=["column", "unknown", "expected", "blind", "invented", "by_range"])
