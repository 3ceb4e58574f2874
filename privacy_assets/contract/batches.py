"""Admission of a table that arrives in batches, with the result and the refusals of the whole table."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

import pandas as pd
import pandera.pandas as pa

from privacy_assets.contract.contract import TABLE, Failure, TableContract, broken_contract, shape_failures
from privacy_assets.contract.conversion import convert, zones_of
from privacy_assets.errors import ContractError, InvalidSettingError, InvalidTableError

ROW_BY_ROW: Final = frozenset(
    {
        *("equal_to", "not_equal_to", "greater_than", "greater_than_or_equal_to", "less_than"),
        *("less_than_or_equal_to", "in_range", "isin", "notin", "str_contains", "str_endswith", "str_length"),
        *("str_matches", "str_startswith"),
    }
)
"""Checks of pandera that decide on each value by itself, as do all with ``element_wise``."""
NOT_MISSING: Final = "is_not_missing"
ALL_MISSING: Final = "is_not_all_missing"
SEVERAL_ZONES: Final = "has_one_time_zone"
NOT_EVALUATED: Final = " (could not be evaluated)"
Counts = tuple[int, list[tuple[str, str, int]], list[tuple[str, str, int]], list[tuple[str, Any, int]]]
"""Rows; losses by column and check; failures of checks by column and check; times by column and zone."""


class BatchAdmission:
    """The contract's decision on a table, one batch of rows after the other.

    Its checks must decide on each value by itself; those that need the whole column or table, such as uniqueness, are
    refused. Numbers that are written as text are read batch by batch. Whole numbers beyond 2**53 are then exact even if
    fractions occur in other batches; admission of the whole column refuses them.
    """

    def __init__(self, contract: TableContract) -> None:
        _require_row_by_row(contract)
        self._contract = contract
        self._n_rows = 0
        self._names: list[str] | None = None
        self._shape: list[Failure] = []
        self._lost: dict[str, Counter[str]] = {name: Counter() for name in contract.columns}
        self._checked: Counter[tuple[str, str]] = Counter()
        self._zones: dict[str, Counter[object]] = {name: Counter() for name in contract.columns}

    def check(self, batch: pd.DataFrame) -> pd.DataFrame:
        """Check and convert the next rows, as `TableContract.check` does; their violations are counted.

        All batches must have the same columns, and at least one of the contract.
        """
        self._check_shape(batch)
        converted = {}
        for name in self._contract.columns:
            if name not in batch.columns:
                continue
            wanted = self._contract.required_type(name)
            converted[name], lost = convert(batch[name], wanted)
            self._lost[name].update(dict(lost))
            if wanted.kind == "datetime":
                self._zones[name].update(zones_of(batch[name], wanted))
        result = pd.DataFrame(converted)
        self._n_rows += len(batch)
        for column, check, count in (
            self._contract.check_failures(result, with_table_checks=False) if len(batch) else []
        ):
            self._checked[column, check] += count
        return result

    @property
    def counts(self) -> Counts:
        """The counts of the rows so far, as plain data without values."""
        lost = [(name, check, n) for name, own in self._lost.items() for check, n in own.items()]
        zones = [(name, zone, n) for name, own in self._zones.items() for zone, n in own.items()]
        return self._n_rows, lost, [(*place, n) for place, n in self._checked.items()], zones

    def include(self, counts: Counts) -> None:
        """Count rows that were checked elsewhere, against the same contract."""
        n_rows, lost, checked, zones = counts
        self._n_rows += n_rows
        for name, check, count in lost:
            self._lost[name][check] += count
        for name, check, count in checked:
            self._checked[name, check] += count
        for name, zone, count in zones:
            self._zones[name][zone] += count

    @property
    def mixed_columns(self) -> set[str]:
        """Columns with times of several zones, so that none of their values can be converted."""
        return {name for name, zones in self._zones.items() if len(zones) > 1}

    def losses(self) -> list[Failure]:
        """Return the problems of the columns, and the values that could not be converted, by column and check."""
        if self._n_rows == 0:
            raise broken_contract("The table", [*self._shape, (TABLE, "has_records", 1)])
        failures, is_mixed = list(self._shape), self.mixed_columns
        for name in self._contract.columns:
            if name in (self._names or []):
                failures += [(name, check, count) for check, count in self._losses(name, is_mixed) if count]
        return failures

    def check_failures(self) -> list[Failure]:
        """Return the failures of the schema's checks, by column and check."""
        failures, is_mixed = [], self.mixed_columns
        for (column, check), count in self._checked.items():
            if column in is_mixed or (column, check + NOT_EVALUATED) in self._checked:
                continue
            failures.append((column, check, 1 if check.endswith(NOT_EVALUATED) else count))
        return failures

    def _check_shape(self, batch: pd.DataFrame) -> None:
        names = list(batch.columns)
        if self._names is None:
            self._shape = [each for each in shape_failures(batch, self._contract.columns) if each[1] != "has_records"]
            self._names = names
            if any(column == TABLE for column, _, _ in self._shape):
                raise broken_contract("The table", self._shape)
        elif names != self._names:
            raise InvalidTableError(
                "The batches of the table have different columns. Expected the same columns in each. Nothing was "
                "admitted; give all batches one schema."
            )

    def _losses(self, name: str, is_mixed: set[str]) -> list[tuple[str, int]]:
        """Return the losses of a column as they would be counted in a conversion of the whole column."""
        own = self._lost[name]
        losses = [(check, count) for check, count in own.items() if check not in (NOT_MISSING, ALL_MISSING)]
        if name in is_mixed:
            zones = self._zones[name]
            losses = [(SEVERAL_ZONES, zones.total() - max(zones.values()))]
        n_missing, wanted = own[NOT_MISSING] + own[ALL_MISSING], self._contract.required_type(name)
        if n_missing == self._n_rows and not wanted.may_be_empty:
            return [*losses, (ALL_MISSING, n_missing)]
        # In a nullable column, only batches without any value were counted.
        return losses if wanted.nullable else [*losses, (NOT_MISSING, n_missing)]


