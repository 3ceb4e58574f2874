"""Implications after forgetting attributes: the conservative retraction.

With the context its columns are dropped and the basis is computed again (:func:`forget_attributes`). With only a basis,
attributes are eliminated one by one (:func:`forget_in_basis`). Both give the same basis.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from privacy_assets.errors import InvalidSettingError
from privacy_assets.semantic_risk.formal_context import FormalContext
from privacy_assets.semantic_risk.implications import stem_basis
from privacy_assets.semantic_risk.settings import MAX_CONCEPTS
from privacy_assets.setting_checks import is_integer, require

# The time to find the canonical form grows quadratically: about half a minute for these.
MAX_IMPLICATIONS = 10_000

# A set of attributes is an integer here, attribute a its bit a; a unit implication has one attribute as conclusion.
Unit = tuple[int, int]


def forget_attributes(
    context: FormalContext, attributes: Sequence[str], *, min_support: int = 0, max_concepts: int = MAX_CONCEPTS
) -> pd.DataFrame:
    """Return the stem basis of a context without some attributes, given by name; see :func:`stem_basis`."""
    return stem_basis(context.without(attributes), min_support=min_support, max_concepts=max_concepts)


def forget_in_basis(
    basis: pd.DataFrame, attributes: Sequence[str], *, max_implications: int = MAX_IMPLICATIONS
) -> pd.DataFrame:
    """Forget attributes in a basis, without its context.

    Parameters
    ----------
    basis : DataFrame
        ``premise`` and ``conclusion``, tuples of names; other columns are ignored. Any set of implications is allowed.
    attributes : sequence of str
        Names to forget.
    max_implications : int
        Maximum number of implications with one conclusion each, given or derived.

    Returns
    -------
    basis : DataFrame
        ``premise`` and ``conclusion`` of the stem basis of what follows without the attributes. If it is empty, the
        attributes are not disposable.

    Raises
    ------
    InvalidSettingError
        If there are more implications than allowed.
    """
    place = _places(basis)
    wanted = sum(1 << place[name] for name in set(attributes) if name in place)
    units = resolve(_units(basis, place), wanted, max_implications=max_implications)
    return _as_frame(canonical_basis([(premise, head) for premise, head in sorted(units)]), place)


def resolve(
    units: set[Unit], wanted: int, *, is_reduced: bool = True, max_implications: int = MAX_IMPLICATIONS
) -> set[Unit]:
    """Eliminate attributes one by one from implications, given as premise and one attribute that is not in it.

    The result, at most ``max_implications``, entails everything entailed before without the attributes; redundant
    premises are dropped after each if ``is_reduced``.
    """
    _require_few(len(units), max_implications)
    for attribute in _elements(wanted):
        makers = [premise for premise, head in units if head == attribute]
        users = [(premise & ~attribute, head) for premise, head in units if premise & attribute]
        units = {(premise, head) for premise, head in units if head != attribute and not premise & attribute}
        for maker in makers:
            units |= {(maker | premise, head) for premise, head in users if not (maker | premise) & head}
            _require_few(len(units), max_implications)
        if is_reduced:
            units = _without_larger(units)
    return units


def _require_few(n_implications: int, max_implications: int) -> None:
    require(is_integer(max_implications, 1), "max_implications", max_implications, "an integer above 0")
    if n_implications > max_implications:
        raise InvalidSettingError(
            f"There are more than {max_implications} implications, given or derived. Expected at most "
            "max_implications. Use implications of higher support, forget fewer attributes, raise max_implications, "
            "or use the context."
        )


def _without_larger(units: set[Unit]) -> set[Unit]:
    """Drop implications whose premise includes that of another one with the same conclusion."""
    premises: dict[int, list[int]] = {}
    for premise, head in sorted(units, key=lambda unit: unit[0].bit_count()):
        smaller = premises.setdefault(head, [])
        if not any(other & ~premise == 0 for other in smaller):
            smaller.append(premise)
    return {(premise, head) for head, own in premises.items() for premise in own}


def canonical_basis(rules: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the stem basis of rules, premises with their closures: close all, then each premise under the others.

    Notes
    -----
    Section 2 of S. Rudolph (2007), "Some notes on pseudo-closed sets", doi:10.1007/978-3-540-70901-5_10.
    """
    closed = dict.fromkeys((premise, _close(premise | conclusion, rules)) for premise, conclusion in rules)
    left = list(closed)
    for rule in closed:
        left.remove(rule)
        premise = _close(rule[0], left)
        if premise != rule[1]:
            left.append((premise, rule[1]))
    return sorted(set(left))


def _close(own: int, rules: Sequence[tuple[int, int]]) -> int:
    before = -1
    while own != before:
        before = own
        for premise, conclusion in rules:
            if premise & ~own == 0:
                own |= conclusion
    return own


def _elements(own: int) -> Iterator[int]:
    while own:
        lowest = own & -own
        yield lowest
        own ^= lowest


def _places(basis: pd.DataFrame) -> dict[str, int]:
    missing = [name for name in ("premise", "conclusion") if name not in basis]
    if missing:
        raise InvalidSettingError(f"The basis has no columns {missing}. Expected premise and conclusion.")
    names = dict.fromkeys(name for column in ("premise", "conclusion") for own in basis[column] for name in own)
    return {name: number for number, name in enumerate(names)}


def _bits(names: Sequence[str], place: Mapping[str, int]) -> int:
    return sum(1 << place[name] for name in set(names))


def _units(basis: pd.DataFrame, place: Mapping[str, int]) -> set[Unit]:
    units = set()
    for premise, conclusion in zip(basis["premise"], basis["conclusion"], strict=True):
        own = _bits(premise, place)
        units |= {(own, head) for head in _elements(_bits(conclusion, place) & ~own)}
    return units


def _as_frame(rules: Sequence[tuple[int, int]], place: Mapping[str, int]) -> pd.DataFrame:
    def names(own: int) -> tuple[str, ...]:
        return tuple(name for name, number in place.items() if own >> number & 1)

    return pd.DataFrame(
        {
            "premise": pd.Series([names(premise) for premise, _ in rules], dtype=object),
            "conclusion": pd.Series([names(conclusion & ~premise) for premise, conclusion in rules], dtype=object),
        }
    )
