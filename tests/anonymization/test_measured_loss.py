"""The loss that the gate measures on labels, compared with plain arithmetic over rows and with what was stored."""

import json
from dataclasses import replace
from datetime import date

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.measured_loss import mean_loss, measure_losses, require_measured
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.anonymization.withheld_records import withhold_records
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidTableError
from tests.examples import examples

CODES = Hierarchy.from_mapping({"1": ["11", "12", "13"], "2": ["21", "22"]})
KINDS = {
    "whole": st.integers(-30, 30),
    "some missing": st.none() | st.integers(0, 9),
    "decimals": st.integers(0, 400).map(lambda n: n / 10),
    "floats": st.floats(-1e3, 1e3),
    "far floats": st.sampled_from([-1.7e308, -0.5, 0.0, 1.5, 1.7e308, 1.7976931348623157e308]),
    "far": st.sampled_from([-(2**63), 0, 2**53, 2**63 - 1]),
    "beyond": st.sampled_from([0, 2**70, 2**71, 2**72]),
    "text": st.sampled_from(["a", "b", "c, d", None]),
    "flag": st.booleans(),
    "day": st.dates(date(2020, 1, 1), date(2021, 1, 1)).map(pd.Timestamp),
    "zoned": st.datetimes(pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")).map(
        lambda own: pd.Timestamp(own).tz_localize("UTC")
    ),
    "span": st.integers(0, 10**7).map(lambda n: pd.Timedelta(seconds=n)),
    "ranked": st.sampled_from(["low", "mid", "high", None]),
    "nothing": st.none(),
}


@st.composite
def tables(draw):
    n_rows = draw(st.integers(4, 30))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3, unique=True))
    columns = {}
    for kind in kinds:
        values = draw(st.lists(KINDS[kind], min_size=n_rows, max_size=n_rows))
        column = pd.Series(values, dtype=None if kind in ("day", "zoned", "span", "floats", "far floats") else object)
        if kind == "some missing":
            column = column.astype("Int64")
        elif kind == "ranked":
            column = column.astype(pd.CategoricalDtype(["low", "mid", "high"], ordered=True))
        elif kind in ("whole", "decimals", "far"):
            column = column.infer_objects()
        columns[kind] = column
    return pd.DataFrame(columns), kinds


def stored_and_read(found):
    """Bring an anonymization through what storage does with it."""
    return Anonymization.from_artifact(found.to_artifact())


@settings(max_examples=examples(120), deadline=None)
@given(tables(), st.sampled_from(["tight", "cell"]), st.sampled_from(["labels", "centroid"]), st.integers(1, 3))
def test_what_is_stored_is_what_is_measured_whatever_the_columns(drawn, bounds, output, k):
    table, names = drawn
    found = anonymize(table, quasi_identifiers=names, k=k, bounds=bounds, output=output)
    losses = require_measured(stored_and_read(found), table)
    assert losses == pytest.approx(found.stats["certainty_penalty"], abs=1e-12)
    assert all(-1e-12 <= loss <= 1 + 1e-12 for loss in losses.values())
    # Cells reach farther than the values in them.
    tight = anonymize(table, quasi_identifiers=names, k=k, output=output)
    assert all(losses[name] >= loss - 1e-12 for name, loss in measure_losses(tight, table).items())


def people(n_rows=300, seed=0):
    random = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": random.choice(np.arange(20, 80, 3), n_rows),
            "cost": random.integers(0, 40, n_rows) / 4,
            "job": random.choice(["cook", "nurse", "clerk", "judge"], n_rows),
            "illness": random.choice(["flu", "cold", "gout"], n_rows),
        }
    )


def by_hand(found, table):
    """Compute the mean loss of the labels row by row, from the columns that leave; 0.01 is the step of `cost`."""
    span, most = np.ptp(table["age"]), table["cost"].max() - table["cost"].min()
    rows = found.table
    ages = (rows["age_high"] - rows["age_low"]) / span
    costs = (rows["cost_high"].clip(upper=table["cost"].max() + 0.01) - 0.01 - rows["cost_low"]) / most
    jobs = (rows["job_values"].map(lambda text: len(json.loads(text))).astype(int) - 1) / (table["job"].nunique() - 1)
    n_lost = len(table) - len(rows)
    return {name: (own.sum() + n_lost) / len(table) for name, own in (("age", ages), ("cost", costs), ("job", jobs))}


