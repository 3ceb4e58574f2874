"""People and their rows: nothing is learned from few people, keys fit, and what lasts about a person is kept."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.engine.local import LocalEngine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.synthesis import sequences
from privacy_assets.synthesis.sequences import Sequences, donor_weights
from privacy_assets.synthesis.smooth_cart import SmoothCart
from privacy_assets.synthesis.synthesize import synthesize
from tests.examples import examples
from tests.people import every_kind
from tests.related import clinic, of_visits, with_lines


def with_every_kind(n=120, seed=0, order="day"):
    random = np.random.default_rng(seed)
    whose = np.sort(random.integers(0, n, 3 * n))
    rows = every_kind(3 * n, seed).drop(columns=["nobody"]).assign(key=whose)
    people = pd.DataFrame({"key": np.arange(n), "born": random.integers(1930, 2000, n)})
    return RelatedTables(people, {"rows": Child(rows, key="key", order=order)}, person="key")


@pytest.mark.parametrize("order", ["age", "height", "day", "moment", "small", None])
def test_synthetic_tables_have_the_columns_and_types_of_the_originals(order):
    tables = with_every_kind(order=order)
    made = synthesize(tables, seed=1)
    rows, like = made.children["rows"].table, tables.children["rows"].table
    assert list(rows) == list(like)
    assert {n: d for n, d in rows.dtypes.items() if n != "key"} == {n: d for n, d in like.dtypes.items() if n != "key"}
    assert list(made.people) == list(tables.people)
    assert made.people["key"].tolist() == list(range(1, 121))
    assert set(rows["key"]) <= set(range(1, 121))
    if order is not None:
        assert like[order].min() <= rows[order].min() <= rows[order].max() <= like[order].max()
        assert rows.groupby("key")[order].apply(lambda own: own.is_monotonic_increasing).all()
    if order in ("day", "height"):  # Gaps add to moments of the precision of the originals.
        known = like[order].dt.normalize() if order == "day" else like[order].round(1)
        assert known.equals(like[order])
        assert (rows[order].dt.normalize() if order == "day" else rows[order].round(1)).equals(rows[order])


def test_arrow_moments_stay_arrow_moments():
    tables = clinic(200)
    visits = tables.children["visits"].table.astype({"date": "timestamp[us][pyarrow]"})
    made = synthesize(of_visits(tables, table=visits))
    assert made.children["visits"].table.dtypes["date"] == visits.dtypes["date"]


def test_the_seed_decides_and_the_order_of_storage_of_people_does_not_leave():
    tables = clinic(300)
    one, again, other = (synthesize(tables, seed=seed) for seed in (1, 1, 2))
    for name in ("visits", "drugs"):
        assert one.children[name].table.equals(again.children[name].table)
        assert not one.children[name].table.equals(other.children[name].table)
    assert len(synthesize(tables, n_records=17).people) == 17


def leaf_of(tree, known):
    node = 0
    while tree.feature[node] >= 0:
        node = int(tree.left[node]) + (known[tree.feature[node]] > tree.threshold[node])
    return node


@settings(max_examples=examples(30), deadline=None)
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(40, 200),
    min_people=st.integers(1, 30),
    smoothing=st.sampled_from([0.0, 1.0, 3.0]),
    is_deep=st.booleans(),
)
def test_no_leaf_has_fewer_different_people_than_were_asked_for(seed, n, min_people, smoothing, is_deep):
    """The rows that a tree learns are caught where they come in, and walked down one by one."""
    caught, learn = [], sequences.learn_step

    def catch(known, target, whose, is_learned, cart):
        step = learn(known, target, whose, is_learned, cart)
        caught.append((np.array(known).T.tolist(), whose.tolist(), is_learned.tolist(), step))
        return step

    sequences.learn_step = catch
    tables = with_lines(clinic(n, seed)) if is_deep else clinic(n, seed)
    try:
        Sequences(tables, SmoothCart(min_people=min_people, smoothing=smoothing, min_atom=1), seed=seed)
    except InvalidTableError as refused:
        assert "Expected at least" in str(refused)
    finally:
        sequences.learn_step = learn
    of_people = [sorted(own.tolist()) for own in tables.whose.values()]
    for known, whose, is_learned, step in caught:
        assert whose in of_people
        rows = [i for i, learned in enumerate(is_learned) if learned]
        people = len({whose[i] for i in rows})
        least = max(min_people, -(-smoothing * people**0.5 // 1))
        in_leaf = {}
        for i in rows:
            in_leaf.setdefault(leaf_of(step.tree, known[i]), set()).add(whose[i])
        assert len(in_leaf) == 1 or min(map(len, in_leaf.values())) >= least
        # Nothing is drawn from a node in which nobody is.
        assert {int(node) for node in np.flatnonzero(step.donors.sum(axis=1))} == set(in_leaf)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 14)), min_size=1, max_size=150), st.integers(0, 60))
def test_no_person_has_more_than_a_tenth_of_a_leaf(pairs, n_more):
    pairs += [(0, 3)] * n_more
    leaves, whose = (np.array(own, np.int64) for own in zip(*sorted(pairs, key=lambda pair: pair[1]), strict=True))
    weights = donor_weights(leaves, whose)
    for leaf in set(leaves.tolist()):
        total, n_people = weights[leaves == leaf].sum(), len(set(whose[leaves == leaf].tolist()))
        each = {p: weights[(leaves == leaf) & (whose == p)] for p in set(whose[leaves == leaf].tolist())}
        assert max(own.sum() for own in each.values()) <= total / min(10, n_people) + 1e-9
        for own in each.values():
            assert (own == own[0]).all()
            assert 0 < own[0] <= 1
            # Only who would have too much counts less.
            assert own[0] == 1 or own.sum() == pytest.approx(total / min(10, n_people))


def test_rows_of_a_person_resemble_each_other_as_much_as_the_originals():
    """Diagnoses and costs last: drawn row by row without regard to the person, both would be lost."""
    tables = clinic(1500, seed=3)
    made = synthesize(tables, seed=0)

    def unchanged_and_correlated(own):
        visits = own.children["visits"].table.sort_values(["patient", "date"], kind="stable")
        is_next = (visits["patient"] == visits["patient"].shift()).to_numpy()
        same = (visits["diagnosis"] == visits["diagnosis"].shift())[is_next].mean()
        costs = np.log(visits["cost"])
        return same, np.corrcoef(costs[is_next], costs.shift()[is_next])[0, 1]

    real, synthetic = unchanged_and_correlated(tables), unchanged_and_correlated(made)
    assert real[0] > 0.5
    assert real[1] > 0.6
    assert synthetic == pytest.approx(real, abs=0.12)  # Drawn without the rows before, costs have 0.04.
    counts = [Counter(np.bincount(own.whose["visits"], minlength=1500).tolist()) for own in (tables, made)]
    assert sum(abs(counts[0][n] - counts[1][n]) for n in range(60)) / 2 / 1500 < 0.06


def test_rows_of_rows_fit_their_rows_and_depend_on_them():
    """Items depend on the diagnosis of the visit: drawn by the person alone, this would be lost."""
    tables = with_lines(clinic(1200, seed=4))
    made = synthesize(tables, seed=0)
    for name, child in made.children.items():
        like = tables.children[name].table
        assert list(child.table) == list(like)
        numbers = set(child.numbers)
        types = [{n: d for n, d in own.dtypes.items() if n not in numbers} for own in (child.table, like)]
        assert types[0] == types[1]
    visits, lines = (made.children[name].table for name in ("visits", "lines"))
    assert visits["visit"].tolist() == list(range(1, len(visits) + 1))
    assert set(lines["visit"]) <= set(visits["visit"])
    assert lines.groupby("visit")["line"].apply(lambda own: own.is_monotonic_increasing).all()

    def usual_and_counts(own):
        visits, lines = (own.children[name].table for name in ("visits", "lines"))
        joined = lines.merge(visits, on="visit")
        counts = np.bincount(own.above["lines"], minlength=len(visits))
        shares = np.bincount(np.minimum(counts, 9), minlength=10) / len(visits)
        is_usual = joined["diagnosis"].map(dict(zip("abcdef", "uvwxyz", strict=True))) == joined["item"]
        return is_usual.mean(), np.corrcoef(joined["price"], joined["diagnosis"].map(ord))[0, 1], shares

    real, synthetic = usual_and_counts(tables), usual_and_counts(made)
    assert real[0] > 0.8
    assert synthetic[0] == pytest.approx(real[0], abs=0.1)  # By chance, it is 0.2.
    assert synthetic[1] > real[1] / 2  # By chance, it is 0.
    assert np.abs(synthetic[2] - real[2]).sum() / 2 < 0.05


@pytest.mark.parametrize("dtype", ["datetime64[s]", "datetime64[ns]", "timestamp[us][pyarrow]"])
def test_rows_that_follow_from_a_row_do_not_come_before_it(dtype):
    """Every line has a day at or after its visit's, whose days have a unit of their own."""
    tables = with_lines(clinic(300, seed=4))
    lines, random = tables.children["lines"].table, np.random.default_rng(1)
    visits = tables.children["visits"].table
    delay = pd.to_timedelta(random.integers(0, 4, len(lines)), unit="D")
    days = visits["date"].iloc[tables.above["lines"]].reset_index(drop=True) + delay
    lines = replace(tables.children["lines"], table=lines.assign(line=days.astype(dtype)))
    made = synthesize(replace(tables, children={**tables.children, "lines": lines}))
    visits, lines = (made.children[name].table for name in ("visits", "lines"))
    since = lines["line"].astype("datetime64[s]") - visits["date"].iloc[made.above["lines"]].reset_index(drop=True)
    assert lines["line"].dtype == dtype
    assert since.min() >= pd.Timedelta(0)
    assert since.quantile(0.5) <= pd.Timedelta(days=5)
    assert (since.dt.total_seconds() % 86_400 == 0).all()


