"""Distinction between leakage and coincidence: the originals compared with records that the synthesizer never saw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from math import sqrt
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from privacy_assets.columns.coding import group_rows
from privacy_assets.mpucc.intervals import Estimate, newcombe_interval, normal_quantile
from privacy_assets.mpucc.people import Subjects
from privacy_assets.mpucc.preprocess import CodedTable, PreprocessedTables


class Matches(NamedTuple):
    """Outcome of one search, one entry per distinct synthetic row.

    ``partner`` (int32) is the distinct row of the other table that the row singles out, or -1; ``combo_size`` (int64)
    is the size of the combination, or 0.
    """

    partner: NDArray[np.int32]
    combo_size: NDArray[np.int64]


# With fewer matched records, finding no leakage is not evidence of its absence.
MIN_CONTROL_RECORDS = 50
# Searches the synthetic table against another one; the text names the other one, for progress.
Searcher = Callable[[CodedTable, str], Matches]


@dataclass(frozen=True)
class ControlComparison:
    """Comparison of the originals with records that the synthesizer never saw.

    All rates except those of copies have the same basis: the smaller of the numbers of originals and of control
    records, before deduplication. Several random samples of that size represent the larger table, and rates are means
    over the samples; duplicates are dropped from each sample if ``deduplicate`` is set. If records are assigned to
    people, these are numbers of people, who are drawn with all their records. If there are more synthetic records than
    originals, everything except copies is a mean over draws of them.

    Attributes
    ----------
    control_identification_rate, matched_identification_rate : float
        Share of synthetic records identified against the control, and against equally many originals.
    control_identified_by_size, matched_identified_by_size : tuple of float
        Synthetic records identified against the control, and against equally many originals, by the size of the
        combination, from 1 column on; means over the samples.
    excess_identification : Estimate
        ``matched_identification_rate - control_identification_rate``; for the interval see
        :func:`compare_with_control`.
    verbatim_rate, control_verbatim_rate : float
        Share of the identified pairs that agree on every column.
    excess_verbatim : Estimate
        ``verbatim_rate - control_verbatim_rate``; the interval is by Newcombe's score method.
    verbatim_copies, control_verbatim_copies : int
        Synthetic records equal to a record of the whole original table, and of the whole control table.
    excess_copy : Estimate
        Share of all synthetic records that copy an original, beyond the share that copies a control record; both as
        expected for the matched number of records. For the interval see :func:`compare_with_control`.
    n_matched_records : int
        Number of records, or of people, at which the tables are compared: the smaller of the two numbers.
    confidence_level : float
        Confidence of the intervals.
    """

    control_identification_rate: float
    matched_identification_rate: float
    control_identified_by_size: tuple[float, ...]
    matched_identified_by_size: tuple[float, ...]
    excess_identification: Estimate
    verbatim_rate: float
    control_verbatim_rate: float
    excess_verbatim: Estimate
    verbatim_copies: int
    control_verbatim_copies: int
    excess_copy: Estimate
    n_matched_records: int
    confidence_level: float

    @property
    def leakage_detected(self) -> bool | None:
        """Whether the lower end of any excess interval is above 0; None if there are too few records.

        With fewer than ``MIN_CONTROL_RECORDS`` records most leaks would go unnoticed, so a negative result is not
        evidence. The gate treats None as a failure.
        """
        if any(excess.low > 0 for excess in (self.excess_identification, self.excess_verbatim, self.excess_copy)):
            return True
        return None if self.n_matched_records < MIN_CONTROL_RECORDS else False

    def to_header(self) -> dict[str, Any]:
        """Return the fields as JSON values; an estimate is written as ``<name>_rate`` and ``<name>_interval``."""
        header: dict[str, Any] = {}
        for name, value in vars(self).items():
            if isinstance(value, Estimate):
                header |= {f"{name}_rate": value.value, f"{name}_interval": [value.low, value.high]}
            else:
                header[name] = value
        return header

    @classmethod
    def mean(cls, of_draws: Sequence[ControlComparison]) -> ControlComparison:
        """Return the mean of each figure over draws of the synthetic records; copies are those in all of them."""
        return cls(**{name: _mean([vars(each)[name] for each in of_draws]) for name in vars(of_draws[0])})

    @classmethod
    def from_header(cls, header: dict[str, Any]) -> ControlComparison:
        """Read the output of :meth:`to_header`."""
        fields: dict[str, Any] = {
            name: tuple(value) if name.endswith("_by_size") else value for name, value in header.items()
        }
        for name in ("excess_identification", "excess_verbatim", "excess_copy"):
            fields[name] = Estimate(fields.pop(f"{name}_rate"), *fields.pop(f"{name}_interval"))
        return cls(**fields)


def _mean(figures: Sequence[Any]) -> Any:
    """Return the mean of figures, of intervals end by end, or of counts by size; whole numbers are all the same."""
    if isinstance(figures[0], Estimate):
        return Estimate(*map(fmean, zip(*figures, strict=True)))
    if isinstance(figures[0], tuple):
        return tuple(map(fmean, zip_longest(*figures, fillvalue=0.0)))
    return figures[0] if isinstance(figures[0], int) else fmean(figures)


class _Draws(NamedTuple):
    """Searches against one or more draws of one table.

    ``identified`` is the share of draws in which each synthetic row is identified, ``rates`` the identification rate
    of each draw; ``by_size`` (identified rows by combination size), ``n_pairs`` and ``n_verbatim`` are means over the
    draws; ``variance`` is the additional variance of the rate from drawing other records.
    """

    identified: NDArray[np.float64]
    rates: NDArray[np.float64]
    by_size: tuple[float, ...]
    n_pairs: float
    n_verbatim: float
    variance: float


def compare_with_control(
    tables: PreprocessedTables,
    search: Searcher,
    *,
    published: CodedTable,
    n_samples: int,
    seed: int,
    confidence_level: float,
) -> ControlComparison:
    """Compare identification against originals and against control records, which the tables must have.

    ``published`` are all synthetic records, of which those of the tables may be a draw; copies are counted in them. The
    larger table is sampled ``n_samples`` times.

    The interval of the excess identification rate counts the variance in two ways, as two-way clustered errors do [1]_.
    The first is that of the mean difference, paired by synthetic record. The second reflects that the originals and the
    control are themselves random draws from the population: one real record affects all synthetic records close to it,
    which the variance over synthetic records does not show. It is estimated, for either table, by summing squares over
    real records (each counts the synthetic records that single it out), or from the spread between the samples if that
    is larger, minus the variance of single pairs, which the first part already includes. For the rate of false alarms
    see ``test_an_honest_table_is_rarely_flagged``.

    Copies are counted over all synthetic records as well, because a copy need not be an identified pair: combinations
    of few columns single out few records, so most copies would be missed there. Each distinct synthetic row counts with
    its probability to be among the matched number of records, which for a value of m of N records is hypergeometric,
    not proportional to the size. Its difference between the two tables has mean 0 if the synthesizer did not copy, so
    the sum of the squared differences estimates the variance of their sum; z squared is added to it, as in Wilson's
    interval, because a few copies against 0 would have almost no variance. Copies of several records of one person are
    not independent: the products of their differences are added to the sum, and z squared is that of a person's copies.

    .. [1] A. C. Cameron, J. B. Gelbach, D. L. Miller (2011), "Robust inference with multiway clustering",
       doi:10.1198/jbes.2010.07136.
    """
    control = tables.control
    assert control is not None  # noqa: S101 - stated above
    n_matched = min(tables.original.subjects.n_people, control.subjects.n_people)
    rng = np.random.default_rng(seed)
    matched = _draw_and_search(tables.original, n_matched, n_samples, rng, search, tables, "original")
    against = _draw_and_search(control, n_matched, n_samples, rng, search, tables, "control")
    weights = tables.synthetic.multiplicities
    n_records = tables.synthetic.n_assessed
    difference = matched.identified - against.identified
    excess = float((weights * difference).sum() / n_records)
    spread = float((weights * (difference - excess) ** 2).sum() / max(n_records - 1, 1) / n_records)
    reach = normal_quantile(confidence_level) * sqrt(spread + matched.variance + against.variance)
    copied = _compare_copies(replace(tables, synthetic=published), control, n_matched, confidence_level)
    verbatim, control_verbatim = (d.n_verbatim / d.n_pairs if d.n_pairs else 0.0 for d in (matched, against))
    return ControlComparison(
        control_identification_rate=float(against.rates.mean()),
        matched_identification_rate=float(matched.rates.mean()),
        control_identified_by_size=against.by_size,
        matched_identified_by_size=matched.by_size,
        excess_identification=_within(excess, reach),
        verbatim_rate=verbatim,
        control_verbatim_rate=control_verbatim,
        excess_verbatim=newcombe_interval(
            (matched.n_verbatim, against.n_verbatim), (matched.n_pairs, against.n_pairs), confidence_level
        ),
        verbatim_copies=copied.n_copies,
        control_verbatim_copies=copied.n_control_copies,
        excess_copy=copied.excess,
        n_matched_records=n_matched,
        confidence_level=confidence_level,
    )


def _draw_and_search(
    table: CodedTable,
    n_matched: int,
    n_samples: int,
    rng: np.random.Generator,
    search: Searcher,
    tables: PreprocessedTables,
    name: str,
) -> _Draws:
    """Search against the table if it has the matched size, otherwise against random samples of it."""
    n_people = table.subjects.n_people
    is_whole = n_people == n_matched
    n_draws = 1 if is_whole else n_samples
    n_records = tables.synthetic.n_assessed
    identified = np.zeros(tables.synthetic.n_distinct)
    by_size = np.zeros(len(tables.columns) + 1)
    rates, pairs, verbatim, variances = [], [], [], []
    for draw in range(n_draws):
        drawn = table if is_whole else draw_people(table, n_matched, rng, tables.deduplicate)
        stage = f"against {name}" if is_whole else f"{name} sample {draw + 1} of {n_draws}"
        partner, combo_size = search(drawn, stage)
        rows = np.flatnonzero(partner >= 0)
        weights, subjects = tables.synthetic.multiplicities[rows], drawn.subjects
        by_size += np.bincount(combo_size[rows], weights, len(by_size)) / n_draws
        identified[rows] += 1 / n_draws
        n_pairs = int(weights.sum(dtype=np.int64))
        rates.append(n_pairs / n_records)
        pairs.append(n_pairs)
        agreement = count_agreements(tables.synthetic, drawn, rows, partner[rows])
        verbatim.append(int(weights[agreement == len(tables.columns)].sum(dtype=np.int64)))
        per_person = np.bincount(subjects.of_row[partner[rows]], weights, len(subjects.weights))
        variances.append(_variance_of_sum(per_person, subjects.n_assessed) / n_records**2)
    over_records = float(np.mean(variances))
    if n_draws > 1:
        # Samples without replacement vary less than draws from the population (finite population correction).
        over_records = max(over_records, float(np.var(rates, ddof=1)) / (1 - n_matched / n_people))
    mean_pairs = float(np.mean(pairs))
    variance = max(over_records - mean_pairs / n_records**2, 0.0)
    sizes = tuple(np.trim_zeros(by_size[1:], "b").tolist())
    return _Draws(identified, np.array(rates), sizes, mean_pairs, float(np.mean(verbatim)), variance)


def _variance_of_sum(per_person: NDArray[Any], n_people: int) -> float:
    """Estimate the variance of a sum over independent people from their contributions."""
    return float((per_person**2).sum() - per_person.sum() ** 2 / n_people)


def draw_people(table: CodedTable, n_people: int, rng: np.random.Generator, deduplicate: bool) -> CodedTable:
    """Draw people without replacement, then drop duplicates among them if ``deduplicate`` is set."""
    of_row, n_alike, _ = table.subjects
    people = np.repeat(np.arange(len(n_alike)), n_alike)
    drawn = np.bincount(rng.choice(people, n_people, replace=False), minlength=len(n_alike)).astype(np.int32)
    kept = np.flatnonzero(drawn[of_row])
    codes = tuple(column[kept] for column in table.codes)
    own = of_row[kept]
    n_equal = (table.n_equal[kept].astype(np.int64) * drawn[own] // n_alike[own]).astype(np.int32)
    multiplicities = np.ones_like(n_equal) if deduplicate else n_equal
    subjects = None
    if table.people is not None:
        known = drawn[drawn > 0]
        number = np.cumsum(drawn > 0) - 1
        subjects = Subjects(number[own], known, np.ones_like(known) if deduplicate else known)
    return CodedTable(codes, table.positions[kept], multiplicities, n_equal, int(n_equal.sum()), subjects)


def count_agreements(
    synthetic: CodedTable, other: CodedTable, rows: NDArray[np.int64], other_rows: NDArray[np.integer[Any]]
) -> NDArray[np.int64]:
    """Count the columns on which pairs of rows agree."""
    agreement = np.zeros(len(rows), np.int64)
    for codes, other_codes in zip(synthetic.codes, other.codes, strict=True):
        agreement += codes[rows] == other_codes[other_rows]
    return agreement


class _Copies(NamedTuple):
    """Synthetic records that equal a record of either whole table, and the excess expected at the matched size."""

    n_copies: int
    n_control_copies: int
    excess: Estimate


def _compare_copies(
    tables: PreprocessedTables, control: CodedTable, n_matched: int, confidence_level: float
) -> _Copies:
    """Compare the synthetic records that equal an original with those that equal a control record."""
    synthetic, own = tables.synthetic, tables.original
    weights, n_records = synthetic.multiplicities, synthetic.n_assessed
    n_equal, n_equal_control = (count_equal_records(synthetic, table, tables.n_codes) for table in (own, control))
    probability = probability_of_a_draw(n_equal, own.subjects.n_people, n_matched)
    control_probability = probability_of_a_draw(n_equal_control, control.subjects.n_people, n_matched)
    shared = [
        _shared_copies(synthetic, table, tables.n_codes, p / np.maximum(n, 1))
        for table, p, n in ((own, probability, n_equal), (control, control_probability, n_equal_control))
    ]
    excess = excess_of_copies(
        weights,
        probability - control_probability,
        SharedCopies(*np.sum(shared, axis=0).tolist()),
        n_records=n_records,
        confidence_level=confidence_level,
    )
    return _Copies(int(weights[n_equal > 0].sum()), int(weights[n_equal_control > 0].sum()), excess)


class SharedCopies(NamedTuple):
    """The amounts that copies of several records of one person add to an interval; 0 if everybody has one record.

    ``products`` is the sum over people of the products of the differences of two of their rows; ``weights`` is the sum
    of the products of the difference of a row and the records of their other rows.
    """

    products: float = 0.0
    weights: float = 0.0


def excess_of_copies(
    weights: NDArray[np.int32],
    difference: NDArray[np.float64],
    shared: SharedCopies,
    *,
    n_records: int,
    confidence_level: float,
) -> Estimate:
    """Estimate the share of synthetic records that copy an original beyond those that copy a control record.

    ``difference`` is, for each distinct synthetic row of these ``weights``, the probability that it equals one of the
    matched originals, minus that of the control. The interval: :func:`compare_with_control`.
    """
    excess_of_row = weights * difference
    n_moved = float(np.abs(excess_of_row).sum())
    weighted = float((weights * np.abs(excess_of_row)).sum()) + shared.weights
    squares = float((excess_of_row**2).sum()) + shared.products
    reach = float(reach_of_copies(squares, n_moved, weighted, confidence_level)) / n_records
    return _within(float(excess_of_row.sum()) / n_records, reach)


def reach_of_copies(squares: Any, n_moved: Any, weighted: Any, confidence_level: float) -> Any:
    """Return how far the number of excess copies may be off by chance, for numbers or arrays of cases.

    Given are sums over the synthetic rows, of the squared difference, of its size, and of its size times the records of
    the row, each with the amount from `SharedCopies`.
    """
    z = normal_quantile(confidence_level)
    # Rows of several records are weighted by their number, and so is the record, or person, missed by chance.
    weight = np.divide(weighted, n_moved, out=np.ones_like(squares, np.float64), where=np.asarray(n_moved) > 0)
    return z * np.sqrt(squares + (z * weight) ** 2)


def _within(difference: float, reach: float) -> Estimate:
    """Return a difference of two shares with an error of up to ``reach``."""
    return Estimate(difference, max(difference - reach, -1.0), min(difference + reach, 1.0))


def probability_of_a_draw(n_equal: NDArray[Any], n_records: float, n_drawn: float) -> NDArray[np.float64]:
    """Return the probability that ``n_drawn`` of ``n_records`` records include at least one of ``n_equal``.

    Draws are without replacement, so it is 1 - C(n_records - n_equal, n_drawn) / C(n_records, n_drawn).
    """
    from scipy.special import gammaln

    n_others = n_records - n_equal
    log_missed = (
        gammaln(n_others + 1.0)
        - gammaln(np.maximum(n_others - n_drawn, 0) + 1.0)
        - gammaln(n_records + 1.0)
        + gammaln(n_records - n_drawn + 1.0)
    )
    # Without an equal record, the logarithms cancel only up to rounding errors.
    may_miss = np.where(n_equal == 0, 1.0, np.exp(np.minimum(log_missed, 0.0)))
    return np.where(n_others >= n_drawn, 1.0 - may_miss, 1.0)


def count_equal_records(synthetic: CodedTable, other: CodedTable, n_codes: tuple[int, ...]) -> NDArray[np.int64]:
    """Count, for each distinct synthetic row, the records (or people with one) that equal it on every column."""
    groups, n_groups = _group_both(synthetic, other, n_codes)
    of_row, n_alike, _ = other.subjects
    n_equal = np.bincount(groups[synthetic.n_distinct :], n_alike[of_row], n_groups).astype(np.int64)
    return n_equal[groups[: synthetic.n_distinct]]


def _group_both(synthetic: CodedTable, other: CodedTable, n_codes: tuple[int, ...]) -> tuple[NDArray[np.int64], int]:
    """Give equal rows of both tables one number; synthetic rows come first."""
    return group_rows([np.concatenate(pair) for pair in zip(synthetic.codes, other.codes, strict=True)], n_codes)


def _shared_copies(
    synthetic: CodedTable, other: CodedTable, n_codes: tuple[int, ...], probability: NDArray[np.float64]
) -> SharedCopies:
    """Sum over people the contributions to an interval of the probabilities of the synthetic rows that equal theirs."""
    if other.people is None:
        return SharedCopies()
    groups, n_groups = _group_both(synthetic, other, n_codes)
    of_row, n_alike, _ = other.people
    own, others = groups[: synthetic.n_distinct], groups[synthetic.n_distinct :]
    share, records = np.zeros(n_groups), np.zeros(n_groups)
    records[own] = synthetic.multiplicities
    share[own] = synthetic.multiplicities * probability

    def per_person(values: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.bincount(of_row, values[others], len(n_alike)).astype(np.float64, copy=False)

    products = per_person(share) ** 2 - per_person(share**2)
    weights = per_person(share) * per_person(records) - per_person(share * records)
    return SharedCopies(*(float((n_alike * np.maximum(own, 0.0)).sum()) for own in (products, weights)))
