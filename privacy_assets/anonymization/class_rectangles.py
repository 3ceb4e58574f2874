"""Rectangles of the classes of an anonymization in the plane of two columns, as shares of the records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.pictures import draw_rectangles
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.masks import Interval, ReleaseModel
from privacy_assets.display.pictures import Drawn
from privacy_assets.errors import InvalidSettingError


def columns_in_order(model: ReleaseModel, original: pd.DataFrame) -> list[str]:
    """Return the generalized columns of numbers or datetimes."""
    return [
        name
        for name, mask in model.masks.items()
        if isinstance(mask, Interval)
        and (pd.api.types.is_numeric_dtype(original[name]) or pd.api.types.is_datetime64_any_dtype(original[name]))
    ]


def class_rectangles(anonymization: Anonymization, original: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Find the rectangle of each class in the plane of two of `columns_in_order`.

    ``x_low``, ``x_high``, ``y_low`` and ``y_high`` are shares, from 0 to 1, of the known values of the column below the
    ends of the interval; ``rows`` counts the released records with this rectangle. Records whose value may be missing
    in one of the columns are excluded.
    """
    in_order = columns_in_order(anonymization.model, original)
    unknown = [name for name in (x, y) if name not in in_order]
    if unknown:
        raise InvalidSettingError(
            f"{unknown} do not have intervals of numbers or datetimes; expected two of {in_order}."
        )
    ends = {}
    for axis, name in (("x", x), ("y", y)):
        ends[f"{axis}_low"], ends[f"{axis}_high"] = _shares_below(anonymization, original[name], name)
    return pd.DataFrame(ends).dropna().value_counts().rename("rows").reset_index()


def drawn_classes(
    anonymization: Anonymization, original: pd.DataFrame | None, pictured: Sequence[str] | None
) -> dict[str, Drawn]:
    """Draw the sizes of classes, the loss of each column if known, and rectangles of two columns if they are given."""
    drawn = {"records_by_class_size": anonymization.drawn("classes")}
    # After records were withheld, the loss by column is unknown.
    if "certainty_penalty" in anonymization.stats:
        drawn["information_loss_by_column"] = anonymization.drawn("loss")
    if original is not None and pictured:
        x, y = pictured
        drawn["classes_as_rectangles"] = draw_rectangles(class_rectangles(anonymization, original, x, y), x, y)
    return drawn


def _shares_below(
    anonymization: Anonymization, original: pd.Series, name: str
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    mask = anonymization.model.masks[name]
    assert isinstance(mask, Interval)  # noqa: S101 - ensured by columns_in_order
    known = original.dropna().sort_values().reset_index(drop=True)
    shares = []
    sides: tuple[tuple[str, Literal["left", "right"]], ...] = (
        (mask.low, "left"),
        (mask.high, "right" if mask.includes_high else "left"),
    )
    for column, side in sides:
        end = anonymization.table[column]
        is_known = end.notna()
        if mask.missing is not None:
            is_known &= ~anonymization.table[mask.missing]
        share = np.full(len(end), np.nan)
        # The ends have the type of the column, but may have missing values where the column does not.
        values = end[is_known].astype(known.dtype)
        share[is_known.to_numpy()] = known.searchsorted(values, side=side) / len(known)
        shares.append(share)
    return shares[0], shares[1]
