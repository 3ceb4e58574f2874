"""The figures equal a plain reference, and keep their promises on real data."""

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privacy_assets import assess_utility
from privacy_assets.examples.rand_hie import load_rand_hie
from privacy_assets.utility import assess, counted
from privacy_assets.utility.result import UtilityAssessment, worth_sentence
from tests.reference import utility as reference

FIGURES = ("utility_columns", "utility_pairs", "utility_counts", "utility_prediction", "utility")
SIZES = ["s", "m", "l", "xl"]
KINDS = {
    "small": (lambda r, n: pd.Series(r.integers(0, 4, n)), True),
    "large": (lambda r, n: pd.Series((r.integers(0, 40, n) ** 2) * (r.random(n) < 0.7)), True),
    "float": (lambda r, n: pd.Series(np.where(r.random(n) < 0.1, np.nan, np.round(r.normal(size=n), 1))), True),
    "nullable": (lambda r, n: pd.Series(r.integers(0, 3, n)).astype("Int64").where(r.random(n) < 0.9), True),
    "text": (lambda r, n: pd.Series(r.choice([*"abcdefghijklmn", None], n, p=[0.3, *[0.05] * 14])), False),
    "few": (lambda r, n: pd.Series(r.choice(["x", "y", "z"], n)), False),
    "boolean": (lambda r, n: pd.Series(r.random(n) < 0.3), False),
    "time": (lambda r, n: pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(r.integers(0, 30, n), "D")), True),
    "size": (lambda r, n: pd.Series(pd.Categorical(r.choice(SIZES, n), SIZES, ordered=True)), True),
    "constant": (lambda r, n: pd.Series(np.full(n, 7)), True),
    "missing": (lambda r, n: pd.Series([None] * n, dtype=object), False),
}


def plain(column):
    return [None if pd.isna(value) else value for value in column.astype(object)]


def related(kinds, n, seed):
    """Columns of these kinds, of which the later repeat earlier rows so that they go together."""
    random = np.random.default_rng(seed)
    base = random.integers(0, 6, n)
    columns = {}
    for i, kind in enumerate(kinds):
        make = KINDS[kind][0]
        prototype = make(np.random.default_rng(seed * 0 + i), 6)
        noise = make(random, n)
        taken = prototype.iloc[base].reset_index(drop=True)
        columns[f"{kind} {i}"] = noise.where(pd.Series(random.random(n) < 0.4), taken).astype(noise.dtype)
    return pd.DataFrame(columns)


def rows_of(table, finds, original, control):
    columns = []
    for name, find in finds.items():
        values, unseen = plain(table[name]), set()
        if not KINDS[name.split()[0]][1]:
            unseen = reference.unseen_of(plain(original[name]), plain(control[name]), values)
        columns.append([reference.UNSEEN if value in unseen else find(value) for value in values])
    return list(zip(*columns, strict=True))


def as_reference(judge, released):
    """Write what was drawn at random (queries, shuffled rows) in the bins of the reference."""
    table, names = judge.original, list(judge.original.columns)
    bins, finds, cuts = {}, {}, {}
    for name in names:
        is_ordered = KINDS[name.split()[0]][1]
        categories = SIZES if name.startswith("size") else None
        bins[name], finds[name], cuts[name] = reference.bins_of(plain(table[name]), is_ordered, categories)
    random = np.random.default_rng(judge.seed)
    codes = judge.grid.encode(judge.control, "control")
    is_ordered = [each.is_ordered for each in judge.grid.columns]
    plan = counted.make_plan(codes, judge.grid.n_bins, is_ordered, assess.N_QUERIES, random)
    own = judge.grid.encode(table, "original")
    orders = np.stack([random.permutation(np.sort(each)) for each in own])
    orders = orders[:, np.lexsort(orders)]
    label = [bins[name] for name in names]
    shuffled = [tuple(label[j][code] for j, code in enumerate(row)) for row in orders.T.tolist()]
    queries = [
        [(j, {label[j][b] for b in np.flatnonzero(kept)}) for j, kept in zip(query.columns, query.kept, strict=True)]
        for query in plan.queries
    ]
    # Groups of rows are those of an order by bins.
    in_order = [each.iloc[np.lexsort(judge.grid.encode(each, "release"))] for each in (released, judge.control, table)]
    sides = [rows_of(each, finds, table, judge.control) for each in in_order]
    flat = [reference.uniform(plain(table[name]), bins[name], cuts[name]) for name in names]
    return (*sides, shuffled), label, flat, queries


def without(rows, group):
    place = np.random.default_rng(len(rows)).permutation(len(rows)) % 10
    return [row for row, own in zip(rows, place, strict=True) if own != group]


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4),
    sizes=st.tuples(st.integers(12, 40), st.integers(12, 40), st.integers(12, 40)),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=25)
