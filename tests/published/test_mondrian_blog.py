"""Losses on the adult table against the example code of the blog on Mondrian, and against each normalization.

Source: "Privacy-Preserving Data Publishing - Part 2: Understanding Mondrian" (24 Oct 2024), section "Core Mondrian
Algorithm": records are sorted by the widest column (range in the class / range in the table), cut in halves whatever
their ties, until a half would have fewer than k records.
"""

from functools import cache

import numpy as np
import pandas as pd
import pytest

from privacy_assets.anonymization.anonymize import anonymize
from tests.published.test_mondrian_lefevre import ADULT
from tests.shared_data import REPOSITORY, shared_file

NUMBERS = ["age", "education_num", "hours_per_week", "capital_gain"]
KS = (2, 5, 10, 25, 50)


@cache
def adult():
    return pd.read_csv(shared_file("data", "adult.csv"), na_values="?", skipinitialspace=True).dropna()


def loss_of_blog(table, k):
    """Partition as the blog does; the mean width of the classes of all records."""
    points = table.to_numpy(float)
    points = (points - points.min(axis=0)) / (points.max(axis=0) - points.min(axis=0))
    waiting, lost = [points], 0.0
    while waiting:
        own = waiting.pop()
        widths = own.max(axis=0) - own.min(axis=0)
        middle = len(own) // 2
        if middle >= k:
            own = own[np.argsort(own[:, np.argmax(widths)], kind="stable")]
            waiting += [own[:middle], own[middle:]]
        else:
            lost += widths.mean() * len(own)
    return lost / len(points)


@cache
def figures(k, names, **settings):
    return anonymize(adult(), quasi_identifiers=list(names), k=k, **settings).stats


def loss(k, names, **settings):
    return figures(k, names, **settings)["information_loss"]


@pytest.mark.parametrize("k", KS)
def test_neither_strict_nor_relaxed_cuts_lose_more_than_the_blog(k):
    blog = loss_of_blog(adult()[NUMBERS], k)
    relaxed, strict = loss(k, tuple(NUMBERS), relaxed=True), loss(k, tuple(NUMBERS))
    assert relaxed <= strict <= blog
    # The page on the design has all of these.
    shown = [f"{own:.4f}".removeprefix("0") for own in (blog, strict, relaxed)]
    shown += [f"{figures(k, tuple(NUMBERS), **how)['discernibility']:,}" for how in ({}, {"relaxed": True})]
    page = (REPOSITORY / "docs" / "design" / "mondrian.md").read_text()
    assert f"\n|{k}|{'|'.join(shown)}|\n" in page
    # Ties by a hash alone lost .0055 by rank at k = 2, .0556 at 25 (the blog .0059 and .0495).
    assert loss(k, tuple(NUMBERS), relaxed=True, normalize="rank") <= loss(k, tuple(NUMBERS), normalize="rank")


@pytest.mark.parametrize("names", [NUMBERS, ADULT], ids=["numbers", "eight columns"])
@pytest.mark.parametrize("k", KS)
def test_the_default_loses_no_more_than_either_normalization(k, names):
    tried = [loss(k, tuple(names), normalize=own) for own in ("rank", "range")]
    assert loss(k, tuple(names)) <= min(tried)


def test_skewed_numbers_lose_a_quarter_less_than_by_rank():
    assert loss(2, tuple(NUMBERS)) < 0.75 * loss(2, tuple(NUMBERS), normalize="rank")
    assert loss(10, tuple(NUMBERS)) < 0.78 * loss(10, tuple(NUMBERS), normalize="rank")