def test_what_few_people_have_in_many_rows_of_rows_is_redrawn():
    tables = with_lines(clinic(300))
    lines = tables.children["lines"].table
    few = np.isin(tables.whose["lines"], np.argsort(np.bincount(tables.whose["lines"]))[-3:])
    assert lines.loc[few, "visit"].nunique() > 15
    lines = lines.assign(item=lines["item"].where(~few, "of three people"))
    children = {**tables.children, "lines": replace(tables.children["lines"], table=lines)}
    made = synthesize(replace(tables, children=children))
    assert set(made.children["lines"].table["item"]) == set("uvwxyz")


def test_two_levels_are_made_by_the_seed_and_with_any_order_of_children():
    tables = with_lines(clinic(200))
    one, again, other = (synthesize(tables, seed=seed) for seed in (1, 1, 2))
    assert list(one.children) == ["lines", "visits"]
    assert one.content == again.content
    assert one.content != other.content
    turned = replace(tables, children=dict(reversed(tables.children.items())))
    assert synthesize(turned, seed=1).children["lines"].table.equals(one.children["lines"].table)


def test_numbers_of_rows_may_be_texts_and_are_numbers_once_they_are_made():
    tables = with_lines(clinic(200))
    as_texts = tables.map(lambda _, own: own.assign(visit="v" + own["visit"].astype(str)) if "visit" in own else own)
    assert synthesize(as_texts, seed=1).content == synthesize(tables, seed=1).content


