from typing import ClassVar

import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.synthesis.synthesize import (
    SYNTHESIZERS,
    Synthesizer,
    make_synthetic_records,
    synthesize,
    synthesizer_class,
)
from tests.engines import ShufflingEngine
from tests.extras import CART
from tests.people import every_kind

METHODS = [{"cart": CART}.get(name, name) for name in sorted(SYNTHESIZERS)]


class Echo:
    """Returns what it was told to."""

    name = "echo"
    settings: ClassVar[dict] = {}

    def __init__(self, change=lambda table: table):
        self.change = change

    def fit(self, table, *, seed):
        self.table = table
        return self

    def sample(self, n_records, *, seed):
        return self.change(self.table.head(n_records))


@pytest.mark.parametrize("method", METHODS)
def test_every_kind_of_column_comes_back_in_its_own_type_and_range(method):
    original = every_kind()
    synthetic = synthesize(original, method=method, seed=3)
    pd.testing.assert_series_equal(synthetic.dtypes, original.dtypes)
    assert list(synthetic.index) == list(range(len(original)))
    for name in original.columns.difference(["nothing", "nobody", "grade", "site", "site_or_none"]):
        present = original[name].dropna()
        assert synthetic[name].dropna().between(present.min(), present.max()).all(), name
    for name in ("town", "town_or_none", "objects", "grade", "site", "site_or_none", "adult", "adult_or_none"):
        assert set(synthetic[name].dropna()) <= set(original[name].dropna()), name


@pytest.mark.parametrize("method", METHODS)
def test_missing_stays_about_as_frequent(method):
    original = every_kind(2000)
    synthetic = synthesize(original, method=method)
    assert (synthetic.isna().mean() - original.isna().mean()).abs().max() < 0.05
    assert synthetic["nothing"].isna().all() and synthetic["nobody"].isna().all()


@pytest.mark.parametrize("method", METHODS)
def test_the_seed_decides_every_draw(method):
    original = every_kind()
    once, again, other = (synthesize(original, method=method, seed=seed) for seed in (5, 5, 6))
    pd.testing.assert_frame_equal(once, again)
    assert not once.equals(other)


@pytest.mark.parametrize("method", METHODS)
def test_the_original_is_left_as_it_was(method):
    original = every_kind(50).set_index(np.arange(50) * 2)
    before = original.copy(deep=True)
    synthesize(original, method=method)
    pd.testing.assert_frame_equal(original, before)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_records", [1, 2, 700])
def test_any_number_of_records_can_be_made(method, n_records):
    assert len(synthesize(every_kind(60), method=method, n_records=n_records)) == n_records


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("name", list(every_kind(2)))
def test_two_records_of_a_single_column_are_enough(method, name):
    original = every_kind(2)[[name]]
    made = synthesize(original, method=method, n_records=20, settings={"min_atom": 1})
    assert made.dtypes.equals(original.dtypes)


@pytest.mark.parametrize("method", METHODS)
def test_two_records_of_every_kind_are_enough(method):
    original = every_kind(2)
    made = synthesize(original, method=method, n_records=20, settings={"min_atom": 1})
    assert made.dtypes.equals(original.dtypes)


@pytest.mark.parametrize("method", METHODS)
def test_next_to_an_engine_only_the_copula_learns_from_any_number_of_rows(method, monkeypatch):
    monkeypatch.setattr("privacy_assets.synthesis.synthesize.MOST_ROWS_HERE", 59)
    original, engine = every_kind(60), ShufflingEngine(rows_per_task=20)
    assert len(synthesize(original.head(59), method=method, engine=engine)) == 59
    assert len(synthesize(original, method=method, engine=ShufflingEngine(rows_per_task=None))) == 60
    if method == "gaussian_copula":
        assert len(synthesize(original, method=method, engine=engine)) == 60
        return
    with pytest.raises(InvalidTableError, match="takes at most 59 rows next to one; the table has 60"):
        synthesize(original, method=method, engine=engine)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("n_rows", "found"), [(0, "0 records"), (1, "1 record:")])
