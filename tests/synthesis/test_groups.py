"""Groups keep their own distributions, relations are learned from everybody, and unsuitable columns are refused."""

import warnings

import numpy as np
import pandas as pd
import pytest

from privacy_assets.errors import InvalidSettingError
from privacy_assets.synthesis.synthesize import make_synthetic_records, synthesize


def people(n=6_000, seed=0, n_regions=8):
    """Shares of plans that depend on the region, and a cost that depends on the plan."""
    random = np.random.default_rng(seed)
    region = random.integers(0, n_regions, n)
    plan = (random.random(n) < 0.1 + 0.8 * region / (n_regions - 1)).astype(int) + random.integers(0, 5, n)
    return pd.DataFrame(
        {
            "plan": pd.Series(plan).map("plan {}".format),
            "cost": 100 * plan + random.integers(0, 90, n),
            "region": pd.Series(region).map("region {}".format),
            "age": random.integers(18, 90, n) - 3 * region,
        }
    )


def shares(table, of, by="region"):
    return pd.crosstab(table[by].astype(object).where(table[by].notna(), "none"), table[of], normalize="index")


def distance(one, other, of):
    mine, theirs = shares(one, of).align(shares(other, of), fill_value=0)
    return float((mine - theirs).abs().to_numpy().mean())


def made(table, group="region", **more):
    settings = {"group": group} | more.pop("settings", {})
    return synthesize(table, method="smooth_cart", seed=1, settings=settings, **more)


def test_groups_keep_their_distributions_better_and_relations_are_not_lost():
    table = people(n_regions=15)
    grouped, plain = made(table), synthesize(table, method="smooth_cart", seed=1)
    assert distance(grouped, table, "plan") < 0.7 * distance(plain, table, "plan")
    assert abs(grouped["region"].value_counts() - table["region"].value_counts()).max() <= 1
    right = [(each["cost"] // 100 == each["plan"].str[-1].astype(int)).mean() for each in (grouped, plain)]
    assert right[0] > right[1] - 0.01 > 0.9


def test_groups_of_noise_get_nothing():
    table = people()
    table["region"] = np.random.default_rng(5).permutation(table["region"])
    grouped = made(table)
    overall = table["plan"].value_counts(normalize=True)
    apart = [shares(each, "plan").sub(overall).abs().to_numpy().mean() for each in (grouped, table)]
    assert apart[0] < apart[1] / 2


@pytest.mark.parametrize("kind", ["integer", "float", "boolean", "datetime", "category", "missing"])
def test_every_kind_of_column_can_be_the_group_and_is_reproduced_as_observed(kind):
    table = people(n_regions=2 if kind == "boolean" else 8)
    code = table["region"].str[-1].astype(int)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(code * 17, unit="D")
    values = {
        "integer": code * 1_000,
        "float": code * 0.37,
        "boolean": code.astype(bool),
        "datetime": day,
        "category": table["region"].astype("category"),
        "missing": table["region"].where(code > 0),
    }
    table["region"] = values[kind]
    grouped = made(table)
    assert grouped["region"].dtype == table["region"].dtype
    assert set(grouped["region"].dropna()) == set(table["region"].dropna())
    assert grouped["region"].isna().sum() == pytest.approx(table["region"].isna().sum(), abs=1)
    assert distance(grouped, table, "plan") < 0.03


def test_rare_groups_are_redrawn_also_numbers():
    table = people()
    table["region"] = table["region"].str[-1].astype(int)
    table.loc[:3, "region"] = 77
    found = make_synthetic_records(table, "smooth_cart", None, 0, {"group": "region"}, None)
    assert 77 not in set(found.table["region"])
    assert (found.redrawn["region"].n_values, found.redrawn["region"].n_records) == (1, 4)


def test_people_and_not_their_rows_say_how_far_a_group_is_moved():
    table = people(4_500, n_regions=15)
    many = pd.concat([table] * 3, ignore_index=True)
    person = np.tile(np.arange(len(table)), 3)
    as_people, as_rows = made(many, person=person), made(many)
    assert distance(as_rows, many, "plan") < distance(as_people, many, "plan")


@pytest.mark.parametrize(
    ("change", "group", "match"),
    [
        (lambda t: t, "town", r"'town', which is not a column that it learns. It learns \['plan', 'cost', 'region'"),
        (lambda t: t, "", "expected the name of a column"),
        (lambda t: t, 3, "expected the name of a column"),
        (lambda t: t, "cost", r"'cost', which has 5\d\d values; expected at most 200"),
        (
            lambda t: t.head(700),
            "region",
            "0 of 700 people are in groups of 100 people or more; expected at least half",
        ),
    ],
)
def test_unsuitable_groups_are_refused(change, group, match):
    with pytest.raises(InvalidSettingError, match=match) as raised:
        made(change(people()), group)
    assert "plan 1" not in str(raised.value)


def test_rows_of_few_people_are_no_large_group():
    table = people(2_000, n_regions=2)
    with pytest.raises(InvalidSettingError, match="0 of 40 people"):
        made(table, person=np.arange(2_000) % 40)


def test_small_groups_are_warned_of():
    with pytest.warns(UserWarning, match="'region' has 8 groups of 250 people on average. With fewer than 300"):
        made(people(2_000))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made(people(2_400))
