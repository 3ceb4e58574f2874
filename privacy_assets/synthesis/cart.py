"""Sequential CART: each column is drawn from real values of records that are similar in the columns before it.

The first column is drawn from its own values. For each later column, a tree predicts it from the columns before it
(classification for text, categories and booleans, regression on ranks for numbers and datetimes); a synthetic record
falls into a leaf and takes the value of a random real record of that leaf, the *donor*. A missing value is a separate
value.

What it may reveal: **every value is an observed one**. Text and categories are reproduced only if `min_atom` people
share them (rarer ones are first redrawn from the others of their column). If leaves are narrow, whole records are
reproduced verbatim (a few in a hundred on adult). It preserves the structure of the table better than a copula, and is
therefore riskier.

References
----------
.. [1] J. P. Reiter (2005), "Using CART to generate partially synthetic public use microdata", Journal of Official
   Statistics 21(3), 441-462.
.. [2] B. Nowok, G. M. Raab, C. Dibben (2016), "synthpop: bespoke creation of synthetic data in R", section 3.1,
   doi:10.18637/jss.v074.i11. Unlike there, categories are codes ordered by frequency, not factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.contract.rules import Rule
from privacy_assets.disclosure.rare_values import RareColumn
from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.kept_rules import draw_last_again
from privacy_assets.synthesis.redraw import MIN_ATOM, redraw_rare_values
from privacy_assets.synthesis.synthesize import NUMERIC, REDRAWN_KINDS, Kind, check_kinds, check_setting

MAX_CLASSES: Final = 50
"""Maximum number of classes of a tree; rarer values of a column are one class, whose donors keep their own values."""


class Cart:
    """Synthesizer by sequential classification and regression trees; see the module for what it may reveal.

    Needs scikit-learn (extra `trees`).

    Parameters
    ----------
    min_samples_leaf : int
        Smallest number of donors in a leaf; more donors give fewer verbatim copies and weaker dependence.
    max_depth : int, optional
        Depth of the trees; unlimited by default.
    min_atom : int
        Text and categories shared by fewer people are redrawn (`redraw_rare_values`); 1 reproduces all of them.
    """

    name = "cart"

    def __init__(self, *, min_samples_leaf: int = 5, max_depth: int | None = None, min_atom: int = MIN_ATOM) -> None:
        self._min_samples_leaf = check_setting(self.name, "min_samples_leaf", min_samples_leaf, at_least=1)
        self._max_depth = None if max_depth is None else check_setting(self.name, "max_depth", max_depth, at_least=1)
        self._min_atom = check_setting(self.name, "min_atom", min_atom, at_least=1)
        self.redrawn: Mapping[str, RareColumn] = {}
        self._steps: tuple[_Step, ...] = ()
        self._columns: pd.DataFrame = pd.DataFrame()
        self._codes: NDArray[np.float32] = np.empty((0, 0), dtype=np.float32)

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings in use."""
        return {"min_samples_leaf": self._min_samples_leaf, "max_depth": self._max_depth, "min_atom": self._min_atom}

    def fit(
        self,
        table: pd.DataFrame,
        *,
        seed: int,
        person: Sequence[Any] | None = None,
        progress: Callable[[], None] | None = None,
    ) -> Cart:
        """Grow one tree per column; cost is n log n in rows and quadratic in columns.

        `person` is the person of each row, for `min_atom`; `redrawn` counts the redrawn values. `progress` is called
        before each column; an exception that it raises ends the learning.
        """
        kind_of = check_kinds(table, self.name)
        kinds = list(kind_of.values())
        trees = sklearn_trees(self.name)
        columns = [name for name, kind in kind_of.items() if kind in REDRAWN_KINDS]
        table, self.redrawn = redraw_rare_values(
            table, columns, min_atom=self._min_atom, seed=seed, person=person, synthesizer=self.name
        )
        random = np.random.default_rng(seed)
        self._columns = table.reset_index(drop=True)
        codes = [_codes(column, kind) for (_, column), kind in zip(self._columns.items(), kinds, strict=True)]
        self._codes = np.column_stack(codes).astype(np.float32)
        steps: list[_Step] = []
        for i, kind in enumerate(kinds):
            if progress is not None:
                progress()
            steps.append(self._grow(trees, i, kind, random))
        self._steps = tuple(steps)
        return self

    def sample(self, n_records: int, *, seed: int, rules: Sequence[Rule] = ()) -> pd.DataFrame:
        """Draw the columns one after the other, each from donors in the leaf; again where they violate a rule."""
        if not self._steps:
            raise InvalidSettingError(f"{self.name!r} cannot sample before it is fitted. Call `fit` first.")
        random = np.random.default_rng(seed)
        drawn = np.empty((n_records, len(self._steps)), dtype=np.float32)
        names = self._columns.columns
        made: dict[str, pd.Series] = {}
        for i, step in enumerate(self._steps):

            def draw(rows: NDArray[np.intp], _: bool = False) -> pd.Series:  # in this turn of the loop
                donors = step.draw(drawn[rows, :i], random)  # noqa: B023
                drawn[rows, i] = self._codes[donors, i]  # noqa: B023
                return self._columns.iloc[donors, i].reset_index(drop=True)  # noqa: B023

            made[names[i]] = draw(np.arange(n_records))
            draw_last_again(rules, made, names[i], draw)
        return pd.DataFrame(made, columns=names)

    def _grow(self, trees: Any, position: int, kind: Kind, random: np.random.Generator) -> _Step:
        predictors, target = self._codes[:, :position], self._codes[:, position]
        options = {
            "min_samples_leaf": self._min_samples_leaf,
            "max_depth": self._max_depth,
            "random_state": int(random.integers(2**31)),
        }
        if position == 0 or (target == target[0]).all():
            return _Step(None, np.arange(len(target)), np.array([0, len(target)]))
        if kind in NUMERIC:
            tree = trees.DecisionTreeRegressor(**options).fit(predictors, target)
        else:
            tree = trees.DecisionTreeClassifier(**options).fit(predictors, np.minimum(target, MAX_CLASSES))
        return _Step.of_leaves(tree, tree.apply(predictors))


