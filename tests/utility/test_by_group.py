"""Worth within groups: it equals a plain reference, is 0 for a shuffled group column, and names no group."""

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from privacy_assets import InvalidSettingError, anonymize, assess_utility
from privacy_assets.reidentification import ReleaseModel, Suppressed
from privacy_assets.utility import assess, by_group
from privacy_assets.utility.result import GROUP_FIGURES, UtilityAssessment
from tests.reference import utility as reference
from tests.utility.test_figures import KINDS, as_reference, plain, related, without

REGIONS = ["north", "south", "west"]


@pytest.fixture(autouse=True)
def few_queries(monkeypatch):
    monkeypatch.setattr(assess, "N_QUERIES", 20)


def people(n, seed, n_groups=4):
    """Two columns go together in another way in every group."""
    random = np.random.default_rng(seed)
    group = random.integers(0, n_groups, n)
    level = random.normal(size=n)
    return pd.DataFrame(
        {
            "region": np.char.add("region-", group.astype(str)).astype(object),
            "level": np.round(level, 1),
            "other": np.round(level * np.linspace(-1, 1, n_groups)[group] + random.normal(0, 0.5, n) + group, 1),
            "plan": np.where(level + group > 1, "family", "single"),
        }
    )


def all_none(found):
    return all(found.scores[name + end] is None for name in GROUP_FIGURES for end in ("", "_lower", "_upper"))


def reference_groups(tables, fewest):
    """Group of each row of release, control and originals in the order given, by counting."""
    of = [plain(table) for table in tables]
    n_control, originals = of[1], set(of[2])
    known = originals | set(n_control)
    large = {value for value in known if n_control.count(value) >= fewest and value in originals}

    def group_of(value):
        return (value, "group") if value in large else "small" if value in known else None

    return [[group_of(value) for value in own] for own in of]


@given(
    kinds=st.lists(st.sampled_from(sorted(KINDS)), min_size=2, max_size=3),
    kind_of_group=st.sampled_from(["small", "text", "few", "boolean", "nullable", "size"]),
    sizes=st.tuples(*[st.integers(14, 40)] * 3),
    fewest=st.integers(1, 9),
    seed=st.integers(0, 10_000),
)
@settings(deadline=None, max_examples=25)
def test_figures_equal_the_plain_reference(kinds, kind_of_group, sizes, fewest, seed):
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(assess, "FEWEST_CONTROL", 1)
        patched.setattr(by_group, "FEWEST_OF_GROUP", fewest)
        tables = [related([*kinds, kind_of_group], n, seed + i) for i, n in enumerate(sizes)]
        original, released, control = tables
        group = original.columns[-1]
        judge = assess.Judge(original, control, group=group, seed=seed)
        found = judge.assess(released)
    sides, bins, _, _ = as_reference(judge, released)
    in_order = [each.iloc[np.lexsort(judge.grid.encode(each, "release"))] for each in (released, control, original)]
    of = reference_groups([each[group] for each in in_order], fewest)
    rows = [[(*row[:-1], g) for row, g in zip(side, own, strict=True)] for side, own in zip(sides[:3], of, strict=True)]

    def of_groups(variant):
        released, control, original = variant
        groups = [[row[-1] for row in each] for each in (released, original, control)]
        return reference.within_groups(released, original, control, groups, bins[:-1])

    variants = [of_groups(rows), *(of_groups([without(each, g) for each in rows]) for g in range(10))]
    names = {g: by_group.POOLED if g == "small" else "missing" if g[0] is None else str(g[0]) for g in variants[0]}
    assert sorted(found.groups["group"]) == sorted(names.values())

    def figure(variant, groups):
        own = [variant[g] for g in groups if g in variant]
        return (
            sum(n * (nothing - error) for n, error, _, nothing in own),
            sum(n * (nothing - best) for n, _, best, nothing in own),
        )

    def checked(groups, value, lower):
        each = [figure(variant, groups) for variant in variants]
        best = [own[1] for own in each]
        margin = stats.t.ppf(0.975, 9) * reference.jackknife_error(best[1:])
        if not min(best) > 1e-9 or best[0] <= margin * (1 + 1e-6):
            return False
        values = [kept / whole for kept, whole in each]
        assert value == pytest.approx(values[0], rel=1e-6, abs=1e-6)
        margin = stats.t.ppf(0.975, 9) * reference.jackknife_error(values[1:])
        assert value - lower == pytest.approx(margin, rel=1e-4, abs=1e-6)
        return True

    scores = found.scores
    if scores["utility_by_group"] is not None:
        assert checked(list(variants[0]), scores["utility_by_group"], scores["utility_by_group_lower"])
    of_name = {name: g for g, name in names.items()}
    for row in found.groups.itertuples():
        assert row.people == variants[0][of_name[row.group]][0]
        if not np.isnan(row.figure):
            assert checked([of_name[row.group]], row.figure, row.lower)


