"""The campaigns of `benchmarks/campaigns` at 1 % of their length, and that they would find what they look for."""

import json
import re
from collections import Counter
from dataclasses import asdict, replace

import pytest

from tests.shared_data import REPOSITORY

if not (REPOSITORY / "benchmarks" / "campaigns").exists():
    pytest.skip("the campaigns are not beside these tests", allow_module_level=True)

from benchmarks import result_tables
from benchmarks.campaigns import full_disk, kill, mutants, releases, undoable
from benchmarks.campaigns.undoable_changes import (
    DILUTION,
    LATER,
    MORE,
    ORDER,
    SPELLING,
    TRANSFORMATIONS,
)
from benchmarks.campaigns.undoable_tables import LINKED, SEPARATE
from privacy_assets import __version__
from privacy_assets.release.metrics import METRICS, SIDES


def found(counts):
    return Counter({name: counts[name] for name in releases.OUTCOMES if counts[name]})


def test_ten_kills_leave_whole_releases_and_lose_none():
    counts = kill.campaign(10, seed=1)
    assert found(counts) == Counter()
    assert counts["killed"] >= 5
    assert counts["by operation"] + counts["by time"] == 10


@pytest.mark.parametrize("by_size", [False, True])
def test_a_full_disk_leaves_whole_releases_and_loses_none(by_size):
    counts = full_disk.campaign(2, seed=3, by_size=by_size)
    assert found(counts) == Counter()
    assert counts["ended by a signal"] == 0


def careless_release(directory, table, content, record, *_):
    """Write a release in its place, file by file."""
    final = directory / content[:12]
    final.mkdir(parents=True, exist_ok=True)
    (directory / "latest").unlink(missing_ok=True)
    (directory / "latest").symlink_to(final.name)
    table.to_parquet(final / f"{record.stage}.parquet")
    (final / "manifest.json").write_text(json.dumps(asdict(record), default=str))


def test_the_campaign_finds_releases_that_are_written_in_their_place(monkeypatch):
    write = releases.write_release
    n_written = 0

    def careless_later(*arguments):
        # The first is as it should be: there is something to lose.
        nonlocal n_written
        n_written += 1
        (write if n_written <= 1 else careless_release)(*arguments)

    monkeypatch.setattr(releases, "write_release", careless_later)
    counts = kill.campaign(1, seed=0, with_runs=False) + full_disk.campaign(1, seed=0)
    assert counts["partial"] + counts["unverified"] > 0


def test_changes_that_a_recipient_can_undo_make_no_verdict_better():
    done = list(undoable.campaign(["anes96"], share=8, families=(*undoable.NOTHING, *undoable.EVERYTHING)))
    failed = [pair for pair in done if pair.outcome in undoable.FAILURES]
    assert failed == []
    assert len(done) >= 30
    assert len({pair.transformation.family for pair in done}) >= 10


def test_copies_that_are_filtered_moved_or_taken_apart_stay_refused():
    done = list(undoable.campaign(["anes96"], share=50, families=undoable.HIDDEN))
    assert [pair for pair in done if pair.outcome in undoable.FAILURES] == []
    assert {pair.transformation.family for pair in done} == set(undoable.HIDDEN)


def test_rows_of_a_person_that_are_linked_or_counted_apart_are_seen():
    done = list(undoable.campaign(["anes96", "ratings", "visits"], share=60, families=[LINKED, SEPARATE]))
    assert [pair for pair in done if pair.outcome not in ("refused", "worse")] == []
    expected = {each.name for each in TRANSFORMATIONS if each.family in (LINKED, SEPARATE)}
    assert {pair.transformation.name for pair in done} == expected


def test_the_campaign_finds_a_link_that_no_condition_sees(monkeypatch):
    monkeypatch.setattr(undoable, "links_of", lambda *_: ())
    done = undoable.campaign(["ratings"], families=[LINKED])
    outcomes = {pair.transformation.name: pair.outcome for pair in done}
    assert outcomes["a key of each person released"] == "better"


OF_STRANGERS = {
    "score_of_strangers": 0.02,
    "score_of_related_columns": 0.0,
    "score_of_strangers_on_related_columns": 0.0,
}


