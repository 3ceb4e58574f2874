"""The tables of `undoable.py`, and the releases made of each: some must be refused, and some can be admitted."""

import os
import sys
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.contract.contract import TableContract
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.synthesis.synthesize import synthesize

BENCHMARKS = Path(__file__).resolve().parent.parent
# The other benchmarks are scripts, which import each other by their own names.
sys.path.append(str(BENCHMARKS))
from disclosure_leaks import are_far, most_unique, step_of  # noqa: E402, F401
from disclosure_tables import interpolated, of_statsmodels, wide, with_copies  # noqa: E402

DATA = Path(os.environ.get("PRIVACY_ASSETS_SHARED", BENCHMARKS.parent.parent / "shared")) / "data"
N_WIDE, MOST_DECIMALS = 40, 9
VISITS_OF_A_PERSON = 3
LINKED, SEPARATE = "linked rows", "separate people"
"""Families of changes by which more rows, or other ones, seem to be of a person."""
SMALLEST_CLASSES = {"k below the limit": 2, "k at the limit": 11}


def random_of(*names: object) -> np.random.Generator:
    """Return a generator that depends on names alone, so that each pair can be made again by itself."""
    return np.random.default_rng([zlib.crc32(str(name).encode()) for name in names])


@dataclass(frozen=True)
class Table:
    """A table, and how it is divided.

    Attributes
    ----------
    make : callable
        Makes the table.
    n_people : tuple of int
        People among the originals, in the control, and among the people of whom as many records are released.
    known, sensitive : tuple of str
        Quasi-identifiers and sensitive columns of its anonymized release.
    person : str or None
        Column with the person of each row.
    families : tuple of str
        Families of the transformations that are tried on it; empty for all.
    """

    make: Callable[[], pd.DataFrame]
    n_people: tuple[int, int, int]
    known: tuple[str, ...]
    sensitive: tuple[str, ...]
    person: str | None = None
    families: tuple[str, ...] = ()


@dataclass(frozen=True)
class Source:
    """The rows that a release is made of, with all of their columns, and these as the contract declares them."""

    table: pd.DataFrame
    columns: Mapping[str, Mapping[str, Any]]

    @cached_property
    def contract(self) -> TableContract:
        """The contract; without a person, it says that each row is one."""
        has_person = any(own.get("person") for own in self.columns.values())
        return TableContract.from_mapping(
            {"columns": self.columns} | ({} if has_person else {"one_row_per_person": True})
        )


@dataclass(frozen=True)
class Synthetic:
    """Synthetic records beside the people they are compared with, as the assessments receive them.

    Attributes
    ----------
    original, synthetic, control : DataFrame
    person : str or None
        Column of original and control with the person of each row.
    options : mapping
        Other arguments of the assessments: threads, engine, parts of columns.
    more : callable or None
        Draws this many records from the same model; None if there is no model.
    fresh : callable
        Draws this many records that have nothing of the originals.
    source : Source
        Originals and control.
    """

    original: pd.DataFrame
    synthetic: pd.DataFrame
    control: pd.DataFrame
    person: str | None
    more: Callable[[int], pd.DataFrame] | None
    fresh: Callable[[int], pd.DataFrame]
    source: Source
    options: Mapping[str, Any] = field(default_factory=lambda: {"n_threads": 1})

    @property
    def columns(self) -> list[str]:
        """The released columns."""
        return list(self.synthetic.columns)

    def of_all(self, change: Callable[[pd.DataFrame], pd.DataFrame]) -> "Synthetic":
        """Change all three tables alike."""
        return replace(self, **{name: change(getattr(self, name)) for name in ("original", "synthetic", "control")})

    def as_text(self) -> "Synthetic":
        """Return the same release with all released columns as a reader of CSV without types receives them."""
        tables = (self.original, self.synthetic, self.control)
        own = {name: _writer(pd.concat([table[name] for table in tables])) for name in self.columns}
        return self.of_all(
            lambda table: table.assign(**{name: table[name].map(own[name]) for name in own}).astype(
                dict.fromkeys(own, object)
            )
        )


