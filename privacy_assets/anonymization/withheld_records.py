"""An anonymization without the records that are withheld because of a risk other than the size of classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.anonymized_table import measure_anonymity, models_that_fail
from privacy_assets.anonymization.measured_loss import mean_loss, measure_losses
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.masks import HierarchyMapping
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidTableError


def withhold_records_at_risk(
    anonymization: Anonymization,
    made_of: pd.DataFrame,
    contract: TableContract,
    is_acceptable: Callable[[pd.DataFrame], NDArray[np.bool_]],
) -> Anonymization:
    """Withhold records at risk, and classes that then have fewer than k, and check all models again.

    ``is_acceptable`` returns the rows of a table that may be kept together, and is called again until nothing changes.
    Refused if no record remains, or the remaining ones lack the required l-diversity or t-closeness.
    """
    settings = anonymization.settings
    class_of_row = anonymization.members["class"]
    whose = None
    if settings["subject"] is not None:
        whose = made_of[settings["subject"]].take(anonymization.members["row"].to_numpy()).reset_index(drop=True)
    kept = np.ones(len(class_of_row), np.bool_)
    is_changed = True
    while is_changed and kept.any():
        kept[kept] = is_acceptable(anonymization.table[kept])
        # As in `_count`, rows without a person do not count as people.
        counts = (
            class_of_row[kept].groupby(class_of_row).size()
            if whose is None
            else whose[kept].groupby(class_of_row).nunique()
        )
        is_small = kept & ~class_of_row.isin(counts.index[counts >= settings["k"]]).to_numpy()
        is_changed = bool(is_small.any())
        kept &= ~is_small
    held = withhold_records(anonymization, kept, made_of)
    report, _ = measure_anonymity(held, contract, made_of, settings["subject"])
    failed = models_that_fail(held, report)
    if failed:
        raise InvalidTableError(
            f"{int((~kept).sum())} of {len(kept)} records were to be withheld, but in the remaining classes "
            f"{'; '.join(failed)}. Nothing was stored. Give scales to quasi-identifiers only, so that whole classes "
            "are withheld, or relax the limit on the risk or on the classes."
        )
    return held


def withhold_records(anonymization: Anonymization, kept: NDArray[np.bool_], made_of: pd.DataFrame) -> Anonymization:
    """Withhold released rows that are not ``kept``; they count as suppressed.

    ``classes`` and ``stats`` of the result describe the remaining records, at least one; ``stats`` omits figures by
    column and of sensitive columns, which describe the classes before.
    """
    if not kept.any():
        raise InvalidTableError(
            f"All {len(kept)} records would be withheld: no subset of them is acceptable. Nothing was stored. Raise "
            "the limit, remove columns, or generalize more."
        )
    members = anonymization.members[kept].reset_index(drop=True)
    table = anonymization.table[kept].reset_index(drop=True)
    classes = _count(anonymization, members, made_of)
    before = anonymization.classes.set_index("class")["rows"]
    n_in_part = int((classes["rows"].to_numpy() < before.loc[classes["class"]].to_numpy()).sum())
    held = replace(
        anonymization,
        table=table.assign(**{name: _used(table[name]) for name in table.columns}),
        members=members,
        classes=classes,
        stats=_describe(anonymization, classes, len(made_of)) | {"n_classes_withheld_in_part": n_in_part},
    )
    if anonymization.settings["output"] == "centroid":
        # Centers have no labels; their loss is the span of the remaining records.
        held.stats["information_loss"] = mean_loss(measure_losses(held, made_of))
    return held


def note_on_tight_ends(withheld: Anonymization) -> str:
    """Note that labels after `withhold_records` may end at values of withheld records; empty if they cannot."""
    n_classes = withheld.stats["n_classes_withheld_in_part"]
    masks = [withheld.model.masks[name] for name in withheld.settings["quasi_identifiers"]]
    has_nodes_only = all(isinstance(mask, HierarchyMapping) for mask in masks)
    if withheld.settings.get("bounds") != "tight" or has_nodes_only or not n_classes:
        return ""
    return (
        f"In {n_classes} of {withheld.stats['n_classes']} classes only a part of the records was withheld, and the "
        "labels are those of the whole class: with tight bounds they can end at a value that only a withheld record "
        "has. With bounds='cell' they cannot."
    )


def _used(column: pd.Series[Any]) -> pd.Series[Any]:
    """Remove unused categories, which would reveal withheld records."""
    return column.cat.remove_unused_categories() if isinstance(column.dtype, pd.CategoricalDtype) else column


def _count(anonymization: Anonymization, members: pd.DataFrame, made_of: pd.DataFrame) -> pd.DataFrame:
    subject = anonymization.settings["subject"]
    by_class = members.groupby("class")
    classes = anonymization.classes.set_index("class").loc[list(by_class.groups)].reset_index()
    classes["rows"] = by_class.size().to_numpy()
    if subject is not None:
        whose = members.assign(whose=made_of[subject].take(members["row"].to_numpy()).to_numpy())
        classes["people"] = whose.groupby("class")["whose"].nunique().to_numpy()
    return classes[["class", "rows", *(["people"] if subject is not None else []), "loss"]]


def _describe(anonymization: Anonymization, classes: pd.DataFrame, n_rows: int) -> dict[str, Any]:
    before = anonymization.stats
    rows = classes["rows"].to_numpy()
    people = classes["people"].to_numpy() if "people" in classes.columns else rows
    n_released = int(rows.sum())
    n_left_out = n_rows - n_released
    return {
        "protection": f"k = {int(people.min())} {before['unit']}, after records were withheld",
        "k": int(people.min()),
        "unit": before["unit"],
        "n_rows": n_rows,
        "n_released": n_released,
        "n_suppressed": n_left_out,
        "n_withheld": before["n_released"] - n_released,
        "suppressed_share": n_left_out / n_rows,
        "n_classes": len(rows),
        "smallest_class": int(rows.min()),
        "mean_class": float(rows.mean()),
        "largest_class": int(rows.max()),
        "smallest_class_people": int(people.min()),
        "mean_class_people": float(people.mean()),
        "largest_class_people": int(people.max()),
        "discernibility": int((rows * rows).sum()) + n_left_out * n_rows,
        "information_loss": (float(rows @ classes["loss"].to_numpy()) + n_left_out) / n_rows,
    }
