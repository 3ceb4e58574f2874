"""Leaks that `disclosure.py` plants, and records of other people in which there are none."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from disclosure_tables import divided, interpolated, made_by, places, rounded_like, with_copies

FEWEST_VALUES = 9
"""Values of a number that is shifted or disturbed."""
FEWEST_FILTERED = 150
CANDIDATES = 4
"""Records of which a filter chooses, as a multiple of the originals."""
N_KNOWN = 4
Random: TypeAlias = np.random.Generator


class People(NamedTuple):
    """People of one table: ``others`` are as many as there are originals, and ``more`` contains these and others."""

    original: pd.DataFrame
    control: pd.DataFrame
    others: pd.DataFrame
    more: pd.DataFrame


Leak: TypeAlias = Callable[[People, Random], "pd.DataFrame | None"]


def divided_people(table: pd.DataFrame, n_original: int, n_control: int, random: Random) -> People:
    """Divide a table at random; a small one in the shares of 40, 20 and 40 %."""
    if len(table) < 2 * n_original + n_control:
        n_original, n_control = int(0.4 * len(table)), int(0.2 * len(table))
    sizes = (n_original, n_control, min(CANDIDATES * n_original, len(table) - n_original - n_control))
    original, control, more = divided(table, sizes, random)
    return People(original, control, more[:n_original], more)


def numbers(table: pd.DataFrame) -> list[str]:
    return [name for name in table if table[name].dtype.kind in "iuf" and table[name].nunique() >= FEWEST_VALUES]


def _with(table: pd.DataFrame, made: Mapping[str, object]) -> pd.DataFrame:
    """Replace columns; ``assign`` refuses one that is called ``self``."""
    table = table.reset_index(drop=True)
    for name, values in made.items():
        table[name] = values
    return table


def most_unique(table: pd.DataFrame) -> list[str]:
    """Return the number of which most values are of one person."""
    return sorted(numbers(table), key=lambda name: -(table[name].value_counts() == 1).sum())[:1]


def nearest_distances(people: pd.DataFrame, records: pd.DataFrame, nth: int = 1) -> np.ndarray:
    """Return the distance of each record to the nearest, second nearest ... of the people."""
    from sklearn.neighbors import NearestNeighbors

    found = NearestNeighbors(n_neighbors=nth).fit(places(people, people))
    return found.kneighbors(places(records, people))[0][:, nth - 1]


def are_far(people: pd.DataFrame, records: pd.DataFrame, quantile: float) -> np.ndarray:
    """Return whether records are farther from all people than this quantile of the distances of nearest people."""
    return nearest_distances(people, records) > np.quantile(nearest_distances(people, people, 2), quantile)


def _filtered(people: People, random: Random, quantile: float, method: str | None = None) -> pd.DataFrame | None:
    """Drop the records that are close to an original, of people or of what is made."""
    n = len(people.original)
    made = people.more if method is None else made_by(method, people.original, CANDIDATES * n, random)
    kept = made[are_far(people.original, made, quantile)]
    return kept[:n].reset_index(drop=True) if len(kept) >= FEWEST_FILTERED else None


def _among_others(people: People, rows: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([rows, people.others[len(rows) :]], ignore_index=True).astype(people.original.dtypes.to_dict())


def _some(table: pd.DataFrame, share: float, random: Random) -> pd.DataFrame:
    return table.iloc[random.choice(len(table), round(share * len(table)), replace=False)].reset_index(drop=True)


def _is_whole(values: pd.Series) -> bool:
    return bool((values.dropna() % 1 == 0).all())


def step_of(values: pd.Series) -> float:
    step = float(values.quantile(0.65) - values.quantile(0.5))
    return max(round(step), 1) if _is_whole(values) else max(round(step, 3), 0.001)


def _shifted(
    people: People,
    random: Random,
    chosen: Callable[[pd.DataFrame], list[str]],
    shift: Callable[[pd.DataFrame, str, pd.Series, Random], pd.Series],
) -> pd.DataFrame | None:
    """Move numbers of 3 % of the originals."""
    names = chosen(people.original)
    rows = _some(people.original, 0.03, random)
    moved = {name: shift(rows, name, people.original[name], random) for name in names}
    return _among_others(people, _with(rows, moved)) if names else None


def _by_a_constant(rows: pd.DataFrame, name: str, own: pd.Series, _: Random) -> pd.Series:
    return rows[name] + step_of(own)


def _by_a_constant_and_noise(rows: pd.DataFrame, name: str, own: pd.Series, random: Random) -> pd.Series:
    step = step_of(own)
    return rounded_like(own, rows[name] + step + random.normal(0, step / 2, len(rows)))


def _by_another_constant_of_ten(rows: pd.DataFrame, name: str, own: pd.Series, _: Random) -> pd.Series:
    return rows[name] + step_of(own) * (1 + np.arange(len(rows)) % 10)


def _three_percent_less(rows: pd.DataFrame, name: str, own: pd.Series, _: Random) -> pd.Series:
    return rounded_like(own, 0.97 * rows[name])


def _drawn_from_originals(
    people: People, random: Random, chosen: Callable[[pd.DataFrame], list[str]]
) -> pd.DataFrame | None:
    """Fill columns with the values of originals, shuffled."""
    n, names = len(people.others), chosen(people.original)
    drawn = {
        name: people.original[name].iloc[random.choice(len(people.original), n, replace=False)].to_numpy()
        for name in names
    }
    return _with(people.others, drawn) if names else None


def _disturbed(people: People, random: Random) -> pd.DataFrame:
    """Add noise of .3 standard deviations to the numbers of originals; a fifth of the other values are another's."""
    made = _some(people.original, 1.0, random)
    for name, own in people.original.items():
        if name in numbers(people.original):
            noise = random.normal(0, 0.3 * own.std(), len(made))
            made[name] = rounded_like(own, made[name] + noise).clip(own.min(), own.max())
        else:
            drawn = own.iloc[random.integers(0, len(own), len(made))].reset_index(drop=True)
            made[name] = made[name].where(random.random(len(made)) >= 0.2, drawn)
    return made.astype(people.original.dtypes.to_dict())


