"""What people see on an asset stays small: an event takes 100 KB."""

import dagster as dg
import pandas as pd
from dagster_shared.serdes import serialize_value

from privacy_assets.anonymization.settings import AnonymizeSettings
from privacy_assets.orchestration.shown.metadata import (
    advice_table,
    refusal_on_its_asset,
    score_metadata,
    settings_metadata,
    table_metadata,
)
from privacy_assets.release.gate import Verdict

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


def test_figures_have_three_digits_and_no_rating():
    scores = {"privacy_risk_score": 0.0512345, "people": 12_345, "ratio": 1_234.5, "verdict": "no", "unknown": None}
    shown = score_metadata(scores)
    assert shown == {"privacy_risk_score": 0.0512, "people": 12_345, "ratio": 1_234.0, "verdict": "no"}


def test_a_refusal_by_checks_of_another_asset_names_it_with_reasons_and_advice():
    decided = [
        Verdict("a_is_small", False, "error", "a is 3; expected below 2", "Take fewer.", "a", 3, 2),
        Verdict("b_is_small", True, "error", "b is 1"),
        Verdict("c_is_small", False, "warn", "c is 3"),
    ]
    said = refusal_on_its_asset(dg.AssetKey("release"), "2026", decided, {"page": "p"}, dg.AssetKey("checked"))
    assert (said.description, said.partition) == ("Refused: a is 3; expected below 2", "2026")
    assert said.metadata["advice"].value == "Take fewer."
    assert said.metadata["refused_by_checks_of"].asset_key == dg.AssetKey("checked")
    assert [each.data["result"] for each in said.metadata["verdicts"].records] == ["refuses", "warns", "passed"]
