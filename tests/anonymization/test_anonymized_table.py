"""What the gate asks of an anonymized table, compared with pandas and with tables that are not what they say."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.anonymization.anonymized_table import (
    columns_telling_of,
    describe_columns,
    keeps_the_contract,
    measure_anonymity,
    models_that_fail,
    roles_of,
)
from privacy_assets.anonymization.measured_loss import require_measured
from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import ContractError, InvalidTableError
from privacy_assets.release.metrics import ANONYMITY, STATISTICS, figures_of
from privacy_assets.storage import table
from privacy_assets.storage.fingerprint import fingerprint

CONTRACT = TableContract.from_mapping(
    {
        "columns": {
            "person": {"type": "integer", "role": "direct_identifier", "person": True},
            "age": {"type": "integer", "role": "quasi_identifier", "nullable": True, "min": 0},
            "job": {"type": "text", "role": "quasi_identifier"},
            "illness": {"type": "text", "role": "sensitive"},
            "note": {"type": "integer", "role": "other"},
        }
    }
)


def visits(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    random = np.random.default_rng(seed)
    return CONTRACT.admit(
        pd.DataFrame(
            {
                "person": random.integers(0, n_rows // 2, n_rows),
                "age": pd.array(random.choice([None, *range(20, 60)], n_rows), dtype="Int64"),
                "job": random.choice(["cook", "nurse", "clerk"], n_rows),
                "illness": random.choice(["flu", "cold", "gout"], n_rows),
                "note": random.integers(0, 9, n_rows),
            }
        )
    )


def anonymized(table: pd.DataFrame, k: int = 4, **settings):
    roles = roles_of(CONTRACT, "person")
    return anonymize(table, k=k, **roles._asdict(), **settings)


def measured(anonymization, table, losses=None):
    """Measure as the gate does; return the report and the figures that a policy can limit."""
    report, statistics = measure_anonymity(anonymization, CONTRACT, table, "person", losses)
    return report, figures_of(ANONYMITY, {ANONYMITY: report.to_header(), STATISTICS: statistics})


def test_figures_are_those_of_a_group_by_over_the_released_columns():
    table = visits()
    anonymization = anonymized(table)
    losses = require_measured(anonymization, table)
    report, figures = measured(anonymization, table, losses)
    known = ["age", "age_low", "age_high", "age_missing", "job", "job_values"]
    rows = anonymization.members["row"].to_numpy()
    groups = anonymization.table.assign(whose=table["person"].to_numpy()[rows]).groupby(
        known, observed=True, dropna=False
    )
    assert figures["smallest_class"] == groups["whose"].nunique().min() >= 4
    assert figures["l_diversity"] == groups["illness"].nunique().min()
    certain = groups["illness"].nunique().eq(1)
    assert figures["share_in_homogeneous_classes"] == pytest.approx(groups.size()[certain].sum() / len(table))
    shares = table["illness"].value_counts(normalize=True)
    distance = max(
        (group.value_counts(normalize=True).reindex(shares.index, fill_value=0) - shares).abs().sum() / 2
        for _, group in groups["illness"]
    )
    assert figures["t_closeness"] == pytest.approx(distance)
    assert figures["suppressed_share"] == 0
    assert figures["information_loss"] == pytest.approx(anonymization.stats["information_loss"], abs=1e-12)
    assert report.n_classes == groups.ngroups


def test_a_limit_sees_the_loss_of_cells_and_not_that_of_the_values_in_them():
    table = visits()
    found = {bounds: anonymized(table, bounds=bounds) for bounds in ("tight", "cell")}
    figures = {}
    for bounds, own in found.items():
        losses = require_measured(own, table)
        figures[bounds] = measured(own, table, losses)[1]["information_loss"]
        assert figures[bounds] == pytest.approx(own.stats["information_loss"], abs=1e-12)
    # Both have the same classes; cells were admitted by the loss of tight bounds.
    assert found["cell"].classes["rows"].equals(found["tight"].classes["rows"])
    assert figures["cell"] > 1.02 * figures["tight"]
    with pytest.raises(InvalidTableError, match="The stored figures differ from those of the table"):
        require_measured(replace(found["cell"], stats=found["tight"].stats), table)


def test_records_that_were_left_out_are_counted():
    # Smiths have one illness and are most people: no class of theirs, nor the whole table, is diverse.
    table = visits(300).assign(job=["smith"] * 180 + ["cook"] * 120)
    table["illness"] = np.where(table["job"] == "smith", "flu", np.array(list("abcdef"))[np.arange(300) % 6])
    anonymization = anonymized(table, k=2, l_diversity=LDiversity(2, "recursive", 1.5), max_suppression=0.9)
    assert 180 <= anonymization.stats["n_suppressed"] < 300
    _, figures = measured(anonymization, table)
    assert figures["suppressed_share"] == pytest.approx(anonymization.stats["n_suppressed"] / 300)
    assert figures["l_diversity"] >= 2


@pytest.mark.parametrize(
    "index", [pd.RangeIndex(1, 61), pd.RangeIndex(60, 0, -1), pd.Index([0] * 60), pd.Index(["a", "b"] * 30), None]
)
def test_the_index_of_the_released_table_changes_no_figure(index):
    table = visits(60)
    anonymization = anonymized(table)
    labels = pd.MultiIndex.from_product([range(6), range(10)]) if index is None else index
    indexed = replace(anonymization, table=anonymization.table.set_axis(labels))
    expected = measured(anonymization, table)[1]
    assert measured(indexed, table)[1] == expected


def test_a_column_that_the_contract_does_not_know_counts_as_known_to_an_attacker():
    table = visits()
    anonymization = anonymized(table)
    numbered = replace(anonymization, table=anonymization.table.assign(row_number=range(len(table))))
    _, figures = measured(numbered, table)
    assert figures["smallest_class"] == 1


def test_a_table_that_does_not_fit_its_description_is_not_measured():
    table = visits()
    anonymization = anonymized(table)
    shorter = replace(anonymization, table=anonymization.table.iloc[1:])
    with pytest.raises(InvalidTableError, match="number of rows of the anonymized table differs from its description"):
        measure_anonymity(shorter, CONTRACT, table, "person")
    with pytest.raises(InvalidTableError, match="number of rows of the anonymized table differs from its description"):
        measure_anonymity(anonymization, CONTRACT, table.iloc[1:], "person")
    with pytest.raises(InvalidTableError, match="lacks the person column"):
        measure_anonymity(anonymization, CONTRACT, table.drop(columns="person"), "person")


MODELS = {
    "k": ({}, {"k": 40}, "smallest class has .* people, expected at least 40"),
    "distinct": ({"l_diversity": 2}, {"least": 4.0}, "distinct l is .*, expected at least 4 in column 'illness'"),
    "entropy": (
        {"l_diversity": LDiversity(1.5, "entropy")},
        {"least": 2.99999},
        "entropy l is .*, expected at least 2.99999",
    ),
    "recursive": (
        {"l_diversity": LDiversity(2, "recursive", 3.0)},
        {"c": 0.4},
        r"recursive \(0.4, 2\)-diversity is not satisfied",
    ),
    "recursive of all": (
        {"l_diversity": LDiversity(1, "recursive", 0.99)},
        {"c": 0.1},
        r"recursive \(0.1, 1\)-diversity is not satisfied",
    ),
    "t": ({"t_closeness": 0.5}, {"illness": 0.01}, "distance is .*, expected at most 0.01, in column 'illness'"),
}


@pytest.mark.parametrize("model", MODELS)
def test_models_that_hold_are_told_from_models_that_do_not(model):
    asked, forged, sentence = MODELS[model]
    table = visits()
    anonymization = anonymized(table, **asked)
    report, _ = measure_anonymity(anonymization, CONTRACT, table, "person")
    assert models_that_fail(anonymization, report) == []
    settings = dict(anonymization.settings)
    if model == "k":
        settings |= forged
    elif model == "t":
        settings["t_closeness"] = forged
    else:
        settings["l_diversity"] = {"illness": settings["l_diversity"]["illness"] | forged}
    failed = models_that_fail(replace(anonymization, settings=settings), report)
    assert len(failed) == 1
    assert re.search(sentence, failed[0])


def test_recursive_diversity_beyond_ten_is_measured_where_it_is_asked_for():
    table = visits(400).assign(illness=[f"illness {i % 17}" for i in range(len(visits(400)))])
    anonymization = anonymized(table, l_diversity=LDiversity(12, "recursive", 5.0))
    report, _ = measure_anonymity(anonymization, CONTRACT, table, "person")
    assert models_that_fail(anonymization, report) == []
    asked = {"illness": {"least": 12.0, "kind": "recursive", "c": 0.1}}
    other = replace(anonymization, settings=anonymization.settings | {"l_diversity": asked})
    assert models_that_fail(other, report) == ["recursive (0.1, 12)-diversity is not satisfied in column 'illness'"]
    known = [name for name in anonymization.table.columns if name not in ("illness", "note")]
    unmeasured = verify_anonymity(anonymization.table, known, ["illness"])
    unmeasured = replace(unmeasured, k_people=unmeasured.k)
    assert "cannot be verified, because l was only measured up to 10" in models_that_fail(anonymization, unmeasured)[0]


EVERY_TYPE = TableContract.from_mapping(
    {
        "one_row_per_person": True,
        "columns": {
            "age": {"type": "integer", "role": "quasi_identifier", "nullable": True, "min": 0, "max": 120},
            "ward": {"type": "category", "role": "other", "nullable": True},
            "plan": {"type": "category", "role": "other", "categories": ["free", "family", "single"]},
            "seen": {"type": "datetime", "role": "other", "nullable": True},
            "note": {"type": "text", "role": "other", "nullable": True},
            "cost": {"type": "float", "role": "other", "nullable": True},
            "is_new": {"type": "boolean", "role": "other", "nullable": True},
        },
    }
)
CHANGES = {
    "none": {},
    "a value out of range in one batch": {"age": pd.array([None] * 11 + [130], "Int64")},
    "a category that is not listed": {"plan": pd.Categorical(["free"] * 11 + ["other"])},
    "other integers": {"age": np.arange(12)},
    "texts instead of categories": {"ward": [f"ward {i}" for i in range(12)]},
    "a missing category": {"plan": pd.Categorical(["free"] * 11 + [None], ["free", "family", "single"])},
    "a time zone": {"seen": pd.date_range("2024-01-01", periods=12, tz="Europe/Berlin")},
    "nothing but missing values": {"note": pd.array([None] * 12, "str"), "cost": [np.nan] * 12},
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("is_stored", [False, True])
def test_batches_keep_the_contract_if_the_whole_table_does(change, is_stored, tmp_path, monkeypatch):
    monkeypatch.setattr(table, "ROWS_PER_BATCH", 3)
    rows = EVERY_TYPE.admit(
        pd.DataFrame(
            {
                "age": pd.array([*range(20, 26), None, None, None, 31, 32, 33], "Int64"),
                "ward": ["a", "a", "a", "b", "b", None, "c", "c", "c", None, None, None],
                "plan": ["free"] * 6 + ["family"] * 3 + ["single"] * 3,
                "seen": pd.to_datetime(["2024-01-01"] * 6 + [None] * 6),
                "note": [None] * 6 + ["x"] * 6,
                "cost": [0.5, np.nan] * 6,
                "is_new": pd.array([True, None, False] * 4, "boolean"),
            }
        )
    )
    anonymization = anonymize(rows, quasi_identifiers=["age"], k=2)
    made_of = rows.assign(**CHANGES[change])
    try:
        expected = fingerprint(EVERY_TYPE.admit_synthetic(made_of)) == fingerprint(made_of)
    except ContractError:
        expected = False
    assert expected == (change in ("none", "other integers", "texts instead of categories"))
    given = table.store([made_of], tmp_path) if is_stored else made_of
    assert keeps_the_contract(anonymization, EVERY_TYPE, given, None) == expected


def test_todays_contract_is_asked_for_roles_columns_and_values():
    table = visits()
    anonymization = anonymized(table)
    assert keeps_the_contract(anonymization, CONTRACT, table, "person")
    assert not keeps_the_contract(anonymization, CONTRACT, table, None)
    assert not keeps_the_contract(anonymization, CONTRACT, table.drop(columns="person"), "person")
    assert not keeps_the_contract(anonymization, CONTRACT, table.assign(extra=1), "person")
    assert not keeps_the_contract(anonymization, CONTRACT, table.assign(age=-1), "person")
    exact = replace(anonymization, table=anonymization.table.drop(columns="job_values"))
    assert not keeps_the_contract(exact, CONTRACT, table, "person")
    fewer = anonymize(table, quasi_identifiers=["age"], k=4, sensitive=["illness"], subject="person")
    assert not keeps_the_contract(fewer, CONTRACT, table, "person")


def test_columns_are_described_with_what_they_tell_of():
    anonymization = anonymized(visits())
    described = describe_columns(anonymization, CONTRACT)
    assert [each["column"] for each in described] == list(anonymization.table.columns)
    assert {each["column"]: each.get("generalizes") for each in described} == {
        "age": "age",
        "age_low": "age",
        "age_high": "age",
        "age_missing": "age",
        "job": "job",
        "job_values": "job",
        "illness": None,
        "note": None,
    }
    assert columns_telling_of("job", anonymization.model) == ("job", "job_values")
    assert {each["role"] for each in described} == {"quasi_identifier", "sensitive", "other"}
