"""Tables in codes for the tests of Mondrian."""

import numpy as np
import pytest
from hypothesis import strategies as st
from numba import config

from privacy_assets.anonymization.kernels.models import DISTINCT, ENTROPY, NO_L, RECURSIVE, Models
from privacy_assets.anonymization.kernels.mondrian import make_dimensions, partition_rows
from privacy_assets.anonymization.kernels.mondrian_rows import pack_rows
from tests.reference import mondrian as reference

only_compiled = pytest.mark.skipif(bool(config.DISABLE_JIT), reason="so many rows take minutes in plain Python")


def even(n):
    return np.arange(n) / max(n - 1, 1)


def describe(kinds, columns):
    n_values = [int(c.max()) + 1 for c in columns]
    coordinates = [even(n) if kind == "ordered" else None for kind, n in zip(kinds, n_values, strict=True)]
    return make_dimensions(coordinates, n_values), n_values


def classes_of(partition):
    return [partition.records[a:b].tolist() for a, b in zip(partition.edges, partition.edges[1:], strict=False)]


def wide_table(n_rows, seed=0, n_values=3000):
    """More values than bins, skewed, next to sets, one of them large."""
    rng = np.random.default_rng(seed)
    drawn = [rng.integers(0, n_values, n_rows), np.minimum(rng.zipf(1.3, n_rows), 70_000), rng.normal(0, 50, n_rows)]
    drawn += [np.minimum(rng.zipf(1.7, n_rows), 12), rng.zipf(1.2, n_rows) % 700]
    columns = [np.unique(np.round(d).astype(np.int64), return_inverse=True)[1] for d in drawn]
    kinds = ["ordered", "ordered", "ordered", "set", "set"]
    return kinds, columns


def heavy_neighbors(seed, n_rows=None):
    """Neighboring codes that most rows have, so that boundaries of bins allow few cuts, and single codes more.

    Returns kinds, columns, and a k that is large for the number of rows.
    """
    random = np.random.default_rng(seed)
    n_rows = int(random.integers(300, 3000)) if n_rows is None else n_rows
    kinds = ["ordered", "ordered", *random.choice(["ordered", "set"], random.integers(0, 2))]
    columns = []
    for kind in kinds:
        n_values = int(random.integers(150, 5000)) if kind == "ordered" else int(random.integers(2, 9))
        heavy = random.integers(0, max(n_values - 1, 1), random.integers(1, 3))
        heavy = np.minimum(np.concatenate([heavy, heavy + 1]), n_values - 1)
        is_heavy = random.random(n_rows) < random.choice([0.5, 0.8, 0.95])
        drawn = np.where(is_heavy, random.choice(heavy, n_rows), random.integers(0, n_values, n_rows))
        columns.append(np.unique(drawn, return_inverse=True)[1] if kind == "set" else drawn)
    return kinds, columns, int(random.integers(n_rows // 50 + 1, n_rows // 4))


def models_of_one(k, secret, kind=NO_L, least=1.0, c=1.0, most=np.inf, is_ordered=False, **options):
    """Models with limits on one sensitive column, whose values are numbered without a gap."""
    totals = np.bincount(secret)
    cumulative = np.cumsum(totals)
    prefix = np.concatenate([[0.0], np.cumsum(cumulative)])
    limits = [np.array([kind]), np.array([least]), np.array([c]), np.array([most]), np.array([is_ordered])]
    needs_values = kind != NO_L or most < np.inf
    return Models(
        k, options.get("is_by_range", False), options.get("by_people", False), needs_values,
        np.array([0, len(totals)]), *limits, totals, cumulative, prefix,
    )  # fmt: skip


@st.composite
def limits(draw):
    """A diversity and a closeness, each there or not, as the kernel and as the reference take them."""
    kind = draw(st.sampled_from([NO_L, DISTINCT, ENTROPY, RECURSIVE]))
    least = draw(st.sampled_from([1.0, 2.0, 3.0]))
    c = draw(st.sampled_from([0.5, 1.0, 3.0]))
    most = draw(st.sampled_from([np.inf, 0.5, 0.2]))
    is_ordered = draw(st.booleans())
    models = []
    if kind != NO_L:
        models.append((0, {DISTINCT: "distinct", ENTROPY: "entropy", RECURSIVE: "recursive"}[kind], least, c))
    if most < np.inf:
        models.append((0, "t", most, is_ordered))
    return (kind, least, c, most, is_ordered), models


def check_partition(table, models, k, wanted, is_by_range):
    """Refuse a partition unless each cut is the best allowable one by enumeration, and none is left.

    ``table`` is kinds, columns, values per column, dimensions, their places for the reference, people or None, and the
    sensitive column. Returns the table of the reference, and the partition.
    """
    kinds, columns, n_values, dimensions, places, people, secret = table
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    known = reference.Table(
        rows, kinds, places, people=None if people is None else people.tolist(), sensitive=[secret.tolist()]
    )
    found = partition_rows(pack_rows(columns, n_values), dimensions, models, person=people, sensitive=secret[:, None])
    assert sorted(found.records.tolist()) == list(range(len(rows)))
    for begin, stop, middle, dimension, _ in found.cuts.tolist():
        members, left, right = (
            found.records[a:b].tolist() for a, b in ((begin, stop), (begin, middle), (middle, stop))
        )
        reference.check_cut(known, members, left, right, dimension, k, wanted, "range" if is_by_range else "gain")
    for members in classes_of(found):
        assert not known.allowable(members, k, wanted)
    return known, found