def test_figures_equal_the_plain_reference(kinds, sizes, seed):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(assess, "FEWEST_CONTROL", 1)
        patched.setattr(assess, "N_QUERIES", 20)
        original, released, control = (related(kinds, n, seed + i) for i, n in enumerate(sizes))
        judge = assess.Judge(original, control, seed=seed)
        found = judge.assess(released).scores
        sides, bins, flat, queries = as_reference(judge, released)
        expected = reference.figures(*sides, bins, flat, queries)
        n_checked = 0
        for name in FIGURES:
            if found[name] is not None:
                assert found[name] == pytest.approx(expected[name], rel=1e-6, abs=1e-6), name
                n_checked += 1
        if queries:
            errors = [reference.relative_count_error(sides[0], sides[1], query) for query in queries]
            assert found["median_count_error"] == pytest.approx(float(np.median(errors)), abs=1e-9)
        if n_checked:
            left_out = [
                reference.figures(*(without(side, g) for side in sides), bins, flat, queries) for g in range(10)
            ]
            for name in FIGURES:
                if found[name] is None:
                    continue
                margin = stats.t.ppf(0.975, 9) * reference.jackknife_error([each[name] for each in left_out])
                assert found[f"{name}_upper"] - found[name] == pytest.approx(margin, rel=1e-4, abs=1e-6), name
                assert found[name] - found[f"{name}_lower"] == pytest.approx(margin, rel=1e-4, abs=1e-6), name


def test_the_order_of_rows_changes_no_figure():
    kinds = sorted(KINDS)[:4]
    original, released, control = (related(kinds, n, seed) for seed, n in enumerate((400, 350, 320)))
    found = assess.Judge(original, control, n_queries=50).assess(released).scores
    moved = (each.sample(frac=1, random_state=7).reset_index(drop=True) for each in (original, control, released))
    original, control, released = moved
    again = assess.Judge(original, control, n_queries=50).assess(released).scores
    assert again == pytest.approx(found, rel=1e-9, nan_ok=True)
    assert found["utility_columns"] is not None


@pytest.fixture(scope="module")
def people():
    table = load_rand_hie().drop(columns="person_id").sample(frac=1, random_state=0, ignore_index=True)
    return table.iloc[:4_000].reset_index(drop=True), table.iloc[4_000:].reset_index(drop=True)


@pytest.fixture(scope="module")
def judge(people):
    return assess.Judge(*people)


@pytest.fixture(scope="module")
def of_originals(judge):
    return judge.assess(judge.original.sample(frac=1, random_state=1))


def test_originals_are_worth_exactly_1(of_originals):
    scores = of_originals.scores
    assert next(iter(scores)) == "utility"
    assert [scores[name] for name in FIGURES] == [1.0] * 5
    assert scores["worth_in_people"] == scores["n_originals"] == 4_000


def test_shuffled_columns_are_worth_nothing(judge):
    random = np.random.default_rng(1)
    scores = judge.assess(
        pd.DataFrame({name: random.permutation(judge.original[name]) for name in judge.original})
    ).scores
    assert abs(scores["utility"]) < 0.05
    assert scores["utility_lower"] < 0.05
    assert scores["utility_columns"] == pytest.approx(1)


def test_other_people_are_worth_as_much_as_the_originals(people):
    original, control = people
    fresh, control = control.iloc[:900], control.iloc[900:]
    scores = assess_utility(original.iloc[:900], fresh, control).scores
    assert scores["utility_lower"] < 1 < scores["utility_upper"]


def test_a_random_sample_is_worth_about_its_size(judge):
    for share in (0.1, 0.5):
        found = [
            judge.assess(judge.original.sample(frac=share, random_state=seed)).scores["worth_in_people"]
            for seed in range(3)
        ]
        assert 0.5 < np.median(found) / (share * 4_000) < 2


def test_lost_parts_add_up_and_name_what_was_shuffled(judge, of_originals):
    broken = judge.original.copy()
    best = of_originals.columns.set_index("column")["explained_of_originals"].idxmax()
    broken[best] = np.random.default_rng(0).permutation(broken[best])
    found = judge.assess(broken)
    assert found.columns["column"].iloc[0] == best
    assert found.columns["lost"].sum() == pytest.approx(1 - found.scores["utility_prediction"])
    assert found.pairs["lost"].sum() == pytest.approx(1 - found.scores["utility_pairs"])
    assert best in set(found.pairs.iloc[0][["one", "other"]])
    lacking = judge.assess(judge.original.drop(columns=best))
    assert lacking.settings["lacked_columns"] == [best]
    assert all(lacking.scores[figure] < 0.99 for figure in FIGURES)


def test_the_same_seed_gives_the_same_figures_and_survives_storage(judge):
    first, second = (judge.assess(judge.original.head(500)) for _ in range(2))
    artifact = first.to_artifact()
    assert artifact.digest == second.to_artifact().digest
    again = UtilityAssessment.from_artifact(artifact)
    assert dict(again.scores) == dict(first.scores)
    assert again.sentence == first.sentence != ""
    assert all(isinstance(value, int | float) and math.isfinite(value) for value in first.scores.values())


@pytest.mark.parametrize(
    ("people", "words"),
    [
        (4_712, "sample of 4,700 of"),
        (15.2, "sample of 15 of"),
        (0.4, "less than"),
        (20_000, "as much as the originals"),
    ],
)
def test_the_sentence_has_two_digits(people, words):
    assert words in worth_sentence(people, 20_000)
