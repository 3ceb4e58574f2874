"""How many records of a synthetic table violate rules of the contract, next to those of real people."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import Rule, violations
from privacy_assets.errors import InvalidTableError
from privacy_assets.storage.table import Table, select_columns

RULES: Final = "rules"
RULE_VIOLATIONS: Final = "rule_violations"
SYNTHETIC: Final = "synthetic"
MOST_RULES_NAMED: Final = 10


@dataclass(frozen=True)
class RuleViolations:
    """Result of `count_rule_violations`, with counts only.

    ``n_violating`` of ``n_records`` synthetic records violate a rule; None if ``problem`` says that a rule could not be
    evaluated. ``by_rule`` has each judged rule as it was written, and the records of each table that violate it.
    """

    n_records: int
    n_violating: int | None
    by_rule: Mapping[str, Mapping[str, Any]]
    not_judged: tuple[str, ...] = ()
    problem: str = ""

    @property
    def share(self) -> float | None:
        """Share of the synthetic records that violate a rule."""
        return None if self.n_violating is None else self.n_violating / max(self.n_records, 1)

    @property
    def metrics(self) -> dict[str, float | None]:
        """The figure that a policy can limit."""
        return {RULE_VIOLATIONS: self.share}

    @property
    def remark(self) -> str:
        """The violated rules, the most violated first, or why there is no figure; empty without either."""
        found = [(name, own[SYNTHETIC]) for name, own in self.by_rule.items() if own[SYNTHETIC]]
        found = sorted(found, key=lambda each: -each[1])
        more = f", and {len(found) - MOST_RULES_NAMED} more" if len(found) > MOST_RULES_NAMED else ""
        said = ", ".join(f"{name!r}: {n:,}" for name, n in found[:MOST_RULES_NAMED])
        left = f"rules on generalized or removed columns, not judged: {len(self.not_judged)}" if self.not_judged else ""
        return self.problem or "; ".join(filter(None, [f"records by rule: {said}{more}" if found else "", left]))

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON values, for the manifest."""
        counts = {RULE_VIOLATIONS: self.share, "records_with_violations": self.n_violating}
        return counts | {"by_rule": {**self.by_rule}, "not_judged": list(self.not_judged)}


def count_rule_violations(
    rules: Sequence[Rule],
    synthetic: Table,
    people: Mapping[str, Table],
    generalized: Collection[str] = (),
) -> RuleViolations:
    """Count the records of a synthetic table, and of people by name, that violate rules.

    A rule is not judged if it names a column that the table lacks, or a ``generalized`` one. Checks of pandera can read
    every column, so they are not judged if any is generalized.
    """
    plain = set(synthetic.columns) - set(generalized)
    judged = [
        rule for rule in rules if set(rule.columns) <= plain and not (rule.check is not None and len(generalized))
    ]
    others = tuple(rule.name for rule in rules if rule not in judged)
    try:
        found = violations(judged, Columns(synthetic))
        counts = {name: {SYNTHETIC: int(own.sum())} for name, own in found.items()}
        for side, table in people.items():
            shared = [name for name in table.columns if name in synthetic.columns]
            own = violations(judged, Columns(select_columns(table, shared)))
            counts = {name: {**counts[name], side: int(each.sum())} for name, each in own.items()}
    except InvalidTableError as error:
        problem = str(error)
        return RuleViolations(len(synthetic), None, {}, others, problem)
    by_rule = {rule.name: {"rule": rule.written, **counts[rule.name]} for rule in judged}
    n_violating = int(np.any([*found.values()], axis=0).sum()) if found else 0
    return RuleViolations(len(synthetic), n_violating, by_rule, others)
