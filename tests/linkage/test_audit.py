"""The audit of a linkage method on an anonymization."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.linkage import audit as linkage_audit
from privacy_assets.linkage.audit import audit_linkage
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.extras import NEEDS_SPLINK
from tests.orchestration.project import people as project_people

KNOWN = ["age", "plan", "joined"]


def people(n=80, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "person": [f"p{number}" for number in range(n)],
            "age": rng.integers(20, 60, n),
            "plan": rng.choice(["free", "family", "single"], n),
            "joined": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 60, n), unit="D"),
            "cost": rng.integers(0, 50, n),
        }
    )


def released(table, **settings):
    settings = {"quasi_identifiers": KNOWN, "sensitive": ["cost"], "k": 5, "subject": "person"} | settings
    return anonymize(table, **settings)


def nearest_by_hand(table, anonymization):
    """Link each record to the originals nearest to the middle of its cells; return the mean chance to be right."""
    days = (table["joined"] - table["joined"].min()).dt.days
    chances = []
    for place, cells in anonymization.table.iterrows():
        age = table["age"] - (cells["age_low"] + cells["age_high"]) / 2
        ends = [(cells[end] - table["joined"].min()).days for end in ("joined_low", "joined_high")]
        possible = days[days.between(*ends)]
        day = days - (possible.min() + possible.max()) / 2
        plans = json.loads(cells["plan_values"])
        # The squared distance of a category to the centroid of some, halved.
        plan = (1 + 1 / len(plans)) / 2 - table["plan"].isin(plans) / len(plans)
        squares = (age / table["age"].std(ddof=0)) ** 2 + (day / days.std(ddof=0)) ** 2 + plan
        nearest = np.flatnonzero(np.isclose(np.sqrt(squares), np.sqrt(squares.min()), atol=1e-8))
        chances.append((anonymization.members["row"][place] in nearest) / len(nearest))
    return float(np.mean(chances))


@pytest.mark.parametrize("seed", range(3))
def test_the_nearest_originals_are_those_of_a_loop_and_candidates_those_of_the_class(seed):
    table = people(seed=seed)
    anonymization = released(table)
    found = audit_linkage(table, anonymization)
    assert found.scores["expected_correct_links"] == pytest.approx(nearest_by_hand(table, anonymization))
    sizes = []
    for cells in anonymization.table.itertuples():
        inside = table["age"].between(cells.age_low, cells.age_high)
        inside &= table["joined"].between(cells.joined_low, cells.joined_high)
        sizes.append(sum(f'"{plan}"' in cells.plan_values for plan in table["plan"][inside]))
    assert found.scores["mean_reidentification_probability"] == pytest.approx(np.mean(1 / np.array(sizes)))
    assert found.records["n_candidates"].tolist() == sizes
    counts = {name: found.scores[name] for name in ("n_audited", "n_released", "n_original")}
    assert counts == {"n_audited": 80, "n_released": 80, "n_original": 80}
    assert found.scores["abstained_share"] == found.scores["standard_error_of_correct_links"] == 0
    assert "Linkage by distance of 80 records to 80 originals is correct for " in found.summary()
    assert "drawn from" not in found.summary()


def test_known_columns_link_and_define_the_candidates():
    table = people().assign(cost=range(80))
    found = audit_linkage(table, released(table), known=["cost"])
    # Costs are released as they are, and no two are alike: whoever knows them finds everybody, and can know it.
    assert found.scores["expected_correct_links"] == found.scores["compatible_share"] == 1
    assert found.scores["share_of_singletons"] == found.scores["mean_reidentification_probability"] == 1
    assert found.scores["overclaim_share"] == 0
    assert found.settings["known"] == ["cost"]


def test_the_example_of_the_page():
    table = project_people(300, 1)
    anonymization = anonymize(table, quasi_identifiers=KNOWN, direct_identifiers=["patient"], k=5)
    found = audit_linkage(table, anonymization, known=["age", "cost"]).scores
    of_page = {"expected_correct_links": 0.32, "mean_reidentification_probability": 0.93, "compatible_share": 0.30}
    assert {name: round(found[name], 2) for name in of_page} == of_page


def test_a_sample_is_of_the_figures_of_all_and_says_how_far_it_can_be_off():
    table = people(200)
    anonymization = released(table)
    of_all = audit_linkage(table, anonymization, n_records=None)
    samples = [audit_linkage(table, anonymization, n_records=60, seed=seed) for seed in range(40)]
    for sample in samples[:5]:
        rows = sample.records["released"].to_numpy()
        assert len(rows) == 60 == len({*rows}) == sample.scores["n_audited"]
        assert sample.records.reset_index(drop=True).equals(of_all.records.iloc[rows].reset_index(drop=True))
    correct = [sample.scores["expected_correct_links"] for sample in samples]
    errors = [sample.scores["standard_error_of_correct_links"] for sample in samples]
    assert len({*correct}) > 5
    assert 0.6 < np.mean(errors) / np.std(correct) < 1.6
    assert abs(np.mean(correct) - of_all.scores["expected_correct_links"]) < np.mean(errors)
    assert "of 60 records, drawn from 200, to 200 originals" in samples[0].summary()
    again = audit_linkage(table, anonymization, n_records=60, seed=3)
    assert again.scores == samples[3].scores


def test_nodes_of_hierarchies_are_linked():
    table = people()[["person", "age", "plan", "cost"]]
    hierarchies = {
        "age": Hierarchy.from_settings({"intervals": [5, 20]}),
        "plan": Hierarchy.from_settings({"tree": {"any": ["free", "family", "single"]}}),
    }
    anonymization = released(table, quasi_identifiers=["age", "plan"], method="lattice", hierarchies=hierarchies)
    found = audit_linkage(table, anonymization, hierarchies=hierarchies)
    assert 0 < found.scores["expected_correct_links"] <= found.scores["mean_reidentification_probability"] + 0.05
    with pytest.raises(InvalidSettingError, match="has a mask with the hierarchy"):
        audit_linkage(table, replace(anonymization, hierarchies={}))


@NEEDS_SPLINK
def test_fellegi_sunter_finds_what_the_candidates_allow():
    table = people(60)
    found = audit_linkage(table, released(table), method="fellegi_sunter", n_records=40)
    assert found.scores["support_share"] == found.scores["compatible_share"] == 1
    best = found.scores["mean_reidentification_probability"]
    assert found.scores["expected_correct_links"] == pytest.approx(best, abs=0.05)
    assert "after Fellegi and Sunter of 40 records, drawn from 60," in found.summary()


def test_more_pairs_than_fellegi_sunter_takes_are_refused_before_the_work_with_what_to_write(monkeypatch):
    table = people()
    monkeypatch.setattr(linkage_audit, "MAX_PAIRS", 1000)
    with pytest.raises(InvalidSettingError, match="80 records to link and 80 originals.*n_records of at most 12"):
        audit_linkage(table, released(table), method="fellegi_sunter")


def test_the_artifact_has_the_figures_and_no_cell(tmp_path):
    table = people()
    found = audit_linkage(table, released(table), softness=0.5)
    write_artifact(tmp_path / "audit", found.to_artifact())
    read = read_artifact(tmp_path / "audit")
    assert dict(read.header) == {"scores": found.scores, "settings": found.settings}
    assert read.frames["records"].astype(found.records.dtypes).equals(found.records)
    assert {*read.frames["records"]}.isdisjoint(table)


def test_people_with_several_records_are_refused_with_counts():
    table = people().assign(person=[f"p{number // 2}" for number in range(80)])
    with pytest.raises(InvalidTableError, match="40 people have 80 of the 80 records. Expected one record per person"):
        audit_linkage(table, released(table))


def test_progress_is_reported_and_ends_the_work():
    table = people()
    with pytest.raises(ZeroDivisionError):
        audit_linkage(table, released(table), progress=lambda progress: 1 / 0)


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"method": "nearest"}, "method is 'nearest'. Expected one of distance, fellegi_sunter"),
        ({"known": []}, "`known` must be a non-empty list"),
        ({"known": "age"}, "`known` must be a non-empty list"),
        ({"known": ["age", "age"]}, "`known` must be a non-empty list of distinct"),
        ({"known": ["height"]}, r"does not describe: \['height'\]"),
        ({"n_records": 0}, "n_records is 0"),
        ({"n_records": True}, "n_records is True"),
        ({"softness": 0.0}, "softness is 0.0"),
        ({"softness": 1.0, "method": "fellegi_sunter"}, "softness is a setting of the method 'distance' only"),
        ({"seed": -1}, "seed is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(settings, match):
    table = people(20)
    with pytest.raises(InvalidSettingError, match=match):
        audit_linkage(table, released(table), **settings)


def test_another_table_than_the_one_that_was_anonymized_is_refused():
    table = people()
    with pytest.raises(InvalidTableError, match="made from 80 rows, but the original has 70"):
        audit_linkage(table[:70], released(table))
