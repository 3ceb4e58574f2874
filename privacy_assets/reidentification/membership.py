"""Membership: whether somebody who knows a person's values can tell that the person is in an anonymized table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.anonymization.quasi_identifiers import Scale, read_dimension
from privacy_assets.anonymization.result import Anonymization
from privacy_assets.columns.coding import group_rows
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.masks import Exact, Interval, Suppressed
from privacy_assets.columns.spelling import canonical_of_all, spelled_keys
from privacy_assets.disclosure.result import CONFIDENCE
from privacy_assets.disclosure.sides import FEWEST_PEOPLE, count_alike
from privacy_assets.display.notebook import ShowsFigures
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.mpucc.intervals import Estimate, newcombe_interval, wilson_interval
from privacy_assets.mpucc.preprocess import read_columns
from privacy_assets.reidentification.assess import refuse_undescribed
from privacy_assets.reidentification.code_sets import coarsen, from_ranges, partition_of
from privacy_assets.reidentification.kernels.candidates import count_fitting
from privacy_assets.reidentification.masked_columns import (
    MaskedColumn,
    check_tables,
    check_truth,
    make_boxes,
    make_points,
    point_of_original,
    read_masked,
)
from privacy_assets.reidentification.record_keys import number_people
from privacy_assets.reidentification.released_values import Original
from privacy_assets.setting_checks import threads_to_use

WHOLE, QUASI_IDENTIFIERS = "whole record", "quasi-identifiers"
NO_CONTROL = "there is no control"
TOO_FEW = f"fewer than {FEWEST_PEOPLE} people on a side"


@dataclass(frozen=True, eq=False, repr=False)
class MembershipAssessment(ShowsFigures):
    """Result of :func:`assess_membership`; ``docs/reidentification.md`` explains the figures.

    Attributes
    ----------
    scores : dict
        For somebody who knows a whole record: ``membership_advantage`` (share of the source for whom all records fit
        minus that of the control; None without a control), ``membership_advantage_interval`` (95 %; without a control,
        the left-out range), ``membership_advantage_upper`` (its larger end, without sign), ``membership_found`` and
        ``membership_found_control`` (these shares), ``membership_left_out_interval`` (estimate of the latter without a
        control). The same for somebody who knows only the quasi-identifiers, with ``_of_quasi_identifiers`` at the end.
        ``membership_estimated`` (why the interval is a left-out range; None if it is not), ``membership_n_source`` and
        ``membership_n_control`` (people).
    """

    main_figures = (
        "membership_advantage",
        "membership_found",
        "membership_found_control",
        "membership_n_source",
        "membership_n_control",
    )

    scores: dict[str, Any]


def assess_membership(
    anonymization: Anonymization,
    source: pd.DataFrame,
    control: pd.DataFrame | None = None,
    *,
    hierarchies: Mapping[str, Hierarchy] | None = None,
    n_threads: int | None = None,
) -> MembershipAssessment:
    """Search records that fit what is known of a person, for the people in the source and for others.

    A released record fits if its ranges and sets contain the known quasi-identifiers and, for an attacker who knows the
    whole record, all other released columns are equal. A person with several records is found if all of them fit.

    Parameters
    ----------
    anonymization : Anonymization
        Result of ``anonymize``.
    source : DataFrame
        The table that was anonymized.
    control : DataFrame, optional
        Records of people of the same population who are certainly not in the source; at least 50 people. Without them,
        each person's own records are left out, and whether others fit is stated as a range.
    hierarchies : mapping of str to Hierarchy, optional
        Hierarchies along which columns were generalized; by default those of the anonymization.
    n_threads : int, optional
        Threads; the result does not depend on their number. Default: all cores that this process may use.

    Returns
    -------
    MembershipAssessment

    Raises
    ------
    InvalidTableError
        If the tables cannot be compared, the source is another table, or the control has people of the source.
    InvalidSettingError
        If the table was not made by `anonymize`, or has centers of classes instead of labels.
    MaskError
        If a released record does not fit the person it belongs to.

    Notes
    -----
    Definitions: ``docs/reidentification.md``. Records are searched in this process, whatever engine made the classes.
    """
    sides = _read_sides(anonymization, source, control, hierarchies or {})
    names = anonymization.settings["quasi_identifiers"]
    known = {WHOLE: list(sides.columns), QUASI_IDENTIFIERS: [name for name in names if name in sides.columns]}
    n_source, n_control = sides.n_people
    is_estimated = None if min(n_source, n_control) >= FEWEST_PEOPLE else TOO_FEW if n_control else NO_CONTROL
    scores: dict[str, Any] = {}
    for attacker, end in ((WHOLE, ""), (QUASI_IDENTIFIERS, "_of_quasi_identifiers")):
        found = _search(sides, anonymization, known[attacker], threads_to_use(n_threads))
        scores |= {f"{name}{end}": value for name, value in _figures(found, sides.n_people, is_estimated).items()}
    counts = {"membership_n_source": n_source, "membership_n_control": n_control}
    return MembershipAssessment({**scores, "membership_estimated": is_estimated, **counts})


class _Sides(NamedTuple):
    """The records of source and control, in this order, and the released cells.

    ``people`` has the person of each record, those of the source first, ``truth`` the record of each released row.
    ``scales`` and ``codes`` are the values of each column, which ``columns`` has where released cells differ.
    """

    columns: dict[str, MaskedColumn]
    scales: dict[str, Scale]
    codes: dict[str, NDArray[Any]]
    people: NDArray[np.int64]
    n_people: tuple[int, int]
    n_source: int
    truth: NDArray[np.int64]


class _Found(NamedTuple):
    """People for whom all records fit: of the source, of the control, and, left out, surely or possibly."""

    source: int
    control: int
    surely_left_out: int
    possibly_left_out: int


def _read_sides(
    anonymization: Anonymization,
    source: pd.DataFrame,
    control: pd.DataFrame | None,
    hierarchies: Mapping[str, Hierarchy],
) -> _Sides:
    """Read both tables as one, and check them."""
    if not isinstance(anonymization, Anonymization):
        raise InvalidSettingError(
            "Who is in a table that was made elsewhere is not answered: its source and its classes are unknown; people "
            "who are certainly not in the source would answer it. Expected the result of `anonymize`, and the table "
            "that it was made from. Nothing was assessed."
        )
    table, masks = anonymization.table, anonymization.model.masks
    hierarchies = {**anonymization.hierarchies, **hierarchies}
    check_tables(source, table, ("source", "released"))
    if len(source) != anonymization.stats["n_rows"]:
        raise InvalidTableError(
            f"The anonymization was made from {anonymization.stats['n_rows']} rows, but the source has {len(source)}. "
            "Expected exactly the table that was anonymized. Nothing was assessed."
        )
    refuse_undescribed("The release", anonymization.model, table, list(masks))
    released = [name for name, mask in masks.items() if not isinstance(mask, Suppressed)]
    subject = anonymization.settings["subject"]
    asked = [*released, *([] if subject is None else [subject])]
    both = source[asked]
    if control is not None:
        both = pd.concat([both, _as_in_source(source, control, asked)], ignore_index=True)
    people, n_people = _number_people(both, subject, len(source))
    sources = {name: Original(name, both[name], read_dimension(both[name])) for name in released}
    columns = {name: read_masked(own, table, masks[name], hierarchies) for name, own in sources.items()}
    truth = anonymization.members["row"].to_numpy()
    check_truth({name: int(own.excludes(truth).sum()) for name, own in columns.items()}, len(truth))
    scales = {name: own.scale for name, own in sources.items()}
    codes = {name: own.dimension.codes for name, own in sources.items()}
    n_shared, is_too_many = 0, False
    if control is not None:
        n_codes = [scale.n_known + 1 for scale in scales.values()]
        n_shared, is_too_many = count_alike(list(codes.values()), n_codes, people, n_people[0])
    if is_too_many:
        raise _shared(n_shared, n_people[1], "equal one of the source in all released columns, far more than by chance")
    return _Sides(columns, scales, codes, people, n_people, len(source), truth)


def _as_in_source(source: pd.DataFrame, control: pd.DataFrame, names: Sequence[str]) -> pd.DataFrame:
    """Return columns of the control in types and spelling of the source; refuse others."""
    check_tables(control, source, ("control", "source"))
    lacking = [name for name in names if name not in control.columns]
    if lacking:
        raise InvalidTableError(
            f"The control lacks the columns {lacking} of the source. Expected all released columns, and the column of "
            "the people if the source has one. Nothing was assessed."
        )
    read_columns({"source": source, "control": control}, names)
    return pd.DataFrame({name: _spelled_as(source[name], control[name]) for name in names})


def _spelled_as(own: pd.Series[Any], other: pd.Series[Any]) -> pd.Series[Any]:
    """Return texts of others as the source spells them, if it has a text that is spelled alike."""
    known, texts = ([v for v in pd.unique(each) if isinstance(v, str)] for each in (own, other))
    unknown = sorted(set(texts) - set(known))
    if unknown:
        written: dict[str, str | None] = dict(zip(canonical_of_all(known[::-1]), known[::-1], strict=True))
        written.setdefault("", None)
        spelled = {text: written.get(key, text) for text, key in zip(unknown, canonical_of_all(unknown), strict=True)}
        other = other.astype(object).map(lambda value: spelled.get(value, value) if isinstance(value, str) else value)
    if isinstance(own.dtype, pd.CategoricalDtype) and own.dtype.ordered:
        n_lost = int((~other.isin(own.cat.categories) & other.notna()).sum())
        if n_lost:
            raise InvalidTableError(
                f"Column {own.name!r} of the control has {n_lost} values that are none of the ordered categories of "
                "the source. Expected these. Nothing was assessed."
            )
        return other.astype(object).astype(own.dtype)
    return other


def _number_people(both: pd.DataFrame, subject: str | None, n_source: int) -> tuple[NDArray[np.int64], tuple[int, int]]:
    """Return the person of each record, those of the source first, and their numbers; refuse a shared person."""
    if subject is None:
        return np.arange(len(both)), (n_source, len(both) - n_source)
    people = number_people(pd.DataFrame({subject: spelled_keys(both[subject])}), subject)
    people = pd.factorize(people)[0].astype(np.int64)
    n_people = int(people[:n_source].max()) + 1
    n_shared = len(np.unique(people[n_source:][people[n_source:] < n_people]))
    n_control = len(np.unique(people[n_source:]))
    if n_shared:
        raise _shared(n_shared, n_control, "are people of the source")
    return people, (n_people, n_control)


def _shared(n_shared: int, n_control: int, words: str) -> InvalidTableError:
    return InvalidTableError(
        f"{n_shared} of {n_control} people of the control {words}. Expected people who are certainly not in the "
        "source. Remove them from the control. Nothing was assessed."
    )


def _search(sides: _Sides, anonymization: Anonymization, known: Sequence[str], n_threads: int) -> _Found:
    """Search fitting records for everybody, and, for the people of the source, also without their own."""
    columns, n, truth = [sides.columns[name] for name in known], sides.n_source, sides.truth
    n_fitting = _count_fitting(columns, len(sides.people), n_threads)
    own = _same(sides.people, sides.people[truth], sum(sides.n_people))
    n_others = (n_fitting - _count_fitting([*columns, own], len(sides.people), n_threads))[:n]
    n_in_class, stays = _others_in_class(sides, anonymization, known)
    surely = n_others - np.where(stays, 0, n_in_class) > 0

    def count_people(is_found: NDArray[np.bool_], side: slice) -> int:
        people = sides.people[side]
        is_lacking = np.bincount(people, ~is_found, sum(sides.n_people)) > 0
        return int((np.bincount(people, minlength=len(is_lacking)) > 0).sum() - is_lacking.sum())

    source, control = slice(n), slice(n, None)
    assert (n_fitting[truth] > 0).all()  # noqa: S101 - the truth was checked
    return _Found(
        count_people(n_fitting[source] > 0, source),
        count_people(n_fitting[control] > 0, control),
        count_people(surely, source),
        count_people(n_others > 0, source),
    )


def _count_fitting(columns: Sequence[MaskedColumn], n_records: int, n_threads: int) -> NDArray[np.int64]:
    """Count the released rows that fit each record."""
    own = [column.set_of_code for column in columns]
    parts = [(column, cells) for column, cells in zip(columns, own, strict=True) if cells is not None]
    searched = [column for column, cells in zip(columns, own, strict=True) if cells is None]
    if parts:
        # Cells that are functions of the original are equal or not: all of them together are one column.
        codes = [np.concatenate([cells[column.codes], column.sets.set_of_row]) + 1 for column, cells in parts]
        groups, n_groups = group_rows(codes, [column.sets.n_sets + 1 for column, _ in parts])
        of_record, of_row = groups[:n_records], groups[n_records:]
        if not searched:
            return np.bincount(of_row, minlength=n_groups)[of_record].astype(np.int64)
        searched.append(_same(of_record, of_row, n_groups))
    searched.sort(key=lambda column: column.mean_share)
    boxes, box_of_row = make_boxes(searched)
    points = make_points(searched, None)
    n_codes = max(column.n_codes for column in searched)
    n_rows = np.bincount(box_of_row, minlength=len(boxes.sets)).astype(np.int64)
    return count_fitting(points, boxes, n_codes, n_rows, n_threads)[point_of_original(searched, points)]


def _same(of_records: NDArray[np.int64], of_rows: NDArray[np.int64], n: int) -> MaskedColumn:
    """Return the column of released rows that fit the records with the same number, below n."""
    sets = from_ranges(of_rows, of_rows, np.zeros(len(of_rows), np.bool_), n, np.arange(len(of_rows)))
    codes, n_codes, sets = coarsen(of_records, n, sets)
    return MaskedColumn(codes, n_codes, sets, partition_of(sets, n_codes))


def _others_in_class(
    sides: _Sides, anonymization: Anonymization, known: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Count the rows of others in each record's class that fit, and say whether it stays in ranges made without it.

    Without a person, the ends of a class are the values of the others in it. It keeps a category, or a node of a
    hierarchy, surely if somebody else has the same value. Records that are not released are in no class.
    """
    of_class = pd.factorize(anonymization.members["class"].to_numpy())[0].astype(np.int64)
    people, masks, n_classes = sides.people[sides.truth], anonymization.model.masks, int(of_class.max()) + 1
    exact = [name for name in known if isinstance(masks[name], Exact)]
    codes = {name: sides.codes[name][sides.truth].astype(np.int64) for name in known}
    n_codes = {name: sides.scales[name].n_known + 1 for name in known}
    alike, n_alike = group_rows([of_class, *(codes[name] for name in exact)], [n_classes, *(n_codes[n] for n in exact)])
    own, n_own = group_rows([alike, people], [n_alike, int(people.max()) + 1])
    n_others = np.bincount(alike)[alike] - np.bincount(own, minlength=n_own)[own]
    stays = np.ones(len(people), np.bool_)
    for name in (name for name in known if name not in exact):
        code, missing = codes[name], sides.scales[name].n_known
        value, n_values = group_rows([of_class, code], [n_classes, n_codes[name]])
        has_others = _least_of_others(people, value, people, n_values) < np.iinfo(np.int64).max
        if isinstance(masks[name], Interval):
            # Missing values, which are no end, have the last code.
            inside = np.where(code == missing, -1, code)
            is_known, most = inside >= 0, np.iinfo(np.int64).max
            low = _least_of_others(np.where(is_known, inside, most), of_class, people, n_classes)
            high = -_least_of_others(np.where(is_known, -inside, most), of_class, people, n_classes)
            stays &= np.where(is_known, (low <= inside) & (inside <= high), has_others)
        else:
            stays &= has_others
    n_in_class, is_sure = np.zeros(sides.n_source, np.int64), np.ones(sides.n_source, np.bool_)
    n_in_class[sides.truth], is_sure[sides.truth] = n_others, stays
    return n_in_class, is_sure