@dataclass(frozen=True)
class _Step:
    """A column's tree and the donors of each of its leaves."""

    tree: Any
    donors: NDArray[np.intp]
    """Rows of the table, grouped by leaf."""
    starts: NDArray[np.intp]
    """Start of the donors of each node in `donors`, and one past the last; inner nodes are without donors."""

    @classmethod
    def of_leaves(cls, tree: Any, leaves: NDArray[np.intp]) -> _Step:
        starts = np.concatenate([[0], np.cumsum(np.bincount(leaves, minlength=tree.tree_.node_count))])
        return cls(tree, np.argsort(leaves, kind="stable"), starts)

    def draw(self, predictors: NDArray[np.float32], random: np.random.Generator) -> NDArray[np.intp]:
        leaves = np.zeros(len(predictors), dtype=np.intp) if self.tree is None else self.tree.apply(predictors)
        start, end = self.starts[leaves], self.starts[leaves + 1]
        donors: NDArray[np.intp] = self.donors[start + (random.random(len(predictors)) * (end - start)).astype(np.intp)]
        return donors


def _codes(column: pd.Series, kind: Kind) -> NDArray[np.float64]:
    """Return a number for the value of each record: the rank of a number or datetime, the frequency order of others.

    Ranks are used because a few huge numbers would attract all splits of a regression tree. A missing number is well
    below the others; a missing category is a separate category.
    """
    if kind in NUMERIC:
        ranks = column.rank(method="average").to_numpy(dtype=np.float64, na_value=np.nan)
        return np.where(np.isnan(ranks), -0.1 * len(column), ranks)
    codes, _ = pd.factorize(column, use_na_sentinel=False)
    places = np.empty(int(codes.max()) + 1)
    places[np.argsort(-np.bincount(codes), kind="stable")] = np.arange(len(places))
    return places[codes]


def sklearn_trees(synthesizer: str) -> Any:
    """Import scikit-learn's trees, or raise InvalidSettingError that names the extra."""
    try:
        from sklearn import tree
    except ImportError:
        tree = None
    if tree is None:
        raise InvalidSettingError(
            f"The synthesizer {synthesizer!r} needs scikit-learn, which is not installed: pip install "
            "'privacy-assets[trees]'."
        )
    return tree
