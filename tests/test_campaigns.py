"""The campaigns of `benchmarks/campaigns` at 1 % of their length, and that they would find what they look for."""

import json
from collections import Counter
from dataclasses import asdict

import pytest

from tests.shared_data import REPOSITORY

if not (REPOSITORY / "benchmarks" / "campaigns").exists():
    pytest.skip("the campaigns are not beside these tests", allow_module_level=True)

from benchmarks.campaigns import full_disk, kill, releases


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
