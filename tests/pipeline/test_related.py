"""What is counted over all tables is the sum of slow counts."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import Child, RelatedTables
from privacy_assets.contract.related_contracts import Linked, RelatedContracts
from privacy_assets.contract.views import columns_of_views, related_views
from privacy_assets.disclosure.column_examination import examine_columns
from privacy_assets.errors import InvalidTableError
from privacy_assets.mpucc.assess import assess_mpuccs
from privacy_assets.mpucc.settings import MpuccSettings
from privacy_assets.mpucc.views import MpuccOfViews, assess_views
from privacy_assets.pipeline.related import (
    prepared_views,
    rare_values_of_related,
    rule_violations_of_related,
)
from privacy_assets.release.policy import Limit
from privacy_assets.storage.artifact_files import read_artifact, write_artifact
from tests.orchestration.related_project import (
    DRUGS_CONTRACT,
    LINES_CONTRACT,
    NUMBERED_VISITS_CONTRACT,
    PEOPLE_CONTRACT,
    POLICY,
    VISITS_CONTRACT,
)
from tests.related import clinic, of_visits, with_lines

RULES = {"people": {"adult": "age >= 30"}, "visits": {"cheap": "cost <= 40", "paid": "paid or cost <= 60"}}
CONTRACTS = RelatedContracts.of(
    TableContract.from_mapping({**PEOPLE_CONTRACT, "rules": RULES["people"]}),
    {
        "visits": Linked({**VISITS_CONTRACT, "rules": RULES["visits"]}, "patient", "date"),
        "drugs": Linked(DRUGS_CONTRACT, "patient"),
    },
)
PLAIN = RelatedContracts.of(
    TableContract.from_mapping(PEOPLE_CONTRACT),
    {"visits": Linked(VISITS_CONTRACT, "patient", "date"), "drugs": Linked(DRUGS_CONTRACT, "patient")},
)


def admitted(seed, n=80, change=lambda tables: tables):
    return PLAIN.related(PLAIN.check(change(clinic(n, seed).tables))).renumbered()


def with_rare(tables):
    drugs, visits = tables["drugs"].copy(), tables["visits"].copy()
    drugs.loc[:4, "drug"] = ["r1", "r1", "r2", "r3", "r3"]
    visits.loc[:1, "diagnosis"] = ["q1", "q1"]
    return {**tables, "drugs": drugs, "visits": visits}


def test_rare_values_are_those_of_each_table_by_person():
    original, control, made = admitted(1, change=with_rare), admitted(2), admitted(3, change=with_rare)
    found = rare_values_of_related(POLICY, PLAIN, made, [original, control])
    n_rare = n_rows = 0
    for name, column in (("people", "sex"), ("visits", "diagnosis"), ("drugs", "drug")):
        key = made.keys[name]
        people = pd.concat(
            [
                own.tables[name].assign(**{key: own.tables[name][key] + own_people})
                for own, own_people in ((original, 0), (control, 10_000))
            ]
        )
        few = {value for value, own in people.groupby(column, observed=True)[key] if own.nunique() < 3}
        released = set(made.tables[name][column]) & few
        assert found.by_column[f"{name}: {column}"].n_values == len(released)
        n_rare += len(released)
        n_rows += int(made.tables[name][column].isin(released).sum())
    assert found.total == n_rare > 1
    assert found.n_records == n_rows


def test_violations_are_summed_over_the_tables_with_rules():
    original, control, made = admitted(1), admitted(2), admitted(3)
    policy = replace(POLICY, limits=(*POLICY.limits, Limit("rule_violations", 0)))
    found = rule_violations_of_related(policy, CONTRACTS, made, [original, control])
    visits, people = made.tables["visits"], made.tables["people"]
    of_visits_ = [
        not (cost <= 40 and (paid or cost <= 60)) for cost, paid in zip(visits["cost"], visits["paid"], strict=True)
    ]
    n_broken = sum(age < 30 for age in people["age"]) + sum(of_visits_)
    assert (found.n_violating, found.n_records) == (n_broken, len(visits) + len(people))
    assert found.share == n_broken / (len(visits) + len(people))
    assert list(found.by_rule) == ["people: adult", "visits: cheap", "visits: paid"]
    assert found.by_rule["visits: cheap"]["original"] == int((original.tables["visits"]["cost"] > 40).sum())
    assert rule_violations_of_related(policy, PLAIN, made, [original, control]) is None
    assert rule_violations_of_related(POLICY, CONTRACTS, made, [original, control]) is None


DEEP = RelatedContracts.of(
    TableContract.from_mapping(PEOPLE_CONTRACT),
    {
        "lines": Linked(LINES_CONTRACT, "visit", "line", "visits"),
        "visits": Linked(NUMBERED_VISITS_CONTRACT, "patient", "date", own_key="visit"),
    },
)


def admitted_deep(seed, n=80, change=lambda lines: lines):
    tables = with_lines(clinic(n, seed), seed).tables
    return DEEP.related(DEEP.check({**tables, "lines": change(tables["lines"])})).renumbered()


def test_values_of_rows_of_rows_are_rare_by_person():
    """A value in the bills of four visits of one person is of one person."""
    tables = with_lines(clinic(80, 1), 1)
    whose = tables.whose["lines"]
    n_visits = pd.Series(tables.children["lines"].table["visit"]).groupby(whose).nunique()
    assert n_visits.max() >= 4
    is_own = whose == n_visits.idxmax()
    original = admitted_deep(1, change=lambda lines: lines.assign(item=lines["item"].where(~is_own, "only")))
    made = admitted_deep(3, change=lambda lines: lines.assign(item=lines["item"].where(lines.index > 5, "only")))
    control = admitted_deep(2)
    found = rare_values_of_related(POLICY, DEEP, made, [original, control])
    assert found.by_column["lines: item"].n_values == 1
    common = admitted_deep(1, change=lambda lines: lines.assign(item=lines["item"].where(whose % 5 > 0, "only")))
    assert rare_values_of_related(POLICY, DEEP, made, [common, control]).by_column["lines: item"].n_values == 0


def test_columns_of_rows_of_rows_are_examined_by_person():
    tables = admitted_deep(1)
    (found,) = examine_columns(tables, {"lines: item": "sensitive"})
    lines, visits = tables.tables["lines"], tables.tables["visits"]
    of_visit = dict(zip(visits["visit"], visits["patient"], strict=True))
    people = {}
    for visit, item in zip(lines["visit"], lines["item"], strict=True):
        people.setdefault(item, set()).add(of_visit[visit])
    alone = [item for item, own in people.items() if len(own) == 1]
    assert found.share_alone == sum(item in alone for item in lines["item"]) / len(lines)
    own = tables.map(lambda name, table: table.assign(item=table["visit"].map(of_visit)) if name == "lines" else table)
    assert examine_columns(own, {"lines: item": "sensitive"})[0].share_alone == 1


def test_made_tables_without_a_key_of_the_contract_are_refused():
    made = admitted_deep(3)
    renamed = {name: own.table.rename(columns={"visit": "stay"}) for name, own in made.children.items()}
    children = {
        "lines": replace(made.children["lines"], table=renamed["lines"], key="stay"),
        "visits": replace(made.children["visits"], table=renamed["visits"], own_key="stay"),
    }
    with pytest.raises(InvalidTableError, match=r"lack keys: \{'lines': \['visit'\], 'visits': \['visit'\]\}"):
        DEEP.admit_synthetic(replace(made, children=children))


def test_the_content_of_one_level_is_what_it_was():
    """Releases of before rows had rows stay comparable."""
    people = pd.DataFrame({"id": [1, 2, 3], "age": [30, 40, 50]})
    visits = pd.DataFrame({"id": [1, 1, 3], "day": [5, 2, 9], "cost": [1.5, 2.0, 0.25]})
    tables = RelatedTables(people, {"visits": Child(visits, "id", "day")}, "id")
    assert tables.content == "d09c15d2097f8c587ab4aed484910a9ece1de9ddd1d36b27991da4fbbfe3d8ab"


@pytest.fixture(scope="module")
def sides():
    everybody = admitted(1, 260)
    return everybody.take(np.arange(130)), admitted(3, 130), everybody.take(np.arange(130, 260))


def test_every_view_is_assessed_like_a_table_of_its_own(sides, tmp_path):
    settings = MpuccSettings(n_matched_samples=1)
    views = prepared_views(PLAIN, sides)
    assert list(views) == list(columns_of_views(sides))
    found = assess_views(views, settings, lambda view: lambda progress: None)
    for name in ("people", "histories of visits"):
        original, made, control = (related_views(own)[name] for own in sides)
        alone = assess_mpuccs(
            original,
            made.drop(columns="patient"),
            control,
            person="patient",
            max_baseline_cols=min(3, original.shape[1] - 1),
            n_matched_samples=1,
        )
        assert found.figures[name] == alone.scores
    write_artifact(tmp_path / "a", found.to_artifact())
    stored = read_artifact(tmp_path / "a")
    assert stored.digest == found.to_artifact().digest
    read = MpuccOfViews.from_artifact(stored)
    assert read.figures == found.figures
    assert read.settings == found.settings
    assert read.settings["foreign"] == ""
    assert read.settings["n_people"] == {"original": 130, "control": 130}


def test_a_view_without_records_on_a_side_is_left_out(sides):
    original, made, control = sides
    without = of_visits(made, table=made.children["visits"].table.drop_duplicates("patient"))
    one_row_each = replace(made, children={"visits": without.children["visits"], "drugs": made.children["drugs"]})
    views = columns_of_views([original, one_row_each, control])
    assert list(views) == ["people", "rows of visits", "rows of drugs", "histories of drugs"]
    assert views["rows of drugs"] == ("age", "sex", "drug")


def test_reflected_tables_cannot_be_compared_with_people(sides):
    original, _, control = sides
    reflected = original.map(
        lambda name, own: own.assign(cost=own["cost"].max() - own["cost"] + 1e4) if name == "visits" else own
    )
    views = prepared_views(PLAIN, (original, reflected, control))
    assert views["rows of visits"].unknown_values["cost"]["blind"]
    assert not views["rows of drugs"].unknown_values["drug"]["blind"]


def test_whether_rows_are_peoples_is_judged_by_any_row_of_each_person(monkeypatch):
    """Copies that are changed in all rows but the last would otherwise be compared by the last."""
    tables = [clinic(200, seed, mean_visits=6.0) for seed in (1, 2, 3)]
    tables[2] = tables[2].map(lambda _, own: own.assign(patient="c" + own["patient"]))
    judged = []
    monkeypatch.setattr("privacy_assets.pipeline.related.why_foreign", lambda *own: judged.append(own) or "")
    prepared_views(PLAIN, tables)
    rows = next(own[0] for own in judged if "gap of date" in own[0])
    every = related_views(tables[0])["rows of visits"]
    assert len(rows) == every["patient"].nunique() == 200
    last = every.drop_duplicates("patient", keep="last")[["date", "cost"]]
    n_last = len(rows.merge(last.dropna().drop_duplicates(), on=["date", "cost"]))
    assert n_last < 0.6 * len(last)
    # The same rows each time.
    prepared_views(PLAIN, tables)
    pd.testing.assert_frame_equal(rows, next(own[0] for own in reversed(judged) if "gap of date" in own[0]))
