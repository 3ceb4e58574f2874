import numpy as np
import pandas as pd
import pytest

import privacy_assets as pa
from privacy_assets.errors import InvalidSettingError
from privacy_assets.reidentification import CandidateIndex
from privacy_assets.reidentification.linked_rows import LinkedRows, read_known_rows


def purchases(n_people=60, n_each=4):
    """Rows of people with a pseudonym, and an illness that is the same in all rows of a person."""
    random = np.random.default_rng(0)
    customer = np.repeat(np.arange(n_people), n_each)
    return pd.DataFrame(
        {
            "customer": customer,
            "age": random.integers(20, 60, len(customer)),
            "item": random.choice(["a", "b", "c"], len(customer)),
            "pseudonym": random.permutation(n_people)[customer],
            "illness": random.choice(6, n_people)[customer],
        }
    )


@pytest.fixture(scope="module")
def release():
    table = purchases()
    return table, pa.anonymize(table, quasi_identifiers=["age", "item"], k=5, subject="customer", sensitive=["illness"])


def test_scores_are_the_worst_up_to_the_known_rows(release):
    table, cut = release
    alone = pa.assess_reidentification(table, cut)
    assert alone.scores["max_reidentification_probability"] <= 0.2
    assert (alone.curve["n_rows"] == 1).all() and alone.settings["known_rows"] == 1 and alone.settings["links"] == []
    assert pa.assess_reidentification(table, cut, links=["pseudonym"]).curve.equals(alone.curve)
    linked = pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows=3)
    several = linked.curve[linked.curve["n_rows"] > 1]
    assert several["n_rows"].tolist() == [2, 3] and set(several["chosen_as"]) == {"linked"}
    assert linked.scores["max_reidentification_probability"] == 1.0 and linked.scores["fewest_candidates"] == 1
    for name in ("mean_reidentification_probability", "share_of_singletons", "share_below_k"):
        assert linked.scores[name] == several[name].max() > alone.scores[name]
        assert (several[f"{name}_low"] <= several[name]).all() and (several[name] <= several[f"{name}_high"]).all()
    assert linked.figures(["age", "item"]) == alone.figures(["age", "item"])
    assert linked.settings["known_rows"] == 3 and linked.settings["links"] == ["pseudonym"]
    assert type(linked).from_artifact(linked.to_artifact()) == linked
    assert linked == pa.assess_reidentification(
        table, cut, links=["pseudonym"], groups=cut.table["pseudonym"], known_rows=3, n_threads=1
    )


def test_more_known_rows_than_anybody_has_are_all_of_them(release):
    table, cut = release
    found = [
        pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows=known_rows).scores
        for known_rows in (4, 10**6, "all")
    ]
    assert [scores.pop("known_rows") for scores in found] == [4, 10**6, "all"]
    assert found[0] == found[1] == found[2]


def test_a_release_of_rows_has_no_rows_to_link(release):
    table, _ = release
    cut = pa.anonymize(table, quasi_identifiers=["age", "item"], k=5)
    linked = pa.assess_reidentification(table, cut, links=["pseudonym"], known_rows="all")
    alone = pa.assess_reidentification(table, cut)
    assert linked.curve.equals(alone.curve) and alone.scores.items() <= linked.scores.items()


def test_a_value_that_stays_the_same_becomes_certain(release):
    table, cut = release
    shares = []
    for known_rows in (1, 2, "all"):
        scores = pa.assess_reidentification(table, cut, known_rows=known_rows).scores
        assert scores["column_certain_by_rows"] == "illness" and scores["max_reidentification_probability"] <= 0.2
        shares.append(scores["share_certain_by_rows"])
    assert shares[0] < shares[1] < shares[2]
    changing = table.assign(illness=np.random.default_rng(1).choice(6, len(table)))
    other = pa.anonymize(changing, quasi_identifiers=["age", "item"], k=5, subject="customer", sensitive=["illness"])
    scores = pa.assess_reidentification(changing, other, known_rows=2).scores
    assert scores["share_certain_by_rows"] is None and scores["column_certain_by_rows"] is None


def test_one_row_without_links_leaves_the_candidates_of_the_index(release):
    table, cut = release
    for known in (["age", "item"], ["item"]):
        index = CandidateIndex.of_anonymization(table, cut)
        rows = read_known_rows(index.masked(known), index.truth)
        each = LinkedRows.of_groups(rows, index.people[index.truth], np.arange(index.n_released))
        sizes = each.count(np.arange(len(each.known) + 1), each.known)
        # Targets are in the order of their people.
        assert sizes.tolist() == index.sizes(known)[np.argsort(index.people[index.truth], kind="stable")].tolist()


@pytest.mark.parametrize("known_rows", [0, -1, True, 1.5, "most", None])
def test_known_rows_that_are_no_number_are_refused(release, known_rows):
    with pytest.raises(InvalidSettingError, match="known_rows"):
        pa.assess_reidentification(*release, known_rows=known_rows)


def test_links_that_are_not_released_are_refused(release):
    with pytest.raises(InvalidSettingError, match="links"):
        pa.assess_reidentification(*release, links=["customer"])