@dataclass(frozen=True)
class Anonymized:
    """An anonymized release, the table that it was made of, and its contract.

    Attributes
    ----------
    admitted : DataFrame
    made : Anonymization
        The release.
    again : callable
        Makes it again from a changed table, with other options.
    source : Source
        What was admitted.
    """

    admitted: pd.DataFrame
    made: Anonymization
    again: Callable[..., Anonymization]
    source: Source

    @property
    def contract(self) -> TableContract:
        """The contract of the source."""
        return self.source.contract


def _writer(values: pd.Series) -> Callable[[Any], str | None]:
    """Return what writes the values of a column as text: numbers without needless zeros, days without a time."""
    kept = values.dropna()
    if pd.api.types.is_datetime64_any_dtype(values):
        form = "%Y-%m-%d" if (kept == kept.dt.normalize()).all() else "%Y-%m-%d %H:%M:%S"
        return lambda value: None if pd.isna(value) else value.strftime(form)
    if pd.api.types.is_bool_dtype(values) or not pd.api.types.is_numeric_dtype(values):
        return lambda value: None if pd.isna(value) else str(value)
    return lambda value: None if pd.isna(value) else str(int(value)) if value == int(value) else repr(float(value))


@cache
def _adult() -> pd.DataFrame:
    return pd.concat([pd.read_csv(DATA / f"adult_{part}.csv") for part in ("ori", "control")], ignore_index=True)


def _rand() -> pd.DataFrame:
    return load_rand_hie().drop(columns="person_id")


def visits() -> pd.DataFrame:
    """Visits of patients to a clinic: three on average, whose diagnoses, doctors and costs resemble each other."""
    random = random_of("visits")
    n = 1_500
    person = np.repeat(np.arange(n), random.poisson(VISITS_OF_A_PERSON - 1, n) + 1)
    ill, born, home = random.normal(size=n), random.integers(1930, 2010, n), random.integers(0, 25, n)
    severity = ill[person] + 0.5 * random.normal(size=len(person))
    return pd.DataFrame(
        {
            "patient": person,
            "born": born[person],
            "sex": random.choice(["f", "m"], n)[person],
            "town": np.array([f"Town-{number:02d}" for number in range(25)])[home[person]],
            "diagnosis": np.array(list("ABCDEFGHIJ"))[np.clip((severity + 2.5) * 2, 0, 9).astype(int)],
            "doctor": np.array([f"dr {number}" for number in range(8)])[
                (home[person] + random.integers(0, 3, len(person))) % 8
            ],
            "nights": random.poisson(np.exp(0.4 * severity)),
            "cost": np.round(np.exp(5 + 0.7 * severity + 0.3 * random.normal(size=len(person))), 1),
        }
    )


def registry() -> pd.DataFrame:
    """A register with missing values, dates, and texts of the kinds that tools write differently."""
    random = random_of("registry")
    n = 4_000
    age = np.clip(random.normal(50, 18, n), 0, 99)
    towns = [
        f"{front}-{back}"
        for front in ("Saint-Étienne", "Zürich", "Ōsaka", "L\u2019Aquila", "O'Fallon")
        for back in "abcdef"
    ]
    admitted = pd.Timestamp("2022-01-01") + pd.to_timedelta((700 * random.random(n)).astype(int), unit="D")
    seen = (pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 60, n), unit="D")).strftime("%Y-%m-%d")
    made = pd.DataFrame(
        {
            "zip": [f"0{1000 + 3 * int(number)}" for number in random.gamma(2, 20, n)],
            "town": random.choice(towns, n),
            "code": [str(number) for number in random.integers(11, 60, n)],
            "job": random.choice(["head nurse", "cook", "clerk (part-time)", "driver", "teacher"], n),
            "age": age.astype(int),
            "weight": np.round(random.normal(74, 13, n) * 2) / 2,
            "dose": [f"{value:.1f}" for value in np.round(random.gamma(4, 0.6, n), 1)],
            "admitted": admitted,
            "seen": seen,
            "emergency": age + random.normal(0, 20, n) > 55,
            "nights": random.poisson(np.exp(0.02 * age)),
        }
    )
    for name, share in (("job", 0.05), ("weight", 0.1), ("dose", 0.1), ("seen", 0.05), ("zip", 0.02)):
        made[name] = made[name].where(random.random(n) >= share)
    return made


