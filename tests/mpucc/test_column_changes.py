import time
from itertools import count

import numpy as np
import pandas as pd
import pytest

from privacy_assets.engine.local import LocalEngine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.assess import assess_mpuccs, assess_preprocessed
from privacy_assets.mpucc.column_changes import measure_column_changes
from privacy_assets.mpucc.preprocess import preprocess
from privacy_assets.mpucc.settings import MpuccSettings

TOWNS = ["Arles", "Bonn", *(f"Village {number}" for number in range(40))]


def people(n_records, seed):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "visits": random.integers(0, 400, n_records),
            "cost": np.where(random.random(n_records) < 0.1, np.nan, random.integers(0, 300, n_records) / 4),
            "day": pd.Timestamp("2020-01-01") + pd.to_timedelta(random.integers(0, 120, n_records), unit="D"),
            "wait": pd.to_timedelta(random.integers(0, 50, n_records), unit="min"),
            "town": random.choice(TOWNS, n_records, p=[0.5, 0.4, *[0.1 / 40] * 40]),
            "adult": random.random(n_records) < 0.5,
        }
    )


ORIGINAL, SYNTHETIC = people(500, 1), people(400, 2)
SETTINGS = {"max_baseline_cols": 2}


def in_bands(values, originals, n_bands):
    """Replace each value by the share of the originals below it, and half of those with it, in whole bands."""
    below = np.array([np.nan if pd.isna(v) else ((originals < v).sum() + (originals == v).sum() / 2) for v in values])
    return np.minimum(np.floor(below / originals.notna().sum() * n_bands), n_bands - 1)


def coarsened(table, column):
    originals = ORIGINAL[column]
    if column == "town":
        share = originals.value_counts() / len(originals)
        return table.assign(town=table["town"].where(table["town"].map(share).fillna(0) >= 0.05, "other"))
    return table.assign(**{column: in_bands(table[column], originals, 10)})


@pytest.fixture(scope="module")
def measured():
    tables = preprocess(ORIGINAL, SYNTHETIC)
    assessment = assess_preprocessed(tables, MpuccSettings(**SETTINGS))
    return assessment, measure_column_changes(tables, assessment, max_columns=6)


@pytest.mark.parametrize("column", ["visits", "cost", "day", "wait", "town", "adult"])
def test_each_figure_is_what_an_assessment_of_the_changed_tables_finds(measured, column):
    assessment, changes = measured
    own = changes[changes["column"] == column].set_index("change")
    changed = {"dropped": lambda table: table.drop(columns=column), "coarsened": lambda table: coarsened(table, column)}
    # Two values are as coarse as can be.
    assert list(own.index) == (["dropped"] if column == "adult" else ["dropped", "coarsened"])
    for change, row in own.iterrows():
        again = assess_mpuccs(changed[change](ORIGINAL), changed[change](SYNTHETIC), **SETTINGS).scores
        assert row["identification_rate"] == again["identification_rate"]
        assert row["privacy_risk_score"] == again["privacy_risk_score"]
        assert row["difference"] == again["identification_rate"] - assessment.scores["identification_rate"]


def test_a_pair_is_the_best_that_is_added_to_the_best_single_change(measured):
    assessment, singles = measured
    tables = preprocess(ORIGINAL, SYNTHETIC)
    changes = measure_column_changes(tables, assessment, max_columns=6, pairs=True)
    pd.testing.assert_frame_equal(changes[: len(singles)], singles)
    pairs = changes[len(singles) :]
    assert pairs["change"].tolist() == ["both dropped", "both coarsened"]

    def dropped(table, columns):
        return table.drop(columns=columns)

    def both_coarsened(table, columns):
        return table.assign(**{column: coarsened(table, column)[column] for column in columns})

    for (_, pair), change in zip(pairs.iterrows(), (dropped, both_coarsened), strict=True):
        own = singles[singles["change"] == pair["change"].removeprefix("both ")]
        first = own.sort_values("identification_rate", kind="stable")["column"].iloc[0]
        rates = {
            f"{first} and {other}": assess_mpuccs(
                change(ORIGINAL, [first, other]), change(SYNTHETIC, [first, other]), **SETTINGS
            ).scores
            for other in own["column"]
            if other != first
        }
        best = min(rates.values(), key=lambda scores: scores["identification_rate"])
        assert rates[pair["column"]] == best
        assert pair["identification_rate"] == best["identification_rate"]
        assert pair["privacy_risk_score"] == best["privacy_risk_score"]
        both = pair["column"].split(" and ")
        combos = assessment.details["field_combo"]
        assert pair["share_of_identified"] == np.mean([any(name in combo for name in both) for combo in combos])


