"""Released values that show which rows are of one person.

Every figure of a released row counts people who fit that row alone. Whoever can tell that several rows are of one
person looks for people who fit all of them, and finds fewer. So the values of released columns are compared with the
people of the rows: equal values of each column, and of all columns that hardly change in a person together; a value of
one column in another column of another row, as of the previous visit; and values that occur once next to each other in
their order, as of visits that were numbered person by person.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.coding import code_type, connected, count_codes, group_rows_of, people_of_values
from privacy_assets.columns.factorizing import factorize
from privacy_assets.columns.spelling import spelled_keys
from privacy_assets.storage.coded_columns import code_repeated
from privacy_assets.storage.column_files import ColumnFiles
from privacy_assets.storage.memory import memory_given_back
from privacy_assets.storage.table import Table

FEWEST_LINKED: Final = 0.01
"""Share of the rows of people with several rows below which equal values are a coincidence."""
PRECISE: Final = 0.95
"""Precision from which other columns add nothing to a link."""
SAME_IN_PEOPLE: Final = 0.95
"""Share of the people with several rows in whom a column that hardly changes has one value."""
TOLERATED: Final = 0.2
"""Share of the changes that chance makes up to which a column hardly changes, such as by wrong entries."""
FEWEST_BEYOND_CHANCE: Final = 3.0
"""Pairs of rows, and standard deviations, by which a link must exceed rows that were given to people at random."""

N_BY_CHANCE: Final = 5

Codes = NDArray[np.integer[Any]]
Numbers = NDArray[np.int32]
"""Numbers of rows, people, values or groups."""
How = Literal["alone", "together", "across", "in order"]


class Link(NamedTuple):
    """What values of some released columns show of which rows are of one person.

    They do so ``alone`` or ``together`` by equal values; ``across`` by a value of one column in the other column of
    another row; or ``in order``, by rows that are next to each other by values that occur once. ``share`` is that of
    the rows of people with several rows that have another row of the person in their group of fewer than k people, and
    ``precision`` the share of the pairs of rows in such groups that are of one person. The link ``is_found`` if they
    are at least 1 % and 1 / k, and both beyond chance.
    """

    columns: tuple[str, ...]
    how: How
    share: float
    precision: float
    is_found: bool

    def is_among(self, columns: Collection[str]) -> bool:
        """Whether columns that may link include those of the link; people cannot be counted for an order of rows."""
        return self.how != "in order" and set(self.columns) <= set(columns)


def find_links(released: Table | ColumnFiles, person: Codes, k: int, wanted: Collection[str] = ()) -> tuple[Link, ...]:
    """Compare the values of released columns, exactly as they leave, with the people of the rows.

    Texts are compared in one spelling, and a missing value links nothing. Rows of person -1 are each of an unknown
    person. Guessing that two rows are of one person must be right less often than 1 / k, and groups of at least k
    people link nothing. The ``wanted`` columns may link; unless they do so precisely, they are also tried together with
    the others. Returns all that was tried; nothing if no person has several rows.

    Columns are read one after the other. The cost is linear in the number of rows for each column; across columns, only
    pairs with enough values in common are compared. Two columns that change in a person and link only together, such as
    day and physician of a visit, are not found.
    """
    people = _People.of(person, k)
    del person
    if people.n_several == 0:
        return ()
    alone, in_order, steady = [], [], []
    many: dict[str, Any] = {}
    fewest = FEWEST_LINKED * people.n_several / 2
    for name in memory_given_back(map(str, released.columns)):
        own = _values(released, name)
        link = people.link((name,), "alone", own.codes)
        alone.append(link)
        if not link.is_found:
            orders = [people.neighbors((name,), order) for order in own.orders()]
            in_order.append(max(orders, key=lambda each: (each.is_found, each.precision)))
            many |= {name: own.distinct} if len(own.distinct) >= max(fewest, 2) else {}
        if (not link.is_found or link.precision < PRECISE) and people.has_one_value_each(own.codes):
            steady.append(link)
    tried = [[own.columns[0] for own in steady if not own.is_found or own.columns[0] in also] for also in ((), wanted)]
    joined = dict.fromkeys(tuple(each) for each in tried if len(each) > 1)
    together = [people.link(names, "together", _joint(released, names)[0]) for names in joined]
    return (*alone, *together, *in_order, *_across(released, many, fewest, people))


def groups_of(released: Table, links: Sequence[Link], person: Codes, k: int) -> Codes:
    """Return the groups of rows that links show to be of one person: the connected components of all links together.

    Values that at least k people have link no rows. Rows are numbered by group, from 0.
    """
    people, n_nodes = _People.of(person, k), len(released)
    rows, nodes = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for link in links:
        if link.how == "across":
            row, group = _common(released, link.columns)
        else:
            group, has_value = _joint(released, link.columns)
            row, group = np.flatnonzero(has_value).astype(np.int32), group[has_value]
        is_few = people_of_values(group, int(group.max(initial=-1)) + 1, people.person[row], k) < k
        is_linked = is_few[group]
        rows.append(row[is_linked].astype(np.int64))
        nodes.append(n_nodes + group[is_linked].astype(np.int64))
        n_nodes += len(is_few)
    return connected(np.concatenate(rows), np.concatenate(nodes), n_nodes)[: len(released)]


class _Values(NamedTuple):
    """A column as places of its values in their order, -1 for a missing one, and these values."""

    codes: Numbers
    distinct: Any

    def orders(self) -> Iterator[Numbers]:
        """Yield the rows of values that occur once, in their order, and for whole numbers and texts also backwards."""
        # The last place is that of the missing value, -1.
        occurs_once = np.roll(count_codes(self.codes, len(self.distinct) + 1, lowest=-1) == 1, -1)
        occurs_once[-1] = False
        once = np.flatnonzero(occurs_once[self.codes]).astype(np.int32)
        yield once[np.argsort(self.codes[once])]
        distinct = np.asarray(self.distinct)
        if distinct.dtype.kind in "iuO":
            backwards = [str(value)[::-1] for value in distinct[self.codes[once]].tolist()]
            yield once[np.argsort(np.array(backwards, np.str_), kind="stable")]


class _People(NamedTuple):
    """The people of the rows, and the same people once given to the rows at random."""

    person: Numbers
    one_by_chance: Numbers
    n_several: int
    k: int

    @classmethod
    def of(cls, person: Codes, k: int) -> _People:
        if len(person) and (person.max() >= 2 * len(person) or person.min() < -1):
            renumbered, is_known = np.full(len(person), -1, np.int32), person >= 0
            renumbered[is_known] = pd.factorize(person[is_known])[0]
            person = renumbered
        unknown = np.flatnonzero(person < 0)
        # Kernels would be compiled once more for an array that is read-only.
        numbers = person.astype(np.int32, copy=len(unknown) > 0 or not person.flags.writeable)
        numbers[unknown] = numbers.max(initial=-1) + 1 + np.arange(len(unknown))
        sizes = count_codes(numbers, int(numbers.max(initial=-1)) + 1)
        return cls(numbers, next(_by_chance(numbers)), int(sizes[sizes > 1].sum()), k)

    def link(self, columns: tuple[str, ...], how: How, group: Numbers, row: Numbers | None = None) -> Link:
        """Measure groups of rows; a row may be in several, and not in those of -1."""
        every = np.arange(len(group), dtype=np.int32) if row is None else row
        return self._measured(columns, how, group, every, self.k)

    def neighbors(self, columns: tuple[str, ...], rows: Numbers) -> Link:
        """Measure the pairs of rows that are next to each other."""
        pairs = np.repeat(np.arange(max(len(rows) - 1, 0), dtype=np.int32), 2)
        both = np.column_stack([rows[:-1], rows[1:]]).ravel()
        return self._measured(columns, "in order", pairs, both, max(self.k, 3))

    def _measured(self, columns: tuple[str, ...], how: How, group: Numbers, row: Numbers, k: int) -> Link:
        from privacy_assets.anonymity.kernels.row_pairs import count_pairs

        n_pairs, n_same, n_linked = count_pairs(group, row, self.person, k)
        share, precision = n_linked / self.n_several, n_same / n_pairs if n_pairs else 0.0
        is_found = share >= FEWEST_LINKED and precision >= 1 / self.k
        if is_found:
            expected = float(np.mean([count_pairs(group, row, each, k)[1] for each in _by_chance(self.person)]))
            is_found = n_same - expected >= FEWEST_BEYOND_CHANCE * (1 + np.sqrt(expected))
        return Link(columns, how, share, precision, bool(is_found))

    def has_one_value_each(self, codes: Numbers) -> bool:
        """Whether a column hardly changes in people with several rows."""
        from privacy_assets.anonymity.kernels.row_pairs import count_changes

        n_changes, n_several, n_same = count_changes(codes, self.person)
        by_chance, _, _ = count_changes(codes, self.one_by_chance)
        share = n_same / n_several if n_several else 1.0
        return by_chance > 0 and (share >= SAME_IN_PEOPLE or n_changes <= TOLERATED * by_chance)


def _by_chance(person: Numbers) -> Iterator[Numbers]:
    random = np.random.default_rng(0)
    return (random.permutation(person) for _ in range(N_BY_CHANCE))


def _across(
    released: Table | ColumnFiles, distinct: Mapping[str, Any], fewest: float, people: _People
) -> Iterator[Link]:
    """Yield a link for each pair of columns, given with their values, that has enough of them in common."""
    from scipy.sparse import coo_array

    if len(distinct) < 2:
        return
    keys = _keys(list(distinct.values()))
    column = np.repeat(np.arange(len(keys)), [len(own) for own in keys])
    has = coo_array((np.ones(len(column), np.int64), (np.concatenate(keys), column)))
    n_common = (has.T @ has).toarray()
    names = list(distinct)
    for one, other in combinations(range(len(names)), 2):
        if n_common[one, other] >= fewest:
            row, group = _common(released, (names[one], names[other]))
            yield people.link((names[one], names[other]), "across", group, row)


def _common(released: Table | ColumnFiles, names: Sequence[str]) -> tuple[Numbers, Numbers]:
    """Return the rows that have a value of the other column, each once for each such value, and numbers of these."""
    columns = [_values(released, name) for name in names]
    keys = _keys([own.distinct for own in columns])
    both = np.intersect1d(keys[0], keys[1])
    memberships = []
    for own, key in zip(columns, keys, strict=True):
        row = np.flatnonzero(np.append(np.isin(key, both), False)[own.codes])
        memberships.append(np.column_stack([row, key[own.codes[row]]]))
    row, group = np.unique(np.concatenate(memberships), axis=0).astype(np.int32).T
    return np.ascontiguousarray(row), np.ascontiguousarray(group)


def _joint(released: Table | ColumnFiles, names: Sequence[str]) -> tuple[Numbers, NDArray[np.bool_]]:
    """Return numbers of the combinations of values, of which a missing one is one, and which rows have a value."""
    has_value = np.zeros(len(released), np.bool_)

    def coded(name: str) -> tuple[NDArray[Any], int]:
        codes, distinct = _values(released, name)
        np.logical_or(has_value, codes >= 0, out=has_value)
        return (codes + 1).astype(code_type(len(distinct) + 1)), len(distinct) + 1

    group = group_rows_of(memory_given_back(map(coded, names)), len(released))[0]
    return group.astype(np.int32), has_value


def _values(released: Table | ColumnFiles, name: str) -> _Values:
    """Read a column; texts are compared in one spelling."""
    numbers, values = _coded(released, name)
    place_of, distinct = pd.factorize(spelled_keys(values), sort=True)
    return _Values(np.append(place_of, -1).astype(np.int32)[numbers], distinct)


def _coded(released: Table | ColumnFiles, name: str) -> tuple[Codes, pd.Series[Any]]:
    """Return a number for each row of a column, and the values; a missing one is the last, or has the number -1."""
    coded = code_repeated(released, name)
    if coded is not None:
        return coded.codes, coded.distinct
    numbers, values = factorize(released[name])
    return numbers, pd.Series(values)


def _keys(columns: Sequence[Any]) -> list[Codes]:
    """Return numbers of values that several columns share, as numbers or as texts that may be those of numbers."""
    numbers = [_as_numbers(own) for own in columns]
    number, found = pd.factorize(np.concatenate(numbers))
    is_text = [np.isnan(own) for own in numbers]
    text = pd.factorize(np.concatenate([_as_texts(*own) for own in zip(columns, is_text, strict=True)]))[0]
    every = number.astype(np.int64, copy=False)
    every[every < 0] = len(found) + text
    return np.split(every, np.cumsum([len(own) for own in columns])[:-1])


def _as_texts(distinct: Any, is_text: NDArray[np.bool_]) -> NDArray[np.object_]:
    """Return texts as objects: an array of texts of one width has the longest for every value."""
    values = np.asarray(distinct)[is_text]
    if values.dtype != object:
        return values.astype(str).astype(object)
    return np.array([str(value) for value in values], object)


def _as_numbers(distinct: Any) -> NDArray[np.float64]:
    values = pd.Series(np.asarray(distinct))
    is_moment = pd.api.types.is_datetime64_any_dtype(values.dtype)
    numbers = values.astype(np.int64) if is_moment else pd.to_numeric(values, errors="coerce")
    return np.array(numbers, np.float64)