def _mean_of_three(people: People, random: Random) -> pd.DataFrame:
    from sklearn.neighbors import NearestNeighbors

    own_places, own = places(people.original, people.original), people.original
    near = NearestNeighbors(n_neighbors=3).fit(own_places).kneighbors(own_places, return_distance=False)
    near = near[random.permutation(len(own))]
    made = own.iloc[near[:, 1]].reset_index(drop=True)
    for name in numbers(own):
        three = pd.DataFrame(own[name].to_numpy(float)[near])
        made[name] = rounded_like(own[name], three.mean(axis=1))
    return made.astype(own.dtypes.to_dict())


def _copied(people: People, random: Random, share: float, n_changed: int = 0) -> pd.DataFrame:
    return with_copies(people.others, people.original, share, (n_changed, n_changed), random)


def _made(people: People, random: Random, method: str) -> pd.DataFrame:
    return made_by(method, people.original, len(people.others), random)


def attribute_leaked(people: People, random: Random, share: float, known: Sequence[str], secret: str) -> pd.DataFrame:
    """Put the known columns and the secret of some originals into records that are otherwise other people's."""
    n, names = round(share * len(people.original)), [*known, secret]
    rows = people.original[names].iloc[random.choice(len(people.original), n, replace=False)]
    at = random.choice(len(people.others), n, replace=False)
    cells = {name: people.others[name].to_numpy(object, copy=True) for name in names}
    for name in names:
        cells[name][at] = rows[name].to_numpy(object)
    return _with(people.others, cells).astype(people.original.dtypes.to_dict())


def secrets_of(table: pd.DataFrame) -> dict[str, str]:
    """Return a column of each kind that is worth a secret: a category of several values, and the finest number."""
    of_kind, is_number = {}, numbers(table)
    categories = [name for name in table if name not in is_number]
    if categories:
        n_values = table[categories].nunique()
        of_kind["category"] = max(categories, key=lambda name: min(n_values[name], 6) - 0.01 * n_values[name])
    if is_number:
        of_kind["number"] = max(is_number, key=lambda name: table[name].nunique())
    return of_kind


LEAKS: Mapping[str, Leak] = {
    "people filtered at the quartile": partial(_filtered, quantile=0.25),
    "people filtered at the median": partial(_filtered, quantile=0.5),
    "smooth CART filtered at the quartile": partial(_filtered, quantile=0.25, method="smooth_cart"),
    "smooth CART filtered at the median": partial(_filtered, quantile=0.5, method="smooth_cart"),
    "copula filtered at the quartile": partial(_filtered, quantile=0.25, method="gaussian_copula"),
    "one column of the originals": partial(_drawn_from_originals, chosen=most_unique),
    "all columns of the originals, each shuffled": partial(_drawn_from_originals, chosen=list),
    "3 %, all numbers shifted": partial(_shifted, chosen=numbers, shift=_by_a_constant),
    "3 %, one number shifted": partial(_shifted, chosen=most_unique, shift=_by_a_constant),
    "copies of 1 %": partial(_copied, share=0.01),
    "copies of 3 %": partial(_copied, share=0.03),
    "near copies of 1 %, one value changed": partial(_copied, share=0.01, n_changed=1),
    "near copies of 3 %, one value changed": partial(_copied, share=0.03, n_changed=1),
    "near copies of 5 %, two values changed": partial(_copied, share=0.05, n_changed=2),
    "SMOTE": lambda people, random: interpolated(people.original, len(people.others), random),
    "CART": partial(_made, method="cart"),
    "noise": _disturbed,
    "mean of three": _mean_of_three,
}
BY_TABLE = (
    "people filtered at the quartile",
    "people filtered at the median",
    "one column of the originals",
    "3 %, all numbers shifted",
    "copies of 3 %",
)
"""Leaks that are also counted by table."""
SUBTLE: Mapping[str, Leak] = {
    "smooth CART": partial(_made, method="smooth_cart"),
    "copula": partial(_made, method="gaussian_copula"),
    "copies of 0.3 %": partial(_copied, share=0.003),
    "people filtered at the 5 % quantile": partial(_filtered, quantile=0.05),
    "3 %, all numbers shifted, with noise": partial(_shifted, chosen=numbers, shift=_by_a_constant_and_noise),
    "3 %, all numbers shifted, ten constants": partial(_shifted, chosen=numbers, shift=_by_another_constant_of_ten),
    "3 %, all numbers times 0.97": partial(_shifted, chosen=numbers, shift=_three_percent_less),
}
"""Leaks that are weak, or of which the test states that it may not see them."""
HONEST: Mapping[str, Leak] = {
    "other people": lambda people, _: people.others,
    "bootstrap of them": lambda people, random: people.others.sample(
        frac=1, replace=True, random_state=random, ignore_index=True
    ),
    "CART of them": lambda people, random: made_by("cart", people.others, len(people.others), random),
    "smooth CART of them": lambda people, random: made_by("smooth_cart", people.others, len(people.others), random),
    "copula of them": lambda people, random: made_by("gaussian_copula", people.others, len(people.others), random),
}