@pytest.mark.parametrize("most_searches", [0, 1, 4, 10, 11, 12, 15, 16, 19, 20])
def test_changes_are_measured_in_a_fixed_order_until_the_searches_are_used_up(measured, most_searches):
    """11 changes of single columns, then 5 pairs of dropped ones with the best of them, then 4 of coarsened ones."""
    assessment, singles = measured
    tables = preprocess(ORIGINAL, SYNTHETIC)
    asked = {"max_columns": 6, "pairs": True, "n_threads": 1}
    found = measure_column_changes(tables, assessment, most_searches=most_searches, **asked)
    assert found.attrs == {"n_measured": most_searches, "n_changes": 20}
    n_singles = min(most_searches, 11)
    pd.testing.assert_frame_equal(found[:n_singles], singles[:n_singles])
    late = found[n_singles:11]
    assert late[["identification_rate", "difference", "privacy_risk_score"]].isna().all(axis=None)
    assert late[["column", "change", "how"]].equals(singles.loc[late.index, ["column", "change", "how"]])
    pairs = found[11:]["change"].tolist()
    assert pairs == ["both dropped"] * (most_searches > 11) + ["both coarsened"] * (most_searches > 16)


def test_more_searches_than_changes_are_not_made_and_none_depends_on_a_clock(measured, monkeypatch):
    assessment, singles = measured
    tables = preprocess(ORIGINAL, SYNTHETIC)
    seconds = count(0, 1_000)
    monkeypatch.setattr(time, "monotonic", lambda: next(seconds))
    asked = {"max_columns": 6, "pairs": True}
    found = measure_column_changes(tables, assessment, most_searches=500, **asked)
    assert found.attrs == {"n_measured": 20, "n_changes": 20}
    pd.testing.assert_frame_equal(found, measure_column_changes(tables, assessment, most_searches=20, **asked))
    assert singles.attrs == {"n_measured": 11, "n_changes": 11}


def test_the_searches_report_their_progress_and_can_be_ended(measured):
    assessment, _ = measured
    seen = []
    measure_column_changes(preprocess(ORIGINAL, SYNTHETIC), assessment, most_searches=1, progress=seen.append)
    assert seen[-1].bar[0].startswith("synthetic against original")

    def end(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure_column_changes(preprocess(ORIGINAL, SYNTHETIC), assessment, progress=end)


@pytest.mark.parametrize(("rows_per_task", "is_asked"), [(100, True), (900, False)])
def test_an_engine_finds_the_same_and_is_asked_for_tables_of_several_tasks(
    measured, monkeypatch, rows_per_task, is_asked
):
    assessment, changes = measured
    tables, engine, asked = preprocess(ORIGINAL, SYNTHETIC), LocalEngine(rows_per_task=rows_per_task), []
    map_reduce = LocalEngine.map_reduce
    monkeypatch.setattr(LocalEngine, "map_reduce", lambda own, *given: asked.append(given) or map_reduce(own, *given))
    found = measure_column_changes(tables, assessment, max_columns=6, engine=engine)
    pd.testing.assert_frame_equal(found, changes)
    assert bool(asked) == is_asked


@pytest.mark.parametrize("deduplicate", [True, False])
def test_an_engine_has_the_tables_once_for_all_changes_of_one_column(monkeypatch, deduplicate):
    tables = preprocess(ORIGINAL, SYNTHETIC, deduplicate=deduplicate)
    assessment, placed = assess_preprocessed(tables), []
    place = LocalEngine.place
    monkeypatch.setattr(LocalEngine, "place", lambda own, columns: placed.append(columns) or place(own, columns))
    measured = [
        measure_column_changes(tables, assessment, max_columns=2, pairs=True, engine=engine)
        for engine in (None, LocalEngine(rows_per_task=100))
    ]
    pd.testing.assert_frame_equal(*measured)
    # Of rows that become equal, fewer are searched: they are among the rows that the engine has.
    assert len(placed) == 1 + len(set(measured[1]["change"]) & {"both dropped", "both coarsened"})


def test_an_engine_is_not_asked_for_what_is_not_searched(monkeypatch):
    asked, place = [], LocalEngine.place
    monkeypatch.setattr(LocalEngine, "place", lambda own, columns: asked.append(columns) or place(own, columns))
    engine = LocalEngine(rows_per_task=2)
    # Nobody is identified; then no other change can be added to the only one.
    alike = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 1, 2, 2]})
    tables = preprocess(alike, alike, deduplicate=False)
    assert len(measure_column_changes(tables, assess_preprocessed(tables), engine=engine)) == 0
    assert not asked
    tables = preprocess(ORIGINAL, SYNTHETIC)
    measure_column_changes(tables, assess_preprocessed(tables), max_columns=1, pairs=True, engine=engine)
    assert len(asked) == 1