def refusal(contract: TableContract, failures: list[Failure]) -> ContractError:
    """Return the refusal of a table, with advice on acknowledged columns that it no longer has."""
    acknowledged = contract.acknowledged
    gone = [name for name, check, _ in failures if check == "is_present" and name in acknowledged]
    return broken_contract("The table", failures, gone)


def checks_of_all_rows(contract: TableContract) -> dict[str, list[str]]:
    """Return the checks that a batch cannot decide, by column."""
    schema = contract.schema
    found: dict[str, list[str]] = {}
    of_table = {"checks of the table": schema.checks, "unique": schema.unique, "rules": contract.rules}
    if any(of_table.values()):
        found[TABLE] = [name for name, each in of_table.items() if each and (name != "rules" or not schema.checks)]
    for name, column in schema.columns.items():
        own = ["unique"] if column.unique else []
        own += [
            contract.name_of_check(str(name), place)
            for place, each in enumerate(column.checks)
            if not decides_on_each_value(each)
        ]
        if own:
            found[str(name)] = own
    return found


def _require_row_by_row(contract: TableContract) -> None:
    """Refuse checks that a batch cannot decide."""
    if found := checks_of_all_rows(contract):
        raise InvalidSettingError(
            f"The contract has checks that need the whole table, which is read in batches: {found}. Expected ranges, "
            "allowed values, patterns of text and checks with element_wise=True. Nothing was read; check the rest "
            "beforehand, or read the whole table at once."
        )


def decides_on_each_value(check: Any) -> bool:
    """Whether a check does not need other values of the column."""
    return bool(check.element_wise) or is_built_in(check)


def is_built_in(check: Any) -> bool:
    """Whether a check is one of pandera's own `ROW_BY_ROW`."""
    # A user's own function may have the name of a check of pandera.
    is_of_pandera = type(check._check_fn) is type(pa.Check.greater_than(0)._check_fn)
    return check.groupby is None and check.name in ROW_BY_ROW and is_of_pandera
