"""Partitions compose by the maximum only while it is known that no person is in two of them."""

import json
from math import fsum

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets.cli import main
from privacy_assets.errors import PrivacyBudgetError
from privacy_assets.synthesis.private.accounting import epsilon_of, rho_of
from privacy_assets.synthesis.private.ledger import PrivacyLedger
from privacy_assets.synthesis.private.partitions import Cost, PeopleOfFits
from tests.examples import examples

DELTA = 1e-6
ONE = rho_of(1.0, DELTA)


def reserve(ledger, partition, people, *, rho=ONE, at_most=3.0, column="patient", **others):
    digest = ledger.people.keep_people(ledger.people.hashes(people), column) if people is not None else ""
    return ledger.reserve(
        rho=rho, epsilon=1.0, delta=DELTA, at_most=at_most, total_delta=DELTA, release="a", run_id="r", made_of="x",
        partition=partition, people=digest, **others,
    )  # fmt: skip


@pytest.fixture
def ledger(tmp_path):
    return PrivacyLedger(tmp_path / "privacy_budget", "people")


def test_disjoint_partitions_cost_as_much_as_the_largest(ledger, capsys):
    for number, partition in enumerate(("north", "south", "west")):
        reserve(ledger, partition, range(100 * number, 100 * number + 100), at_most=1.0)
    assert ledger.rho() == pytest.approx(ONE, abs=1e-15)
    reserve(ledger, "south", range(100, 150))
    assert ledger.rho() == pytest.approx(2 * ONE, abs=1e-15)
    with pytest.raises(PrivacyBudgetError, match=r"4 fits have spent epsilon 1\.45 .* with this one it would be 1\.81"):
        reserve(ledger, "south", range(100, 150), at_most=1.5)
    reserve(ledger, "north", range(90), at_most=1.5)
    assert main(["budget", str(ledger.directory.parent)]) == 0
    said = capsys.readouterr().out
    assert f"people: 5 fits, epsilon {epsilon_of(2 * ONE, DELTA):.3g}" in said
    assert "No person is in two partitions, so the largest epsilon of a partition counts." in said


def test_one_person_in_two_partitions_makes_everything_add_up(ledger):
    reserve(ledger, "north", range(100))
    reserve(ledger, "south", range(99, 200))
    assert ledger.rho() == pytest.approx(2 * ONE, abs=1e-15)


def test_a_person_who_moved_between_two_fits_is_found_although_no_table_has_both(ledger):
    reserve(ledger, "north", ["ann", "bob"])
    reserve(ledger, "south", ["cid"])
    assert ledger.rho() == pytest.approx(ONE, abs=1e-15)
    with pytest.raises(PrivacyBudgetError, match="is used up: 2 fits have spent epsilon 1 "):
        reserve(ledger, "south", ["bob", "cid"], at_most=1.7)
    assert ledger.rho() == pytest.approx(ONE, abs=1e-15), "nothing was spent on bob again"
    reserve(ledger, "south", ["bob", "cid"])
    assert ledger.rho() == pytest.approx(3 * ONE, abs=1e-15)


def test_what_is_of_no_known_partition_is_added_to_the_largest(ledger):
    reserve(ledger, "north", range(5))
    reserve(ledger, "south", range(5, 9))
    reserve(ledger, "east", None)
    reserve(ledger, None, range(20, 30))
    assert ledger.rho() == pytest.approx(3 * ONE, abs=1e-15)


def test_values_of_different_columns_say_nothing_about_who_is_the_same(ledger):
    reserve(ledger, "north", range(9), column="patient")
    reserve(ledger, "south", range(9, 20), column="insurance_number")
    assert ledger.rho() == pytest.approx(2 * ONE, abs=1e-15)


def fit_files(ledger):
    return [path for path in (ledger.directory / "people").iterdir() if path.suffix != ".key"]


@pytest.mark.parametrize("damage", ["delete one", "edit one", "swap", "delete all", "no key", "another key", "link"])
def test_people_that_cannot_be_trusted_make_everything_add_up(ledger, damage):
    reserve(ledger, "north", range(100))
    reserve(ledger, "south", range(100, 200))
    assert ledger.rho() == pytest.approx(ONE, abs=1e-15)
    one, other = fit_files(ledger)
    key = ledger.people.key_path
    if damage == "delete one":
        one.unlink()
    elif damage == "edit one":
        one.write_bytes(one.read_bytes()[:-8])
    elif damage == "swap":
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
    elif damage == "delete all":
        one.unlink()
        other.unlink()
    elif damage == "link":
        one.unlink()
        one.symlink_to(other)
    else:
        key.unlink()
        if damage == "another key":
            ledger.people.hashes(["ann"])
    assert ledger.rho() == pytest.approx(2 * ONE, abs=1e-15)
    with pytest.raises(PrivacyBudgetError, match="is used up"):
        reserve(ledger, "west", range(300, 400), at_most=1.1)


def test_an_entry_without_its_people_breaks_the_chain(ledger):
    reserve(ledger, "north", range(9))
    line = json.loads(ledger.path.read_text())
    for changed in (line | {"people": ""}, {name: own for name, own in line.items() if name != "people"}):
        ledger.path.write_text(json.dumps(changed) + "\n")
        with pytest.raises(PrivacyBudgetError, match="cannot be trusted"):
            ledger.entries()


def test_an_entry_without_known_people_says_so(ledger):
    reserve(ledger, "north", None)
    assert json.loads(ledger.path.read_text())["people"] == ""
    assert ledger.entries()[0].people == ""


def test_hashes_show_no_person_and_depend_on_the_key(ledger, tmp_path):
    reserve(ledger, "north", ["SENTINEL"])
    written = [path for path in ledger.directory.rglob("*") if path.is_file()]
    assert len(written) == 3
    assert all(b"SENTINEL" not in path.read_bytes() for path in written)
    assert {path.stat().st_mode & 0o077 for path in [*written, ledger.directory / "people"]} == {0}
    other = PeopleOfFits(tmp_path / "other", "people")
    assert other.hashes(["SENTINEL"]) != ledger.people.hashes(["SENTINEL"])
    assert (ledger.people.hashes([5, 6, 5]) == ledger.people.hashes(["5", "6", "5"])).all()
    assert len(np.unique(other.hashes(range(10_000)))) == 10_000


PEOPLE = st.frozensets(st.integers(0, 7), max_size=4)
FITS = st.lists(st.tuples(st.sampled_from([None, "a", "b", "c"]), st.none() | PEOPLE), max_size=6)


@settings(max_examples=examples(60), deadline=None)
@given(FITS)
def test_the_cost_is_that_of_the_slow_definition(tmp_path_factory, fits):
    store = PeopleOfFits(tmp_path_factory.mktemp("fits"), "people")
    costs = [
        Cost(
            2.0**-number,
            partition,
            "" if people is None else store.keep_people(store.hashes(sorted(people)), "patient"),
        )
        for number, (partition, people) in enumerate(fits)
    ]
    members, spent = {}, {}
    for cost, (partition, people) in zip(costs, fits, strict=True):
        if partition is not None and people is not None:
            members[partition] = members.get(partition, set()) | people
            spent[partition] = spent.get(partition, 0) + cost.rho
    everybody = [person for own in members.values() for person in own]
    total = sum(cost.rho for cost in costs)
    if len(everybody) == len(set(everybody)):
        total += max(spent.values(), default=0) - sum(spent.values())
    assert store.spent_rho(costs) == pytest.approx(total, abs=1e-15)
    assert store.spent_rho(costs) <= fsum(cost.rho for cost in costs)
