"""Related tables as they are measured: views for the assessments, and counts that are summed over the tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pandas as pd

from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import RelatedTables, named
from privacy_assets.contract.related_contracts import RelatedContracts
from privacy_assets.contract.rule_violations import RuleViolations
from privacy_assets.contract.views import columns_of_views, related_views
from privacy_assets.disclosure.rare_values import RareValues
from privacy_assets.mpucc.preprocess import PreprocessedTables, preprocess
from privacy_assets.pipeline.measure import rare_values_of, rule_violations_of
from privacy_assets.release.policy import Policy
from privacy_assets.utility.foreign import why_foreign

HISTORIES: Final = "histories of "
Sides = tuple[RelatedTables, RelatedTables, RelatedTables]
"""Original, synthetic and control."""


def compared_related(contracts: RelatedContracts, tables: Sides) -> Sides:
    """Return the tables of the disclosure assessment."""
    original, synthetic, control = map(contracts.as_compared, tables)
    return original, synthetic, control


def prepared_views(contracts: RelatedContracts, tables: Sides) -> dict[str, PreprocessedTables]:
    """Return the views of the mpUCC assessment by person, with whether their records can be compared with people.

    Views without records of a side are left out.
    """
    sides = [related_views(own) for own in compared_related(contracts, tables)]
    return {name: _prepared(name, [own[name] for own in sides], contracts.person) for name in columns_of_views(tables)}


def _prepared(name: str, views: Sequence[pd.DataFrame], person: str) -> PreprocessedTables:
    original, synthetic, control = views
    prepared = preprocess(original, synthetic.drop(columns=person), control, person=person)
    foreign = ""
    if not name.startswith(HISTORIES):  # Their columns are also in the rows.
        # One row of each person, whichever; the same of the same tables.
        one = [view.sample(frac=1, random_state=0).drop_duplicates(person).drop(columns=person) for view in views]
        foreign = why_foreign(*one)
    return prepared.judged(foreign)


def rare_values_of_related(
    policy: Policy, contracts: RelatedContracts, tables: RelatedTables, people: Sequence[RelatedTables]
) -> RareValues | None:
    """Count the rare values of all tables, if the policy limits them; columns are named with their table."""
    by_person = [own.by_person() for own in people]
    counted = {
        name: rare_values_of(policy, contract, table, [own[name] for own in by_person], tables.keys[name], ())
        for name, contract, table in _each(contracts, tables)
    }
    found = {name: own for name, own in counted.items() if own is not None}
    if not found:
        return None
    return RareValues(
        policy.people_per_value,
        {named(name, column): rare for name, own in found.items() for column, rare in own.by_column.items()},
        sum(own.n_records for own in found.values()),
        {named(name, column): shares for name, own in found.items() for column, shares in own.unknown_values.items()},
    )


def rule_violations_of_related(
    policy: Policy, contracts: RelatedContracts, tables: RelatedTables, people: Sequence[RelatedTables]
) -> RuleViolations | None:
    """Count the violations of rules in all tables that have some, if the policy limits them."""
    counted = {
        name: rule_violations_of(policy, contract, table, [own.tables[name] for own in people])
        for name, contract, table in _each(contracts, tables)
        if contract.rules
    }
    found = {name: own for name, own in counted.items() if own is not None}
    if not found:
        return None
    numbers = [own.n_violating for own in found.values()]
    return RuleViolations(
        sum(own.n_records for own in found.values()),
        None if None in numbers else sum(filter(None, numbers)),
        {named(name, rule): counts for name, own in found.items() for rule, counts in own.by_rule.items()},
        tuple(named(name, rule) for name, own in found.items() for rule in own.not_judged),
        "; ".join(named(name, own.problem) for name, own in found.items() if own.problem),
    )


def _each(contracts: RelatedContracts, tables: RelatedTables) -> list[tuple[str, TableContract, pd.DataFrame]]:
    return [(name, contract, tables.tables[name]) for name, contract in contracts.tables.items()]
