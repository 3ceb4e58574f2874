"""What a console and a notebook show of results: figures, and no cell."""

import dataclasses
import html
import inspect
import pkgutil
from importlib import import_module
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

import privacy_assets
from privacy_assets import (
    anonymize,
    assess_disclosure,
    assess_membership,
    assess_mpuccs,
    assess_reidentification,
    assess_semantic_risk,
    assess_utility,
    verify_anonymity,
)
from privacy_assets.display.notebook import ShowsFigures, _rows
from tests.public_packages import PUBLIC

SENTINEL = "Zxqv"
N = 400


def people(seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.integers(7_654_000, 7_654_060, N),
            "job": rng.choice([f"{SENTINEL}{i}" for i in range(9)], N),
            "<b>": rng.choice([f"{SENTINEL}yes", f"{SENTINEL}no"], N),
        }
    )


@pytest.fixture(scope="module")
def results() -> list[ShowsFigures]:
    original, synthetic, control = map(people, range(3))
    anonymization = anonymize(original, quasi_identifiers=["age", "job"], k=5, sensitive=["<b>"])
    assert anonymization.tree is not None
    return [
        anonymization,
        anonymization.tree,
        verify_anonymity(anonymization.table, ["age", "job"], sensitive=["<b>"]),
        assess_mpuccs(original, synthetic, control=control),
        assess_mpuccs(original, synthetic),
        assess_reidentification(original, anonymization),
        assess_membership(anonymization, original),
        assess_semantic_risk(original, {"age": "ordinal", "job": "nominal", "<b>": "nominal"}, risk_limit=0.5),
        assess_disclosure(original, synthetic, control),
        assess_utility(original, synthetic, control),
    ]


def test_results_show_no_cell(results):
    for result in results:
        for shown in (repr(result), str(result), f"{[result]}", result._repr_html_()):
            assert SENTINEL not in shown, type(result)
            assert "7654" not in shown.replace(",", ""), type(result)


def test_console_has_one_short_line_of_main_figures(results):
    for result in results:
        shown = repr(result)
        assert shown.startswith(f"<{type(result).__name__} "), shown
        assert "\n" not in shown, shown
        assert len(shown) < 300, shown
        assert all(f"{name}=" in shown for name in result.main_figures if name in dict(result._figures())), shown


def test_notebook_has_every_figure_once_in_valid_markup(results):
    for result in results:
        root = ElementTree.fromstring(result._repr_html_())
        names = [heading.text for heading in root.iter("th")]
        assert names == list(dict.fromkeys(names)), type(result)
        assert sorted(names) == sorted(dict(_rows(result._figures()))), type(result)


def test_names_of_columns_are_text_not_markup(results):
    report = results[2]
    assert "<b>" not in report._repr_html_()
    assert html.escape("<b>") in report._repr_html_()


def test_main_figures_exist(results):
    """A figure that no result has would be a misspelled name."""
    for result in results:
        found = set(result._figures())
        known = found | {"score_of_strangers"}
        assert set(result.main_figures) <= known, type(result)


@pytest.mark.parametrize(
    ("figures", "shown"),
    [
        ({"rate": 0.5, "rate_low": 0.25, "rate_high": 0.75}, {"rate": "0.5 (0.25 to 0.75)"}),
        ({"rate": 0.5, "rate_lower": 0.25, "rate_upper": 0.75}, {"rate": "0.5 (0.25 to 0.75)"}),
        ({"rate": None, "rate_low": None, "rate_high": None}, {"rate": "not available"}),
        ({"excess_interval": [-1, 2.5]}, {"excess_interval": "-1 to 2.5"}),
        ({"flagged": True, "copied": False}, {"flagged": "yes", "copied": "no"}),
        ({"n": 1_234_567, "share": 0.123456}, {"n": "1,234,567", "share": "0.123"}),
        ({"columns": [], "known": [["a", "b"]]}, {"columns": "none", "known": "a, b"}),
        ({"names": [f"c{i}" for i in range(10)]}, {"names": "c0, c1, c2, c3, c4, c5, c6, c7, and 2 more"}),
        ({"by": {"a": 1, "b": None}}, {"by": "a: 1, b: not available"}),
    ],
)
def test_figures_as_text(figures, shown):
    assert dict(_rows(figures)) == shown


def test_every_result_with_a_table_shows_figures():
    """A public result that contains a DataFrame would print its rows otherwise."""
    frames = {"pd.DataFrame", pd.DataFrame, "DataFrame"}
    found = set()
    for module in pkgutil.walk_packages(privacy_assets.__path__, "privacy_assets."):
        if ".kernels" in module.name or "e2e" in module.name:
            continue
        for _, one in inspect.getmembers(import_module(module.name), inspect.isclass):
            if one.__module__ != module.name or not dataclasses.is_dataclass(one) or one.__name__.startswith("_"):
                continue
            if any(field.type in frames for field in dataclasses.fields(one)):
                found.add(one)
    shown = {one.__name__ for one in found if issubclass(one, ShowsFigures)}
    assert {"Anonymization", "MpuccAssessment", "ReleaseOptions"} <= shown
    public = {each for each in PUBLIC.values() if inspect.isclass(each)}
    # These have a representation of their own, which counts rows.
    assert not {one.__name__ for one in found & public} - shown - {"Child", "RelatedTables"}


def test_labels_leave_out_the_columns_that_repeat_them(results):
    anonymization = results[0]
    assert list(anonymization.labels) == ["age", "job", "<b>"]
    assert set(anonymization.table) - set(anonymization.labels) == {"age_low", "age_high", "job_values"}
    assert anonymization.labels["age"].equals(anonymization.table["age"])