def test_fewer_than_two_records_cannot_be_learned_from(method, n_rows, found):
    with pytest.raises(InvalidTableError, match=f"cannot learn from {found}.*at least 2"):
        synthesize(every_kind(5).head(n_rows), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_a_table_without_columns_cannot_be_learned_from(method):
    with pytest.raises(InvalidTableError, match="no columns"):
        synthesize(pd.DataFrame(index=range(3)), method=method)


@pytest.mark.parametrize("method", METHODS)
def test_columns_of_unknown_kinds_are_all_named_without_their_values(method):
    table = pd.DataFrame({"a": [1, 2], "b": ["SECRET", 2], "c": pd.to_timedelta([1, 2]), "d": [1j, 2j]})
    with pytest.raises(InvalidTableError, match=r"'b': 'object', 'c': 'timedelta64.*'d': 'complex128'") as raised:
        synthesize(table, method=method)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("method", METHODS)
def test_infinite_values_are_counted_and_refused(method):
    table = pd.DataFrame({"a": [np.inf, -np.inf, 1.0], "b": [1.0, 2.0, np.inf], "c": [1, 2, 3]})
    with pytest.raises(InvalidTableError, match=r"{'a': 2, 'b': 1}"):
        synthesize(table, method=method)


def test_repeated_column_names_are_refused():
    with pytest.raises(InvalidTableError, match="1 are repeated"):
        synthesize(pd.DataFrame([[1, 2], [3, 4]], columns=["a", "a"]))


def test_an_unknown_method_lists_those_that_exist():
    with pytest.raises(InvalidSettingError, match=r"no synthesizer named 'ctgan'.*\['cart', .*'smooth_cart'\]"):
        synthesize(every_kind(5), method="ctgan")


def test_unknown_settings_list_those_that_exist():
    with pytest.raises(InvalidSettingError, match=r"no settings \['depth', 'leaf'\].*'min_samples_leaf'"):
        synthesize(every_kind(5), method="cart", settings={"leaf": 3, "depth": 1})


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("cart", {"min_samples_leaf": 0}),
        ("cart", {"max_depth": "deep"}),
        ("cart", {"min_atom": 0}),
        ("gaussian_copula", {"min_atom": True}),
        ("gaussian_copula", {"max_discrete": -1}),
        ("gaussian_copula", {"smoothing": -0.5}),
        ("gaussian_copula", {"smoothing": float("inf")}),
        ("smooth_cart", {"min_people": 0}),
        ("smooth_cart", {"min_atom": 2.5}),
        ("smooth_cart", {"smoothing": -1}),
        ("smooth_cart", {"smoothing": float("nan")}),
    ],
)
def test_settings_out_of_range_are_named(method, settings):
    with pytest.raises(InvalidSettingError, match=f"`{next(iter(settings))}` of '{method}'"):
        synthesize(every_kind(5), method=method, settings=settings)


@pytest.mark.parametrize("arguments", [{"n_records": 0}, {"n_records": 1.5}, {"seed": -1}, {"seed": "a"}])
def test_numbers_out_of_range_are_named(arguments):
    with pytest.raises(InvalidSettingError, match=f"`{next(iter(arguments))}` of 'synthesize'"):
        synthesize(every_kind(5), **arguments)


def test_any_object_that_follows_the_protocol_can_be_used():
    original = every_kind(9)
    assert isinstance(Echo(), Synthesizer)
    pd.testing.assert_frame_equal(synthesize(original, method=Echo(), n_records=4), original.head(4))


def test_an_object_that_does_not_follow_the_protocol_is_refused():
    with pytest.raises(InvalidSettingError, match=r"lacks \['name', 'settings', 'fit', 'sample'\]"):
        synthesize(every_kind(5), method=object())


def test_settings_belong_to_the_object_when_one_is_given():
    with pytest.raises(InvalidSettingError, match="Pass them to the object"):
        synthesize(every_kind(5), method=Echo(), settings={"depth": 1})


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda table: table.to_numpy(), "'echo' returned a ndarray"),
        (lambda table: table.drop(columns="age").assign(more=1), r"missing \['age'\], and 1 unknown"),
        (lambda table: table[table.columns[::-1]], "in their order"),
        (lambda table: table.head(2), "returned 2 records; expected 5"),
        (lambda table: table.astype({"age": float}), "'age': 'float64 instead of int64'"),
    ],
)
def test_output_that_is_not_such_a_table_is_refused(change, reason):
    with pytest.raises(InvalidTableError, match=reason):
        synthesize(every_kind(5), method=Echo(change))


def test_a_type_error_shows_no_categories():
    original = pd.DataFrame({"a": pd.Categorical(["SECRET", "HIDDEN"])})
    other = Echo(lambda table: table.assign(a=pd.Categorical(["SECRET", None])))
    with pytest.raises(InvalidTableError, match="category") as raised:
        synthesize(original, method=other)
    assert "SECRET" not in str(raised.value)


@pytest.mark.parametrize("method", METHODS)
def test_sampling_before_fitting_is_refused(method):
    with pytest.raises(InvalidSettingError, match="before it is fitted"):
        synthesizer_class(method)().sample(3, seed=0)


@pytest.mark.parametrize("method", METHODS)
def test_names_and_settings_are_said_for_the_manifest(method):
    made = synthesizer_class(method)()
    assert made.name == method and dict(made.settings)


@pytest.mark.parametrize("method", METHODS)
def test_learning_is_ended_between_two_columns(method):
    table, called = every_kind(60)[["age", "height", "town", "grade"]], []

    def stop():
        called.append(len(called))
        if len(called) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_synthetic_records(table, method, None, 0, None, None, stop)
    assert len(called) == 3
    make_synthetic_records(table, method, None, 0, None, None, lambda: called.append(len(called)))
    assert len(called) >= 3 + len(table.columns)
