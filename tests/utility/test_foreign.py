"""Copies that are changed one to one within their own values are foreign, and no honest table is."""

import numpy as np
import pandas as pd
import pytest

from privacy_assets import synthesize
from privacy_assets.utility.foreign import why_foreign
from tests.extras import CART

NUMBERS, LABELS = ["age", "visits", "income", "score"], ["region", "plan", "job"]


def people(n, seed):
    random = np.random.default_rng(seed)
    latent = random.normal(size=n)
    return pd.DataFrame(
        {
            "age": (18 + random.gamma(4, 8, n)).round().clip(18, 95).astype(int),
            "visits": random.poisson(np.exp(latent * 0.8)),
            "income": (np.exp(latent + 9) / 100).round() * 100.0,
            "score": (latent * 2 + random.normal(size=n)).round(1),
            "region": random.choice(["north", "south", "east", "west"], n, p=[0.5, 0.3, 0.15, 0.05]),
            "plan": np.where(latent > 1, "gold", np.where(latent > -0.5, "plain", "none")),
            "job": random.choice([f"job {i}" for i in range(12)], n, p=np.arange(1, 13) / 78),
        }
    )


def reflected(table):
    return table.assign(**{name: table[name].min() + table[name].max() - table[name] for name in NUMBERS})


def rotated(table):
    changed = {}
    for name in LABELS:
        labels = sorted(table[name].unique())
        changed[name] = table[name].map(dict(zip(labels, [*labels[1:], labels[0]], strict=True)))
    return table.assign(**changed)


def relabelled(table):
    """Exchange the most frequent with the rarest value, and so on, where frequent values are known again."""
    changed = {}
    for name in [*LABELS, "visits"]:
        values = table[name].value_counts().index.tolist()
        changed[name] = table[name].map(dict(zip(values, values[::-1], strict=True)))
    return table.assign(**changed)


def numbers_by(change):
    return lambda table: table.assign(**{name: change(table[name]) for name in NUMBERS})


def logarithms(column):
    return np.log1p(column - column.min())