def assessed(p_value=0.001, sentences=(), **figures):
    return undoable.Assessed("synthetic", OF_STRANGERS | figures, dict(sentences), p_value)


@pytest.mark.parametrize(
    ("before", "after", "family", "outcome"),
    [
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.4), SPELLING, "equal"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.39), ORDER, "changed"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=None), ORDER, "changed"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.0), SPELLING, "better"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.34), MORE, "better"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.5), MORE, "worse"),
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=None), SPELLING, "unexplained"),
        (
            assessed(privacy_risk_score=0.4),
            assessed(privacy_risk_score=None, sentences={"privacy_risk_score": "Column 'zip' is blind."}),
            SPELLING,
            "refused",
        ),
        (assessed(leakage_detected=1.0), assessed(leakage_detected=0.0), MORE, "better"),
        (assessed(0.04, leakage_detected=1.0), assessed(leakage_detected=0.0), MORE, "equal"),
        # A figure of which nothing is promised may move, but not open the gate for a leak.
        (assessed(privacy_risk_score=0.4), assessed(privacy_risk_score=0.02), DILUTION, "equal"),
        (
            assessed(privacy_risk_score=0.4, leakage_detected=1.0),
            assessed(privacy_risk_score=0.02, leakage_detected=0.0),
            DILUTION,
            "better",
        ),
    ],
)
def test_the_outcome_of_a_pair_is_that_of_the_verdict(before, after, family, outcome):
    assert undoable.compare(before, after, family, n_drawn=1_000 if family == MORE else 0)[0] == outcome


@pytest.mark.parametrize(
    ("before", "after", "seen_by", "outcome"),
    [
        ({}, {"refusals": {"a condition": "said"}}, "a condition", "refused"),
        ({}, {"refusals": {"another": "said"}}, "a condition", "better"),
        ({"refusals": {"a condition": "said"}}, {"refusals": {"a condition": "said"}}, "a condition", "unexplained"),
        ({"figures": {"smallest_class": 11}}, {"figures": {"smallest_class": 4}}, "smallest_class", "worse"),
        ({"figures": {"smallest_class": 11}}, {"figures": {"smallest_class": 11}}, "smallest_class", "better"),
    ],
)
def test_what_must_be_seen_is_refused_or_makes_a_figure_worse(before, after, seen_by, outcome):
    sides = [undoable.Assessed("anonymized", **own) for own in (before, after)]
    assert undoable.compare(*sides, LINKED, seen_by=seen_by)[0] == outcome


def test_the_campaign_finds_what_makes_a_verdict_better(monkeypatch):
    def shuffled(release, random):
        columns = {name: random.permutation(column) for name, column in release.synthetic.items()}
        return replace(release, synthetic=release.synthetic.assign(**columns))

    evasion = undoable.Transformation("shuffled columns", ORDER, "removal", shuffled)
    monkeypatch.setattr(undoable, "TRANSFORMATIONS", (evasion,))
    (pair,) = undoable.examine([undoable.Pair("registry", "copies of 100 %", 0)], 0.3)
    assert pair.outcome in ("better", "changed")


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_declares_what_each_family_of_changes_may_do_to_it(name):
    promise = undoable.PROMISES[name]
    families = (
        undoable.FAMILIES
        if SIDES[METRICS[name].assessment] == "synthetic"
        else {each.family for each in TRANSFORMATIONS if each.form == "anonymized"}
    )
    for family in families:
        kinds = [family in promise.equal, family in promise.not_better, bool(promise.none.get(family))]
        assert sum(kinds) == 1, family
    assert set(undoable.PROMISES) == set(METRICS)


def test_every_change_has_a_name_and_what_undoes_it():
    names = [(each.form, each.name) for each in TRANSFORMATIONS]
    assert len(set(names)) == len(names)
    assert all(each.undone_by and each.family in undoable.FAMILIES for each in TRANSFORMATIONS)
    assert all(each.undone_by and each.missing for each in LATER)