def test_other_people_are_worth_1_and_a_shuffled_group_nothing():
    original, fresh, control = (people(n, seed) for n, seed in ((6_000, 0), (6_000, 1), (6_000, 2)))
    assert assess_utility(original, original, control, group="region").scores["utility_by_group"] == 1
    others = assess_utility(original, fresh, control, group="region").scores
    assert others["utility_by_group"] == pytest.approx(1, abs=0.02)
    mixed = fresh.assign(region=np.random.default_rng(0).permutation(fresh["region"]))
    found = assess_utility(original, mixed, control, group="region").scores
    assert found["utility_by_group"] <= 0.05
    assert found["utility_worst_group_lower"] <= found["utility_worst_group"] <= found["utility_worst_group_upper"]
    assert found["utility"] > 0.3, "the relation of the other columns is unchanged"


def test_the_group_that_is_spoiled_is_named_in_the_frame_alone():
    original, released, control = (people(4_000, seed) for seed in range(3))
    spoiled = released["region"] == "region-2"
    random = np.random.default_rng(0)
    released.loc[spoiled, "other"] = random.permutation(released.loc[spoiled, "other"])
    found = assess_utility(original, released, control, group="region")
    assert found.groups["group"].iloc[0] == "region-2"
    assert found.groups["figure"].iloc[0] == found.scores["utility_worst_group"] < 0.9
    assert found.groups["figure"].iloc[1:].min() > 0.9
    assert list(found.groups.columns) == ["group", "people", "figure", "lower", "upper"]
    said = [found, dict(found.scores), found.shown_scores, found.notes, found.settings, found.sentence, found.worst]
    assert "region-2" not in repr(said)
    assert "region-2" not in json.dumps(found.drawn().text)
    again = UtilityAssessment.from_artifact(found.to_artifact())
    pd.testing.assert_frame_equal(again.groups, found.groups)


def test_small_groups_are_pooled_and_a_group_that_only_the_release_has_belongs_to_none():
    original, released, control = (people(2_000, seed, 3) for seed in range(3))
    for each, n in ((original, 80), (released, 200), (control, 99)):
        each.loc[: n - 1, "region"] = [f"village-{i % 7}" for i in range(n)]
    released.loc[1_500:, "region"] = "nowhere"
    found = assess_utility(original, released, control, group="region")
    assert set(found.groups["group"]) == {"region-0", "region-1", "region-2", "small groups"}
    assert found.groups.set_index("group").loc["small groups", "people"] == 99
    assert any("25.0% of the values of 'region' occur in no original" in note for note in found.notes)
    lacking = assess_utility(original, released.drop(columns="region"), control, group="region").scores
    assert lacking["utility_by_group"] == pytest.approx(0, abs=1e-9)


def test_groups_that_do_not_matter_are_not_judged():
    original, released, control = (people(1_500, seed) for seed in range(3))
    for each in (original, released, control):
        each["coin"] = np.random.default_rng(len(each)).permutation(["heads", "tails"] * 750)
        each["same"] = 1
    for group in ("coin", "same"):
        found = assess_utility(original, released, control, group=group)
        assert all_none(found)
        assert f"within the groups of '{group}'" in found.notes[-1]
    pair = [each[["region", "level"]] for each in (original, released, control)]
    assert all_none(assess_utility(*pair, group="region"))


def test_without_a_group_there_are_no_such_figures_and_too_few_people_have_none():
    tables = [people(400, seed) for seed in range(3)]
    found = assess_utility(*tables)
    assert not set(GROUP_FIGURES) & set(found.scores)
    assert len(found.groups) == 0
    assert found.settings["group"] is None
    few = assess_utility(*tables[:2], tables[2].head(299), group="region")
    assert all_none(few)
    assert len(few.groups) == 0


def test_a_suppressed_group_has_no_figures_and_a_generalized_one_is_drawn():
    original, control = people(3_000, 0), people(3_000, 1)
    model = ReleaseModel({"region": Suppressed()})
    found = assess_utility(original, original.drop(columns="region"), control, model, group="region")
    assert all_none(found)
    assert found.notes[-1] == "The release suppresses 'region', so it has no figures by group."
    assert found.settings["group"] == "region"
    made = anonymize(original, quasi_identifiers=["region", "level"], k=200)
    assert 0.2 < assess_utility(original, made.table, control, made, group="region").scores["utility_by_group"] < 1


@pytest.mark.parametrize("group", ["income", 3, ["region"]])
def test_a_group_must_be_a_column(group):
    tables = [people(400, seed) for seed in range(3)]
    with pytest.raises(
        InvalidSettingError, match=r"group is .* Expected one of the columns that are judged: \['region'"
    ):
        assess_utility(*tables, group=group)


def test_a_group_with_more_than_200_values_is_refused_with_their_number_alone():
    tables = [people(400, seed).assign(town=[f"sentinel-{i % 201}" for i in range(400)]) for seed in range(3)]
    with pytest.raises(InvalidSettingError, match="'town', which has 201 values. Expected at most 200") as caught:
        assess_utility(*tables, group="town")
    assert "sentinel" not in str(caught.value)
    kept = [each[each["town"] != "sentinel-200"] for each in tables]
    assert assess_utility(*kept, group="town").groups["group"].tolist() == ["small groups"]
