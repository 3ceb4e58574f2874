"""What people see on an asset stays small: an event takes 100 KB."""

import dagster as dg
import pandas as pd
import pytest
from dagster_shared.serdes import serialize_value

from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.orchestration.shown.metadata import (
    NOT_ACCEPTED,
    advice_table,
    score_metadata,
    settings_metadata,
    table_metadata,
)

# Pictures take what is left.
MOST_BYTES = 60_000


def settings_of(names):
    return AnonymizeSettings(
        quasi_identifiers=tuple(names[1:]),
        k=5,
        sensitive=tuple(names[:1]),
        subject=None,
        direct_identifiers=(),
        method="mondrian",
        criterion="gain",
        relaxed=False,
        normalize="rank",
        l_diversity={},
        t_closeness=dict.fromkeys(names[:1], 0.2),
        max_suppression=0.0,
        output="labels",
        bounds="tight",
        seed=0,
    ).described()


def test_hundreds_of_long_column_names_fit_into_an_event():
    names = [f"{place:03d}" + "x" * 117 for place in range(600)]
    table = pd.DataFrame(0, index=[0], columns=names)
    described = table_metadata(
        table,
        "0" * 64,
        dict.fromkeys(names, "quasi_identifier"),
        (dg.AssetKey("source"), {name: name for name in names}),
    )
    shown = settings_metadata(settings_of(names))
    metadata = dg.AssetMaterialization("a", metadata=described | {"made_with": shown})
    assert len(serialize_value(metadata)) < MOST_BYTES
    assert shown.value["quasi_identifiers"] == "599 entries, too many to show"
    assert (shown.value["k"], shown.value["method"], len(shown.value["sensitive"])) == (5, "mondrian", 1)


def test_column_names_as_long_as_an_event_are_counted_and_not_shown():
    for name, n_columns in (("n" * 100_000, 1), ("\u00fc" * 300, 70)):
        table = pd.DataFrame({f"{number}{name}": [1] for number in range(n_columns)})
        roles = dict.fromkeys(table.columns, "other")
        shown = table_metadata(table, "f" * 64, roles, (dg.AssetKey("source"), {each: each for each in table.columns}))
        assert len(serialize_value(dg.AssetMaterialization("table", metadata=shown))) < 100_000
        assert shown["privacy_assets/column_count"] == n_columns
        assert len(shown["dagster/column_schema"].columns) < n_columns


def test_settings_of_a_usual_table_are_shown_as_they_are():
    settings = settings_of([f"column_{place}" for place in range(40)])
    assert settings_metadata(settings).value == settings


def test_figures_of_an_advice_keep_all_their_digits():
    advice = pd.DataFrame({"columns": [("age", "sex")], "maximum_semantic_risk": [0.2504], "chance": [1 / 3]})
    (record,) = advice_table(advice).records
    assert record.data == {"columns": "age, sex", "maximum_semantic_risk": 0.2504, "chance": 1 / 3}


@pytest.mark.parametrize(
    ("name", "rating", "value"),
    [
        ("privacy_risk_score", "score_rating", 0.05),
        ("identification_rate", "identification_rating", 0.005),
        ("baseline_protection", "baseline_rating", 0.99),
    ],
)
def test_a_figure_that_fails_its_limit_is_not_rated_by_a_scale(name, rating, value):
    assert score_metadata({name: value}, {name})[rating] == NOT_ACCEPTED
    rated = score_metadata({name: value}, {"another"})[rating]
    assert rated not in (NOT_ACCEPTED, "")
    assert score_metadata({name: None}, {name}) == {}
