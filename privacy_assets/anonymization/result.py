"""The result of :func:`~privacy_assets.anonymization.anonymize.anonymize`, and its classes as rectangles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.cut_tree import CutTree
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import Interval, ReleaseModel
from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import Drawn
from privacy_assets.errors import InvalidSettingError
from privacy_assets.storage.artifact import Artifact, EqualByContent


@dataclass(frozen=True, eq=False, repr=False)
class Anonymization(EqualByContent, ShowsFigures, ShowsPictures):
    """Result of :func:`~privacy_assets.anonymization.anonymize.anonymize`; only table and model may be released.

    Attributes
    ----------
    table : DataFrame
        The rows to release: generalized quasi-identifiers in place of the original ones, all other columns unchanged;
        without direct identifiers, subject and index; row order depends only on the released content.
    model : ReleaseModel
        How each released column constrains the original.
    classes : DataFrame
        One row per class: ``class``, ``rows``, ``people`` (if there is a subject), ``loss`` (mean NCP), and per
        sensitive column its diversity and distance: ``<column> values`` and ``<column> distance``.
    members : DataFrame
        For each row of ``table``: ``class``, and ``row``, its position in the given table. Private.
    stats : dict
        Figures of the whole table, as JSON values.
    tree : CutTree or None
        The cuts; None for the method "lattice". Private.
    settings : dict
        All settings that affect the result, as JSON values.
    hierarchies : mapping of str to Hierarchy
        Hierarchies along which columns were generalized, for the functions that take the result. They are not stored:
        pass them to these functions if the result was read from a file.
    """

    pictures = ("classes", "loss")
    main_figures = (
        "k",
        "n_released",
        "n_suppressed",
        "n_classes",
        "smallest_class",
        "smallest_class_people",
        "information_loss",
    )

    table: Any
    model: ReleaseModel
    classes: pd.DataFrame
    members: pd.DataFrame
    stats: dict[str, Any]
    tree: CutTree | None
    settings: dict[str, Any]
    hierarchies: Mapping[str, Hierarchy] = field(default_factory=dict, compare=False)

    @property
    def labels(self) -> pd.DataFrame:
        """The table to read: one column per released column, without the columns with the ends or values of labels."""
        found: pd.DataFrame = self.table[[name for name in self.table if name in self.model.masks]]
        return found

    def _figures(self) -> Mapping[str, object]:
        return self.stats

    def _draw(self, what: str) -> Drawn:
        from privacy_assets.anonymization.pictures import draw_class_sizes, draw_information_loss

        if what == "classes":
            return draw_class_sizes(self.classes)
        if "certainty_penalty" not in self.stats:
            raise InvalidSettingError(
                "The loss by column is unknown, because records were withheld after the classes were made. Nothing was "
                "drawn."
            )
        return draw_information_loss(self.stats["certainty_penalty"])

    def to_artifact(self) -> Artifact:
        """Write everything as plain columns under a JSON header."""
        header = {
            "stats": self.stats,
            "settings": self.settings,
            "model": self.model.to_json(),
            "tree": None if self.tree is None else self.tree.header(),
        }
        frames = {"table": self.table, "classes": self.classes, "members": self.members}
        return Artifact("Anonymization", header, {**frames, **({} if self.tree is None else self.tree.to_frames())})

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> Anonymization:
        """Read the output of :meth:`to_artifact`."""
        header: Mapping[str, Any] = artifact.header
        frames = dict(artifact.frames)
        return cls(
            frames["table"],
            ReleaseModel.from_json(header["model"]),
            frames["classes"],
            frames["members"],
            dict(header["stats"]),
            None if header["tree"] is None else CutTree.from_parts(header["tree"], frames),
            dict(header["settings"]),
        )


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
        from privacy_assets.anonymization.pictures import draw_rectangles

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
