"""The result of :func:`~privacy_assets.anonymity.verify.verify_anonymity`: counts and measures without cells."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from privacy_assets.display.notebook import ShowsFigures


@dataclass(frozen=True)
class ClassSizes:
    """Rows (or people) per class."""

    smallest: int
    mean: float
    median: float
    largest: int

    @classmethod
    def of(cls, sizes: NDArray[np.int64]) -> ClassSizes:
        """Summarize sizes, at least one."""
        return cls(int(sizes.min()), float(sizes.mean()), float(np.median(sizes)), int(sizes.max()))


@dataclass(frozen=True)
class SensitiveReport:
    """Figures of the worst class on one sensitive column; infinity if every limit fails.

    Attributes
    ----------
    alpha : float
        Largest share of one value in a class: the alpha of (alpha, k)-anonymity [1]_.
    l_distinct : int
        Smallest number of values in a class.
    l_entropy : float
        exp of the smallest entropy of a class: every l up to it is satisfied [2]_.
    l_recursive_c : mapping of int to float
        For each l from 2 to ``l_distinct`` (at most `recursive_l` of the call, 10 by default), the number that c must
        *exceed* for recursive (c, l)-diversity: the largest r_1 / (r_l + ... + r_m) of a class, its counts r sorted
        descending [2]_. Empty if ``l_distinct`` is 1.
    t : float
        Largest earth mover's distance of a class from the table [3]_.
    t_distance : str
        "ordered" for numbers, times and ordered categories (a missing value comes after all others), else "equal".
    beta, enhanced_beta : float
        Largest (q - p) / p; for enhanced beta-likeness infinite if it exceeds -ln p somewhere [4]_.
    delta : float
        Largest |ln(q / p)| over the values in each class [5]_.
    n_classes_lacking_values : int
        Classes that lack a value of the table. Strictly by [5]_, delta is infinite if there is such a class.
    share_in_homogeneous_classes : float
        Share of the rows whose class has a single value, which is therefore certain.
    n_values : int
        Values in the table, counting the missing value.

    References
    ----------
    .. [1] R. Wong, J. Li, A. Fu, K. Wang (2006), "(alpha, k)-anonymity: an enhanced k-anonymity model for
       privacy-preserving data publishing", doi:10.1145/1150402.1150499.
    .. [2] Machanavajjhala et al. (2007), doi:10.1145/1217299.1217302.
    .. [3] Li et al. (2007), doi:10.1109/ICDE.2007.367856.
    .. [4] Cao, Karras (2012), doi:10.14778/2350229.2350255.
    .. [5] Brickell, Shmatikov (2008), doi:10.1145/1401890.1401904.
    """

    alpha: float
    l_distinct: int
    l_entropy: float
    l_recursive_c: Mapping[int, float]
    t: float
    t_distance: str
    beta: float
    enhanced_beta: float
    delta: float
    n_classes_lacking_values: int
    share_in_homogeneous_classes: float
    n_values: int

    def to_header(self) -> dict[str, Any]:
        """Return JSON values; an infinite figure becomes the text "inf"."""
        header: dict[str, Any] = {
            **self.__dict__,
            "l_recursive_c": {str(l_): c for l_, c in self.l_recursive_c.items()},
        }
        return {name: "inf" if value == inf else value for name, value in header.items()}

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> SensitiveReport:
        """Read the output of :meth:`to_header`."""
        values: dict[str, Any] = {name: inf if value == "inf" else value for name, value in header.items()}
        return cls(**{**values, "l_recursive_c": {int(l_): c for l_, c in header["l_recursive_c"].items()}})


@dataclass(frozen=True, repr=False)
class AnonymityReport(ShowsFigures):
    """Result of :func:`verify_anonymity`: counts and measures without cells.

    The figures of the sensitive columns are in ``sensitive``; the properties of the same names are the worst of all
    columns, or None without sensitive columns.

    Attributes
    ----------
    quasi_identifiers : tuple of str
        Columns on which the rows of a class are equal.
    subject : str or None
        Column with the person of each row.
    n_rows, n_classes : int
        Rows and classes.
    k : int
        Rows of the smallest class [1]_.
    k_people : int or None
        People in the class with the fewest people; None without ``subject``.
    class_sizes : ClassSizes
        Rows per class.
    class_people : ClassSizes or None
        People per class.
    share_in_homogeneous_classes : float or None
        Share of the rows for which at least one sensitive value is certain.
    sensitive : mapping of str to SensitiveReport
        Figures of each sensitive column.

    References
    ----------
    .. [1] L. Sweeney (2002), "k-anonymity: a model for protecting privacy", doi:10.1142/S0218488502001648.
    """

    main_figures = ("k", "k_people", "n_rows", "n_classes", "l_distinct", "t", "share_in_homogeneous_classes")

    quasi_identifiers: tuple[str, ...]
    subject: str | None
    n_rows: int
    n_classes: int
    k: int
    k_people: int | None
    class_sizes: ClassSizes
    class_people: ClassSizes | None
    share_in_homogeneous_classes: float | None
    sensitive: Mapping[str, SensitiveReport]

    def _figures(self) -> Mapping[str, object]:
        return {**self.to_header(), "l_distinct": self.l_distinct, "t": self.t}

    @property
    def alpha(self) -> float | None:
        """Largest share of one sensitive value in a class."""
        return max((column.alpha for column in self.sensitive.values()), default=None)

    @property
    def l_distinct(self) -> int | None:
        """Smallest number of sensitive values in a class."""
        return min((column.l_distinct for column in self.sensitive.values()), default=None)

    @property
    def l_entropy(self) -> float | None:
        """Largest l of entropy l-diversity that all columns have."""
        return min((column.l_entropy for column in self.sensitive.values()), default=None)

    @property
    def l_recursive_c(self) -> Mapping[int, float] | None:
        """By l, the number that c must exceed for recursive (c, l)-diversity of all columns."""
        columns = [column.l_recursive_c for column in self.sensitive.values()]
        if not columns:
            return None
        return {l_: max(own[l_] for own in columns) for l_ in min(columns, key=len)}

    @property
    def t(self) -> float | None:
        """Largest distance of a class from the table."""
        return max((column.t for column in self.sensitive.values()), default=None)

    @property
    def beta(self) -> float | None:
        """Beta of basic beta-likeness."""
        return max((column.beta for column in self.sensitive.values()), default=None)

    @property
    def enhanced_beta(self) -> float | None:
        """Beta of enhanced beta-likeness."""
        return max((column.enhanced_beta for column in self.sensitive.values()), default=None)

    @property
    def delta(self) -> float | None:
        """Delta of delta-disclosure privacy, over the values in each class."""
        return max((column.delta for column in self.sensitive.values()), default=None)

    def to_header(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        return {
            **self.__dict__,
            "quasi_identifiers": list(self.quasi_identifiers),
            "class_sizes": asdict(self.class_sizes),
            "class_people": None if self.class_people is None else asdict(self.class_people),
            "sensitive": {name: column.to_header() for name, column in self.sensitive.items()},
        }

    @classmethod
    def from_header(cls, header: Mapping[str, Any]) -> AnonymityReport:
        """Read the output of :meth:`to_header`."""
        people = header["class_people"]
        columns = {name: SensitiveReport.from_header(own) for name, own in header["sensitive"].items()}
        values = {
            **header,
            "quasi_identifiers": tuple(header["quasi_identifiers"]),
            "class_sizes": ClassSizes(**header["class_sizes"]),
            "class_people": None if people is None else ClassSizes(**people),
            "sensitive": columns,
        }
        return cls(**values)