FOREIGN = {
    "reflected and rotated": lambda table: rotated(reflected(table)),
    "reflected": reflected,
    "rotated": rotated,
    "scaled and rotated": lambda table: rotated(numbers_by(lambda column: column * 0.97)(table)),
    "logarithms": numbers_by(logarithms),
    "logarithms and rotated": lambda table: rotated(numbers_by(logarithms)(table)),
    "roots": numbers_by(lambda column: np.sqrt(column - column.min())),
    "relabelled one to one": relabelled,
    "ranks": numbers_by(lambda column: column.rank(pct=True)),
    "standardized": numbers_by(lambda column: (column - column.mean()) / column.std()),
    "one column reflected": lambda table: table.assign(
        income=table["income"].min() + table["income"].max() - table["income"]
    ),
    "columns exchanged": lambda table: table.assign(income=table["age"] * 1.0, age=(table["income"] / 100).astype(int)),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("control", [people(800, 1), people(150, 1), None], ids=["control", "small control", "none"])
def test_copies_that_are_changed_one_to_one_are_foreign(name, control):
    said = why_foreign(people(1500, 0), FOREIGN[name](people(1500, 0)), control)
    assert said.startswith("The records cannot be compared with people: ")
    assert "Farthest are [" in said
    assert "gold" not in said


def test_the_farthest_columns_are_named_first():
    original = people(1500, 0)
    synthetic = original.assign(income=reflected(original)["income"])
    said = why_foreign(original, synthetic, people(800, 1))
    assert "the columns ['income'] are farther from people than uniform ones. Farthest are ['income', " in said


def honest(method, original):
    random = np.random.default_rng(5)
    if method == "others":
        return people(len(original), 2)
    if method == "independent":
        return pd.DataFrame({name: random.permutation(column.to_numpy()) for name, column in original.items()})
    if method == "uniform":
        return pd.DataFrame({name: random.choice(column.unique(), len(column)) for name, column in original.items()})
    if method == "collapsed":
        return original.assign(job="job 0", plan="gold", visits=9)
    if method == "few":
        return people(100, 2)
    return synthesize(original, method=method, seed=0)


@pytest.mark.parametrize(
    "method", ["others", "independent", "collapsed", "few", "gaussian_copula", CART, "smooth_cart"]
)
@pytest.mark.parametrize("n", [400, 2000])
def test_no_honest_table_is_foreign(method, n):
    original = people(n, 0)
    assert why_foreign(original, honest(method, original), people(n // 2, 1)) == ""


@pytest.mark.parametrize("n_released", [60, 180, 3000])
@pytest.mark.parametrize("n_control", [0, 60, 400])
def test_records_of_columns_that_do_not_depend_on_each_other_are_not_foreign(n_control, n_released):
    def independent(n, seed):
        random = np.random.default_rng(seed)
        return pd.DataFrame(
            {
                "cost": random.integers(0, 3000, n) / 10,
                "age": random.integers(0, 90, n),
                "job": random.choice(list("abcd"), n, p=[0.5, 0.3, 0.15, 0.05]),
                "plan": random.choice(["gold", "none"], n),
            }
        )

    control = independent(n_control, 1) if n_control else None
    for seed in range(5):
        for n_original in (240, 1000):
            assert why_foreign(independent(n_original, seed), independent(n_released, 10 + seed), control) == ""


@pytest.mark.parametrize("n_released", [20, 60, 150])
def test_few_records_of_an_honest_synthesizer_are_not_foreign(n_released):
    random = np.random.default_rng(0)
    for seed in range(5):
        original, others = people(1000, seed), people(n_released, 20 + seed)
        shuffled = pd.DataFrame({name: random.permutation(column.to_numpy()) for name, column in others.items()})
        for released in (others, shuffled):
            assert why_foreign(original, released, people(400, 40 + seed)) == ""


def test_tables_too_small_to_judge_are_not_called_foreign():
    original = people(100, 0)
    assert why_foreign(original, reflected(original), people(100, 1)) == ""


def test_records_are_compared_in_any_spelling():
    original, control = people(1500, 0), people(800, 1)
    written = people(1500, 2).assign(plan=lambda table: table["plan"].str.upper() + " ")
    assert why_foreign(original, written.astype({"region": "category"}), control) == ""
    as_codes = [
        table.assign(code=pd.factorize(table["region"], sort=True)[0] * 100 + 100) for table in (original, control)
    ]
    texts = [table.assign(code=table["code"].astype(str)) for table in as_codes]
    exponents = texts[0].assign(code=as_codes[0]["code"].map(lambda code: f"{code // 100}e2"))
    assert why_foreign(texts[0], exponents, texts[1]) == ""
    changed = rotated(reflected(original))
    assert why_foreign(original, changed.assign(**{name: changed[name].str.upper() for name in LABELS}), control)


def reflected_numbers(table):
    return table.apply(lambda own: own.min() + own.max() - own if own.dtype.kind in "if" else own)


def rotated_labels(table):
    """Replace each label by the next one."""
    return table.apply(lambda own: own if own.dtype.kind in "if" else own.map(dict(zip(LETTERS, NEXT, strict=True))))


LETTERS = list("ABCDEFGHI")
NEXT = [*LETTERS[1:], LETTERS[0]]


def both(table):
    return rotated_labels(reflected_numbers(table))


@pytest.mark.parametrize("change", [reflected_numbers, both])
def test_a_few_changed_copies_beside_other_people_are_no_people(change):
    """Of everybody's margins they are a twentieth; each of them has rare values in many columns."""
    original = skewed(4000, 0)
    changed = change(original)
    for share in (0.03, 0.05, 0.2):
        n = int(share * len(original))
        released = pd.concat([changed[:n], skewed(len(original) - n, 2)], ignore_index=True)
        said = why_foreign(original, released, skewed(2000, 1))
        assert "% of the records have rarer values in more columns than 99.9% of people" in said


def skewed(n, seed):
    """Ten columns of frequent and rare values that depend on each other."""
    random = np.random.default_rng(seed)
    cause = random.normal(size=(n, 1))
    values = np.floor(np.exp(0.4 * cause + 0.7 * random.normal(size=(n, 10)))).clip(0, 8).astype(int)
    numbers = pd.DataFrame(values[:, :6]).add_prefix("number ")
    return numbers.join(pd.DataFrame(np.array(LETTERS)[values[:, 6:]]).add_prefix("label "))


@pytest.mark.parametrize("n_control", [0, 120, 400, 2000])
def test_people_themselves_are_likely_with_any_number_of_judges(n_control):
    for seed in range(12):
        control = skewed(n_control, 100 + seed) if n_control else None
        original = skewed(1500, seed)
        shuffled = pd.DataFrame(
            {name: np.random.default_rng(seed).permutation(column) for name, column in original.items()}
        )
        for released in (skewed(1500, 200 + seed), skewed(200, 300 + seed), shuffled):
            assert why_foreign(original, released, control) == ""
