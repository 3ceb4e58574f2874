"""Figures of an anonymization: sizes, losses and diversity of the classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.generalization import Generalization
from privacy_assets.anonymization.information_loss import (
    average_class_ratio,
    certainty_penalty,
    class_widths,
    discernibility,
    non_uniform_entropy,
)
from privacy_assets.anonymization.kernels.class_measures import ClassMeasures
from privacy_assets.anonymization.quasi_identifiers import Dimension
from privacy_assets.anonymization.settings import AnonymizeSettings


class Classes(NamedTuple):
    """The classes of a table.

    Class c has the released rows ``records[edges[c]:edges[c + 1]]`` (positions in the table) and ``people[c]`` people,
    or rows without a subject.
    """

    records: NDArray[np.integer[Any]]
    edges: NDArray[np.int64]
    people: NDArray[np.int64]
    generalizations: list[Generalization]
    measures: ClassMeasures

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Rows of each class."""
        return np.diff(self.edges)


def describe_classes(classes: Classes, settings: AnonymizeSettings) -> pd.DataFrame:
    """One row per class; see :class:`~privacy_assets.anonymization.result.Anonymization`."""
    frame: dict[str, Any] = {"class": np.arange(len(classes.sizes)), "rows": classes.sizes}
    if settings.subject is not None:
        frame["people"] = classes.people
    frame["loss"] = sum(map(class_widths, classes.generalizations)) / len(classes.generalizations)
    for v, name in enumerate(settings.sensitive):
        frame[f"{name} values"] = classes.measures.n_distinct[:, v]
        frame[f"{name} distance"] = classes.measures.distance[:, v]
    return pd.DataFrame(frame)


def measure(classes: Classes, dimensions: list[Dimension], settings: AnonymizeSettings) -> dict[str, Any]:
    """Return the figures of the whole table as JSON values; ``information_loss`` defines them."""
    n_rows = len(dimensions[0].codes)
    sizes, people = classes.sizes, classes.people
    n_released = int(sizes.sum())
    penalty = {g.scale.name: certainty_penalty(g, sizes, n_rows) for g in classes.generalizations}
    entropy = {
        g.scale.name: non_uniform_entropy(g, dimension.codes, sizes)
        for g, dimension in zip(classes.generalizations, dimensions, strict=True)
    }
    stats: dict[str, Any] = {
        "protection": "no protection"
        if settings.k == 1 and not settings.needs_values
        else f"k = {settings.k} {settings.unit}",
        "k": int(people.min()),
        "unit": settings.unit,
        "n_rows": n_rows,
        "n_released": n_released,
        "n_suppressed": n_rows - n_released,
        "suppressed_share": (n_rows - n_released) / n_rows,
        "n_classes": len(sizes),
        "smallest_class": int(sizes.min()),
        "mean_class": float(sizes.mean()),
        "largest_class": int(sizes.max()),
        "smallest_class_people": int(people.min()),
        "mean_class_people": float(people.mean()),
        "largest_class_people": int(people.max()),
        "average_class_ratio": average_class_ratio(sizes, settings.k),
        "discernibility": discernibility(sizes, n_rows),
        "certainty_penalty": penalty,
        "information_loss": float(np.mean(list(penalty.values()))),
        "non_uniform_entropy": entropy,
        "share_in_homogeneous_classes": None,
        "sensitive": {},
    }
    is_homogeneous = np.zeros(len(sizes), np.bool_)
    for v, name in enumerate(settings.sensitive):
        is_certain = classes.measures.n_distinct[:, v] == 1
        is_homogeneous |= is_certain
        stats["sensitive"][name] = {
            "distinct_l": int(classes.measures.n_distinct[:, v].min()),
            "entropy_l": float(classes.measures.entropy_l[:, v].min()),
            "t": float(classes.measures.distance[:, v].max()),
            "share_in_homogeneous_classes": float(sizes[is_certain].sum()) / n_released,
        }
    if settings.sensitive:
        stats["share_in_homogeneous_classes"] = float(sizes[is_homogeneous].sum()) / n_released
    return stats