def test_a_child_of_rows_without_order_or_with_few_people_is_made_or_refused():
    tables = with_lines(clinic(200))
    lines, visits = tables.children["lines"], tables.children["visits"]
    unordered = {"lines": replace(lines, order=None), "visits": replace(visits, order=None)}
    made = synthesize(replace(tables, children=unordered))
    assert len(made.children["lines"].table) > 100
    one_each = lines.table.drop_duplicates("visit")
    made = synthesize(replace(tables, children={**tables.children, "lines": replace(lines, table=one_each)}))
    assert np.bincount(made.above["lines"]).max() == 1
    many = pd.concat([lines.table, lines.table.iloc[np.zeros(100_000, int)]], ignore_index=True)
    with pytest.raises(InvalidTableError, match="Child 'lines' has more than 2,000 rows of a person or of a row above"):
        synthesize(replace(tables, children={**tables.children, "lines": replace(lines, table=many)}))
    few = lines.table[tables.whose["lines"] < 12]
    with pytest.raises(InvalidTableError, match=r"Child 'lines' has (rows of|several rows of only) \d+ people"):
        synthesize(replace(tables, children={**tables.children, "lines": replace(lines, table=few)}))


def test_soft_leaves_move_towards_what_splits_have_in_common():
    tables = clinic(600, seed=3)
    made, soft = (synthesize(tables, settings={"soft_leaves": own}) for own in (False, True))
    assert not made.children["visits"].table.equals(soft.children["visits"].table)
    learned = Sequences(tables, SmoothCart(soft_leaves=True), seed=0)._rows["visits"]
    plain = Sequences(tables, SmoothCart(), seed=0)._rows["visits"]
    # A split must also pay for the cuts among which it was chosen.
    n_leaves = [sum(len(step.tree.feature) for step in own.changes.values()) for own in (learned, plain)]
    assert n_leaves[0] < n_leaves[1]


def test_what_never_changes_within_a_person_never_changes():
    tables = clinic(300)
    visits = tables.children["visits"].table
    own = visits["patient"].map(dict(zip(tables.people["patient"], np.arange(300) % 3, strict=True)))
    made = synthesize(of_visits(tables, table=visits.assign(ward=own)))
    rows = made.children["visits"].table
    assert rows["ward"].nunique() == 3
    assert (rows.groupby("patient")["ward"].nunique() == 1).all()


def test_moments_may_be_equal_and_rows_need_no_order():
    tables = clinic(200)
    same = of_visits(tables, table=tables.children["visits"].table.assign(date=pd.Timestamp("2020-02-03")))
    made = synthesize(same)
    assert (made.children["visits"].table["date"] == pd.Timestamp("2020-02-03")).all()
    assert len(synthesize(of_visits(tables, order=None)).children["visits"].table) > 200