@pytest.mark.parametrize("bounds", ["tight", "cell"])
def test_losses_are_those_of_the_labels_that_leave(bounds):
    table = people()
    found = anonymize(table, quasi_identifiers=["age", "cost", "job"], k=5, bounds=bounds)
    assert measure_losses(found, table) == pytest.approx(by_hand(found, table), abs=1e-9)
    assert found.stats["certainty_penalty"] == pytest.approx(by_hand(found, table), abs=1e-9)


def test_cells_lose_more_than_the_values_in_them():
    table = people()
    tight, cell = (anonymize(table, quasi_identifiers=["age", "cost"], k=5, bounds=own) for own in ("tight", "cell"))
    # The classes are the same; cells were said to lose what the values in them do.
    assert cell.classes["rows"].equals(tight.classes["rows"])
    assert tight.stats["information_loss"] == pytest.approx(0.1062, abs=1e-4)
    assert cell.stats["information_loss"] == pytest.approx(0.1416, abs=1e-4)
    assert cell.stats["non_uniform_entropy"]["age"] >= tight.stats["non_uniform_entropy"]["age"]
    assert (cell.classes["loss"] >= tight.classes["loss"] - 1e-12).all()


def test_nodes_lose_what_their_hierarchies_say_and_need_them():
    table = people().assign(code=np.random.default_rng(1).choice(["11", "12", "13", "21", "22"], 300))
    # One record that no class can hold without a loss.
    hierarchies = {"code": CODES, "age": Hierarchy.intervals([10, 30])}
    found = anonymize(
        table, quasi_identifiers=["age", "code"], k=20, method="lattice", hierarchies=hierarchies, max_suppression=0.2
    )
    lost = {"11": 0, "12": 0, "13": 0, "21": 0, "22": 0, "1": 2 / 4, "2": 1 / 4, "*": 1}
    expected = found.table["code"].astype(object).map(lost).sum() + len(table) - len(found.table)
    losses = require_measured(stored_and_read(found), table, hierarchies)
    assert losses["code"] == pytest.approx(expected / len(table))
    with pytest.raises(InvalidTableError, match="released as nodes of a hierarchy that is missing"):
        require_measured(found, table)
    other = Hierarchy.from_mapping({"x": ["11", "21"], "y": ["12", "13", "22"]})
    with pytest.raises(
        InvalidTableError, match="not nodes of its hierarchy|differ from those of the table that would be released"
    ):
        require_measured(found, table, hierarchies | {"code": other})


@pytest.mark.parametrize("output", ["labels", "centroid"])
def test_records_that_were_withheld_are_lost(output):
    table = people()
    found = anonymize(table, quasi_identifiers=["age", "job"], k=5, output=output)
    kept = np.arange(len(found.table)) % 3 > 0
    held = withhold_records(found, kept, table)
    losses = require_measured(stored_and_read(held), table)
    assert mean_loss(losses) == pytest.approx(held.stats["information_loss"]) and mean_loss(losses) > 1 / 3


def forged(found, **stats):
    return replace(found, stats=found.stats | stats)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda found: forged(found, information_loss=0.0), r"information_loss is 0, measured 0\.0\d{1,3}\."),
        (lambda found: forged(found, information_loss=float("nan")), "information_loss is nan, measured"),
        (lambda found: forged(found, suppressed_share=0.1), "suppressed_share is 0.1, measured 0"),
        (lambda found: forged(found, certainty_penalty={"age": 0.0}), "loss of 'job' is missing, measured"),
        (lambda found: replace(found, table=found.table.assign(age_high=999)), "loss of 'age'"),
        (
            lambda found: replace(found, table=found.table.assign(age_high=-999)),
            r"\d+ labels that are not values of its source",
        ),
        (lambda found: replace(found, table=found.table.assign(age_low=np.nan)), "300 labels that are not values"),
        *(
            (
                lambda found, text=text: replace(found, table=found.table.assign(job_values=text)),
                "are not values of its source",
            )
            for text in ("SENTINEL", "[]", "[1]", '["SENTINEL"]', '["cook", "cook"]', None, '["cook", null]')
        ),
    ],
)
def test_figures_that_are_not_those_of_the_labels_are_refused_without_a_cell(change, problem):
    table = people()
    found = change(anonymize(table, quasi_identifiers=["age", "job"], k=5))
    with pytest.raises(InvalidTableError, match=problem) as error:
        require_measured(found, table)
    assert "SENTINEL" not in str(error.value)