def _least_of_others(
    values: NDArray[np.int64], groups: NDArray[np.int64], people: NDArray[np.int64], n_groups: int
) -> NDArray[np.int64]:
    """Return the least value in the group of each row that another person has; the largest integer if nobody has."""
    largest = np.iinfo(np.int64).max
    first, second = np.full(n_groups, largest), np.full(n_groups, largest)
    np.minimum.at(first, groups, values)
    has_first = values == first[groups]
    holder = np.empty(n_groups, np.int64)
    holder[groups[has_first]] = people[has_first]
    is_other = people != holder[groups]
    np.minimum.at(second, groups[is_other], values[is_other])
    return np.where(is_other, first[groups], second[groups])


def _figures(found: _Found, n_people: tuple[int, int], is_estimated: str | None) -> dict[str, Any]:
    """Return shares and advantage of an attacker."""
    n_source, n_control = n_people
    share = found.source / n_source
    surely, possibly = (
        wilson_interval(n, n_source, CONFIDENCE) for n in (found.surely_left_out, found.possibly_left_out)
    )
    advantage = Estimate(np.nan, share - possibly.high, share - surely.low)
    if is_estimated is None:
        advantage = newcombe_interval((found.source, found.control), (n_source, n_control), CONFIDENCE)
    return {
        "membership_advantage": None if is_estimated else advantage.value,
        "membership_advantage_interval": [advantage.low, advantage.high],
        "membership_advantage_upper": max(abs(advantage.low), abs(advantage.high)),
        "membership_found": share,
        "membership_found_control": found.control / n_control if n_control else None,
        "membership_left_out_interval": [surely.low, possibly.high],
    }