def test_rare_texts_are_redrawn_in_both_tables():
    tables = clinic(300)
    visits = tables.children["visits"].table
    rare = visits.assign(diagnosis=visits["diagnosis"].where(np.arange(len(visits)) >= 3, "of nobody else"))
    people = tables.people.assign(sex=tables.people["sex"].where(np.arange(300) >= 3, "of three"))
    made = synthesize(RelatedTables(people, {"visits": Child(rare, key="patient", order="date")}, "patient"))
    assert set(made.people["sex"]) == {"female", "male"}
    assert "of nobody else" not in set(made.children["visits"].table["diagnosis"])


def test_a_few_people_with_rows_or_with_several_are_refused():
    tables = clinic(300)
    visits = tables.children["visits"].table
    with pytest.raises(InvalidTableError, match="Child 'visits' has rows of 0 people"):
        synthesize(of_visits(tables, table=visits.head(0)))
    with pytest.raises(InvalidTableError, match="Child 'visits' has rows of 19 people. Expected at least 20"):
        synthesize(of_visits(tables, table=visits.drop_duplicates("patient").head(19)))
    first = visits.drop_duplicates("patient")
    assert len(synthesize(of_visits(tables, table=first)).children["visits"].table)
    more = pd.concat([first, first.head(5)], ignore_index=True)
    with pytest.raises(InvalidTableError, match="several rows of only 5 people"):
        synthesize(of_visits(tables, table=more))


def test_a_child_without_rows_with_too_many_or_with_a_key_alone_is_refused_by_name(monkeypatch):
    tables = clinic(300)
    visits = tables.children["visits"].table
    with pytest.raises(InvalidTableError, match="Child 'visits' has rows of 0 people. Expected at least 20"):
        synthesize(of_visits(tables, table=visits.head(0)))
    with pytest.raises(InvalidTableError, match=r"Child 'visits' has no columns but \['patient'\]"):
        synthesize(of_visits(tables, table=visits[["patient"]], order=None))
    assert sequences.MOST_ROWS_HERE == 10**7
    monkeypatch.setattr(sequences, "MOST_ROWS_HERE", len(visits))
    assert len(synthesize(of_visits(tables)).people) == 300
    monkeypatch.setattr(sequences, "MOST_ROWS_HERE", len(visits) - 1)
    said = f"Child 'visits' has {len(visits)} rows, .* at most {len(visits) - 1}. Take a sample of people"
    with pytest.raises(InvalidTableError, match=said):
        synthesize(of_visits(tables))


def test_a_person_with_very_many_rows_is_refused_and_one_with_many_is_not_learned_alone():
    tables = clinic(300)
    visits = tables.children["visits"].table

    def with_rows(n):
        own = visits.iloc[np.zeros(n, int)].assign(cost=1e6, date=pd.Timestamp("2021-01-01"))
        return of_visits(tables, table=pd.concat([visits, own], ignore_index=True))

    with pytest.raises(InvalidTableError, match="more than 2,000 rows of a person or of a row above .1 of them"):
        synthesize(with_rows(100_000))
    made = synthesize(with_rows(1_900))
    assert np.bincount(made.whose["visits"]).max() <= 2_000


def test_what_is_not_built_for_related_tables_is_refused_by_name():
    tables = clinic(60)
    for method in ("cart", "gaussian_copula"):
        with pytest.raises(InvalidSettingError, match=f"`method` '{method}' cannot make RelatedTables"):
            synthesize(tables, method=method)
    with pytest.raises(InvalidSettingError, match="`group` cannot be set with RelatedTables"):
        synthesize(tables, settings={"group": "sex"})
    with pytest.raises(InvalidSettingError, match="`person` cannot be set"):
        synthesize(tables, person=range(60))
    with pytest.raises(InvalidSettingError, match="`engine` cannot be set with RelatedTables"):
        synthesize(tables, engine=LocalEngine())
    with pytest.raises(InvalidSettingError, match="`rules` of RelatedTables must map some of their tables"):
        synthesize(tables, rules={"cheap": "cost < 1000"})
    with pytest.raises(InvalidSettingError, match="`n_records`"):
        synthesize(tables, n_records=0)


class Copies:
    name = "copies"
    settings: dict = {}  # noqa: RUF012
    fit = sample = None

    def __init__(self, made):
        self.made = made

    def fit_related(self, tables, *, seed):
        made = self.made

        class Fitted:
            def sample(self, n_people, *, seed):
                return made(tables)

        return Fitted()


def test_an_own_synthesizer_makes_related_tables_of_the_same_columns():
    tables = clinic(60)
    assert synthesize(tables, method=Copies(lambda own: own)) is tables
    with pytest.raises(InvalidTableError, match="returned a DataFrame, not RelatedTables"):
        synthesize(tables, method=Copies(lambda own: own.people))
    with pytest.raises(InvalidTableError, match=r"missing \['sex'\]"):
        synthesize(tables, method=Copies(lambda own: replace(own, people=own.people.drop(columns="sex"))))