def rated() -> pd.DataFrame:
    """Ratings of movies, of which few are popular: people of whom nothing is known but what they rated."""
    random = random_of("ratings")
    n, n_movies = 800, 60
    person = np.repeat(np.arange(n), random.integers(4, 18, n))
    popularity = 1 / (np.arange(n_movies) + 10.0)
    popularity /= popularity.sum()
    movies = [random.choice(n_movies, rows, replace=False, p=popularity) for rows in np.bincount(person)]
    return pd.DataFrame(
        {
            "customer": person,
            "movie": pd.Series([f"movie {number}" for number in range(n_movies)])[np.concatenate(movies)].to_numpy(),
            "stars": random.integers(1, 6, len(person)),
            "day": random.integers(0, 700, n)[person] + random.integers(0, 90, len(person)),
        }
    )


def _forty() -> pd.DataFrame:
    return wide(0, 2_000, N_WIDE)


TABLES: Mapping[str, Table] = {
    "adult": Table(
        _adult, (1_000, 500, 1_000), ("age", "sex", "race", "education_num", "hours_per_week"), ("occupation", "income")
    ),
    "rand": Table(_rand, (1_000, 500, 1_000), ("site", "age", "sex", "income"), ("self_rated_health", "doctor_visits")),
    "fair": Table(
        lambda: of_statsmodels("fair"), (1_000, 500, 1_000), ("age", "yrs_married", "children", "educ"), ("affairs",)
    ),
    "anes96": Table(lambda: of_statsmodels("anes96"), (350, 175, 350), ("age", "educ", "income"), ("vote", "PID")),
    "visits": Table(visits, (400, 200, 400), ("born", "sex", "town"), ("diagnosis", "cost"), "patient"),
    "registry": Table(registry, (900, 450, 900), ("zip", "town", "age", "admitted"), ("job", "dose")),
    "forty": Table(_forty, (250, 125, 250), ("c0", "c1", "c2", "c3"), ("c4", "c5")),
    "ratings": Table(rated, (300, 150, 200), ("movie", "stars", "day"), (), "customer", (LINKED, SEPARATE)),
}


