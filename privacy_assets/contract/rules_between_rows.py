"""Rules between consecutive rows of a person, such as experience that never falls: who breaks them, counted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from privacy_assets.contract.related import RelatedTables
from privacy_assets.contract.rule_expressions import Columns
from privacy_assets.contract.rules import read_rules
from privacy_assets.contract.views import related_views
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.storage.table import frame_of


def count_rules_between_rows(
    rules: Mapping[str, Mapping[str, Any]], tables: Mapping[str, RelatedTables]
) -> pd.DataFrame:
    """Count the pairs of consecutive rows of a person that violate rules; synthesizers do not keep these rules.

    Parameters
    ----------
    rules : mapping of str to mapping of str to (str or mapping)
        By child, rules by name, as in a contract, on the view ``histories of v``: columns end in `` 1`` in the earlier
        row and in `` 2`` in the later one, and gaps of datetimes are in days.
        ``{"interviews": {"never_falls": "`experience 2` >= `experience 1`"}}``.
    tables : mapping of str to RelatedTables
        Original, synthetic and other tables by any name.

    Returns
    -------
    DataFrame
        For each child, rule and table: ``pairs`` on which the rule decides, as no value that it needs is missing,
        ``violations`` among them, and their ``share``, which is missing without pairs.

    Raises
    ------
    InvalidSettingError, InvalidTableError
        If a rule cannot be read, or cannot be evaluated on a table; or if tables lack a child that has rules.
    """
    if not isinstance(rules, Mapping) or not isinstance(tables, Mapping) or not rules or not tables:
        raise InvalidSettingError("`rules` and `tables` must map names to rules and tables. Nothing was counted.")
    for side, own in tables.items():
        lacking = [name for name in rules if not isinstance(own, RelatedTables) or name not in own.children]
        if lacking:
            raise InvalidTableError(
                f"The tables {side!r} have no children {lacking}, which have rules. Expected RelatedTables with all of "
                "them. Nothing was counted."
            )
    found = []
    views = {side: related_views(own) for side, own in tables.items()}
    for name, written in rules.items():
        pairs = {side: Columns(_in_days(own[f"histories of {name}"])) for side, own in views.items()}
        for rule in read_rules(written, frame_of(next(iter(pairs.values())).table)):
            for side, columns in pairs.items():
                outcome = rule.outcome(columns)
                n_pairs, n_violating = int((~outcome.missing).sum()), int(outcome.is_false.sum())
                share = n_violating / n_pairs if n_pairs else None
                found.append((name, rule.name, side, n_pairs, n_violating, share))
    names = ["child", "rule", "table", "pairs", "violations", "share"]
    return pd.DataFrame(found, columns=names).astype({"share": float})


def _in_days(view: pd.DataFrame) -> pd.DataFrame:
    gaps = view.select_dtypes("timedelta")
    return view.assign(**{str(name): gap.dt.total_seconds() / 86_400 for name, gap in gaps.items()})