def test_the_page_has_every_change_and_counts_every_pair_of_the_kept_run_once():
    page = (REPOSITORY / "docs" / "threat-model.md").read_text(encoding="utf-8")
    told = page[page.index("## What a recipient can undo") :]
    assert {"changes_tried", "changes_not_tried"} <= set(re.findall(r"<!-- generated: (\w+) -->", told))
    tried, not_tried = result_tables.changes_tried(), result_tables.changes_not_tried()
    assert {each.name for each in TRANSFORMATIONS if each.name not in tried} == set()
    assert {each.name for each in LATER if each.name not in not_tried} == set()
    kept = json.loads((result_tables.RESULTS / __version__ / "undoable.json").read_text(encoding="utf-8"))["figures"]
    counts = re.findall(r"(?m) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", tried)
    sums = [sum(int(count.replace(",", "")) for count in column) for column in zip(*counts, strict=True)]
    assert sums == [kept["pairs"], kept["equal"], kept["worse"], kept["refused"], 0]
    assert f"**{kept['pairs']:,} pairs**" in told


def test_every_figure_of_the_tables_of_results_is_in_its_table_and_every_table_has_its_page():
    pages = "".join(path.read_text(encoding="utf-8") for path in sorted((REPOSITORY / "docs").rglob("*.md")))
    for name in result_tables.TABLES:
        assert pages.count(f"<!-- generated: {name} -->\n") == 1
    peers = result_tables.figures_of("disclosure_peers").values()
    assert sorted(numbers(result_tables.leaks_seen())) == sorted(peers)
    leaks = result_tables.figures_of("disclosure_leaks")
    assert len(result_tables.leaks_by_table().splitlines()) == 2 + len(
        {name.split("_")[1] for name in leaks} - {"all", "aside", "by"}
    )


def numbers(table):
    """Return the numbers that fill a cell of a table."""
    return [float(cell) for row in table.splitlines()[2:] for cell in re.findall(r"(?<=\| )-?[\d.]+(?= \|)", row)]


def test_every_change_of_the_gate_has_its_place_and_tests():
    assert mutants.problems(mutants.MUTANTS, REPOSITORY / "privacy_assets") == []
    named = [test.partition(" -k ")[0] for mutant in mutants.MUTANTS for test in mutant.tests]
    assert [test for test in set(named) if not (REPOSITORY / test).is_file()] == []
    assert all(mutant.tests and mutant.original != mutant.changed for mutant in mutants.MUTANTS)


WRONG_SUM = mutants.Mutant("", "return one + other", "return one - other", ("tests/test_sum.py -k sum",))
UNSEEN = mutants.Mutant("", "return one + other", "return other + one", ("tests/test_sum.py",))


@pytest.fixture
def sums(tmp_path):
    """A repository with one function and a test of it."""
    for name in ("privacy_assets", "tests"):
        (tmp_path / name).mkdir()
    for name in ("pyproject.toml", "dagster.yaml", "workspace.yaml"):
        (tmp_path / name).touch()
    (tmp_path / "privacy_assets" / "__init__.py").write_text("def add(one, other):\n    return one + other\n")
    test = "from privacy_assets import add\n\n\ndef test_sum():\n    assert add(1, 2) == 3\n"
    (tmp_path / "tests" / "test_sum.py").write_text(test)
    return tmp_path


def test_a_change_that_a_test_sees_is_killed_and_another_survives_and_the_sources_stay(sums):
    source = (sums / "privacy_assets" / "__init__.py").read_text()
    found = [(test, is_noticed) for _, _, test, is_noticed in mutants.campaign([WRONG_SUM, UNSEEN], sums)]
    assert found == [("tests/test_sum.py -k sum", True), ("tests/test_sum.py", False)]
    assert (sums / "privacy_assets" / "__init__.py").read_text() == source


def test_a_change_without_its_place_and_a_test_that_fails_anyway_are_said(sums):
    twice = mutants.Mutant("", "o", "x", ("tests/test_sum.py",))
    with pytest.raises(SystemExit, match="has 'o' [0-9]+ times .*; expected once"):
        list(mutants.campaign([twice], sums))
    (sums / "tests" / "test_sum.py").write_text("def test_sum():\n    assert False\n")
    with pytest.raises(SystemExit, match="fails without any change. No change was tried"):
        list(mutants.campaign([WRONG_SUM], sums))
    none = WRONG_SUM._replace(tests=("tests/test_sum.py -k other",))
    with pytest.raises(RuntimeError, match="could not be run"):
        list(mutants.campaign([none], sums))