def divided(name: str, size: float = 1.0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Return originals, control, people of whom as many records are released, and all others; nobody is in two."""
    table = TABLES[name]
    whole = table.make()
    whose = np.arange(len(whole)) if table.person is None else whole[table.person].to_numpy()
    people = random_of("divided", name).permutation(np.unique(whose))
    ends = np.cumsum([round(size * n) for n in table.n_people])
    parts = np.split(people, ends)
    return tuple(whole[np.isin(whose, part)].reset_index(drop=True) for part in parts)  # type: ignore[return-value]


def releases_of(name: str, size: float = 1.0) -> Mapping[str, Callable[[], "Synthetic | Anonymized"]]:
    """Return what makes each release of a table, by name; the last of each side can be admitted."""
    return {kind: partial(_synthetic, name, kind, size) for kind in SYNTHETIC} | {
        kind: partial(_anonymized, name, k, size) for kind, k in SMALLEST_CLASSES.items()
    }


def _copies(share: float) -> Callable[..., pd.DataFrame]:
    return lambda original, others, random: with_copies(others, original, share, (0, 0), random)


def _made_by(method: str) -> Callable[..., pd.DataFrame]:
    return lambda original, n, random: synthesize(
        original, method=method, n_records=n, seed=int(random.integers(2**30))
    )


def _interpolated(original: pd.DataFrame, n: int, random: np.random.Generator) -> pd.DataFrame:
    """Interpolate between records, at the precision of the originals, as a file does that is made to resemble them."""
    made = interpolated(original, n, random)
    for name in made.select_dtypes("float"):
        made[name] = made[name].round(_decimals(original[name]))
    return made


def _decimals(values: pd.Series) -> int:
    return next(n for n in range(10) if (values.dropna().round(n) == values.dropna()).all() or n == MOST_DECIMALS)


MODELS: Mapping[str, Callable[..., pd.DataFrame]] = {
    "CART": _made_by("cart"),
    "interpolated": _interpolated,
    "copula": _made_by("gaussian_copula"),
}
"""What draws records, of the originals, a number and a generator."""
MIXTURES: Mapping[str, Callable[..., pd.DataFrame]] = {
    "copies of 1 %": _copies(0.01),
    "copies of 5 %": _copies(0.05),
    "copies of 100 %": lambda original, others, random: original.sample(frac=1, random_state=random),  # noqa: ARG005
    "other people": lambda original, others, random: others,  # noqa: ARG005
}
"""What draws records, of the originals, other people and a generator."""
SYNTHETIC = ("copies of 1 %", "copies of 5 %", "copies of 100 %", "CART", "interpolated", "copula", "other people")


def _synthetic(name: str, kind: str, size: float) -> Synthetic:
    person = TABLES[name].person
    original, control, others, rest = divided(name, size)
    source = _source(pd.concat([original, control], ignore_index=True), name, {})
    learned, others, rest = (
        each.drop(columns=person, errors="ignore") if person else each for each in (original, others, rest)
    )

    def fresh(n: int) -> pd.DataFrame:
        random = random_of(name, "fresh", n)
        if n <= len(rest):
            return rest.sample(n, random_state=random).reset_index(drop=True)
        return MODELS["copula"](pd.concat([others, rest], ignore_index=True), n, random)

    def more(n: int) -> pd.DataFrame:
        return MODELS[kind](learned, n, random_of(name, kind, n))

    if kind in MODELS:
        return Synthetic(original, more(len(others)), control, person, more, fresh, source)
    made = MIXTURES[kind](learned, others, random_of(name, kind)).reset_index(drop=True)
    return Synthetic(original, made, control, person, None, fresh, source)


def _anonymized(name: str, k: int, size: float) -> Anonymized:
    table = TABLES[name]
    original, control, _, _ = divided(name, size)
    source = pd.concat([original, control], ignore_index=True)
    roles = dict.fromkeys(table.known, "quasi_identifier") | dict.fromkeys(table.sensitive, "sensitive")
    source = _source(source[[*roles, *([table.person] if table.person else [])]], name, roles)

    def again(changed: pd.DataFrame, **options: Any) -> Anonymization:
        return anonymize(
            changed,
            quasi_identifiers=table.known,
            sensitive=table.sensitive,
            k=k,
            subject=table.person,
            **{"n_threads": 1, **options},
        )

    admitted = source.contract.admit(source.table)
    return Anonymized(admitted, again(admitted), again, source)


def _source(rows: pd.DataFrame, name: str, roles: Mapping[str, str]) -> Source:
    """Declare rows of a table; columns without a role are quasi-identifiers."""
    columns = {
        column: {"type": _type_of(rows[column]), "role": roles.get(column, "quasi_identifier"), "nullable": True}
        for column in rows
    }
    person = TABLES[name].person
    if person is not None:
        columns[person] = {"type": "integer", "role": "direct_identifier", "person": True}
    return Source(rows, columns)


def _type_of(column: pd.Series) -> str:
    if pd.api.types.is_bool_dtype(column):
        return "boolean"
    if pd.api.types.is_datetime64_any_dtype(column):
        return "datetime"
    if pd.api.types.is_integer_dtype(column):
        return "integer"
    return (
        "float"
        if pd.api.types.is_numeric_dtype(column)
        else "category"
        if isinstance(column.dtype, pd.CategoricalDtype)
        else "text"
    )