def test_an_assessment_without_scores_is_refused():
    original = pd.DataFrame({"a": range(20), "b": list("abcde") * 4})
    tables = preprocess(original, original.copy()).judged("other people")
    with pytest.raises(InvalidTableError, match="has no identification_rate"):
        measure_column_changes(tables, assess_preprocessed(tables))


def test_pairs_need_a_column_that_stays():
    two = preprocess(ORIGINAL[["visits", "town"]], SYNTHETIC[["visits", "town"]])
    changes = measure_column_changes(two, assess_preprocessed(two), pairs=True)
    assert "both dropped" not in changes["change"].tolist()


def test_columns_come_by_the_share_of_identified_records_that_they_single_out(measured):
    assessment, changes = measured
    shares = {
        name: np.mean([name in combo for combo in assessment.details["field_combo"]]) for name in ORIGINAL.columns
    }
    by_share = changes.drop_duplicates("column")
    assert by_share["share_of_identified"].is_monotonic_decreasing
    assert dict(zip(by_share["column"], by_share["share_of_identified"], strict=True)) == pytest.approx(shares)


@pytest.mark.parametrize("deduplicate", [True, False])
def test_records_that_become_equal_count_as_preprocessing_counts_them(deduplicate):
    original, synthetic = (
        pd.DataFrame({"a": a, "b": b}) for a, b in (([1, 2, 3, 3], [5, 5, 6, 7]), ([1, 2, 3], [5, 5, 6]))
    )
    tables = preprocess(original, synthetic, deduplicate=deduplicate)
    changes = measure_column_changes(tables, assess_preprocessed(tables))
    again = assess_mpuccs(original[["b"]], synthetic[["b"]], deduplicate=deduplicate)
    dropped = changes[(changes["column"] == "a") & (changes["change"] == "dropped")]
    assert dropped["identification_rate"].tolist() == [again.scores["identification_rate"]]


def test_only_the_columns_that_drive_most_are_tried():
    tables = preprocess(ORIGINAL, SYNTHETIC)
    changes = measure_column_changes(tables, assess_preprocessed(tables, MpuccSettings(**SETTINGS)), max_columns=2)
    assert changes["column"].nunique() == 2


def test_where_nothing_is_identified_nothing_drives_it():
    table = pd.DataFrame({"a": [1, 1, 2, 2]})
    tables = preprocess(table, table, deduplicate=False)
    assert measure_column_changes(tables, assess_preprocessed(tables)).empty


def test_an_assessment_of_other_tables_and_settings_out_of_range_are_refused():
    tables = preprocess(ORIGINAL, SYNTHETIC)
    assessment = assess_preprocessed(tables, MpuccSettings(max_baseline_cols=1))
    with pytest.raises(InvalidTableError, match="have different columns"):
        measure_column_changes(preprocess(ORIGINAL[["visits"]], SYNTHETIC[["visits"]]), assessment)
    for wrong in (-1, 1.5, True, None):
        with pytest.raises(InvalidSettingError, match=f"most_searches is {wrong}"):
            measure_column_changes(tables, assessment, most_searches=wrong)


def test_a_change_that_would_leave_one_value_is_not_tried():
    random = np.random.default_rng(0)
    table = pd.DataFrame({"name": [f"person {number}" for number in range(30)], "two": random.integers(0, 2, 30)})
    tables = preprocess(table, table)
    changes = measure_column_changes(tables, assess_preprocessed(tables))
    assert set(changes["change"]) == {"dropped"}
