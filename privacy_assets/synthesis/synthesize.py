"""Synthesis with any synthesizer, whose output is checked against the table it learned from.

A synthesizer is any object with `name`, `settings`, `fit` and `sample` (`Synthesizer`). Three are built in: see
`privacy_assets.synthesis.gaussian_copula`, `privacy_assets.synthesis.cart` and `privacy_assets.synthesis.smooth_cart`.
They do not guarantee privacy, which is measured afterwards on their output.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any, Final, Literal, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import pandas as pd
from pandas.api import types

from privacy_assets.columns.column_names import require_unique_text_names
from privacy_assets.columns.safe_names import dtype_name, type_name
from privacy_assets.contract.related import PEOPLE, RelatedTables, refuse_with_related
from privacy_assets.contract.rules import Rule, read_rules
from privacy_assets.disclosure.rare_values import RareColumn
from privacy_assets.engine.protocol import Engine
from privacy_assets.errors import InvalidSettingError, InvalidTableError
from privacy_assets.setting_checks import is_integer
from privacy_assets.synthesis.kept_rules import Plan, keep_rules

Kind = Literal["integer", "float", "boolean", "datetime", "category", "text"]

SYNTHESIZERS: Final[Mapping[str, str]] = {
    "gaussian_copula": "privacy_assets.synthesis.gaussian_copula:GaussianCopula",
    "cart": "privacy_assets.synthesis.cart:Cart",
    "smooth_cart": "privacy_assets.synthesis.smooth_cart:SmoothCart",
}
"""Built-in synthesizers by name; the classes are imported on demand (`synthesizer_class`)."""

DEFAULT_SYNTHESIZER: Final = "smooth_cart"
SEQUENCES: Final = "privacy_assets.synthesis.sequences"
"""Related tables are made there, by `smooth_cart`."""
MIN_RECORDS: Final = 2
MOST_ROWS_HERE: Final = 10_000_000
"""Rows that a method learns from in this process if there is an engine; `smooth_cart` takes about 0.4 GB a million."""
REDRAWN_KINDS: Final = frozenset({"text", "category"})
"""Kinds of columns whose rare values the built-in synthesizers redraw."""
NUMERIC: Final = frozenset({"integer", "float", "datetime"})


@runtime_checkable
class Synthesizer(Protocol):
    """The protocol of a synthesizer for `synthesize`."""

    @property
    def name(self) -> str:
        """Name used in messages and the manifest."""
        ...

    @property
    def settings(self) -> Mapping[str, Any]:
        """Settings in use, JSON-able, for the manifest."""
        ...

    def fit(self, table: pd.DataFrame, *, seed: int) -> Synthesizer:
        """Learn from `table`; return the fitted synthesizer."""
        ...

    def sample(self, n_records: int, *, seed: int) -> pd.DataFrame:
        """Make `n_records` records with the columns and dtypes of the learned table."""
        ...


class SyntheticRecords(NamedTuple):
    """Synthetic records, and counts of the rare values redrawn before; None if the synthesizer is not built in.

    ``rules`` has the counts of records that were drawn again for a rule, and that violate one; None without rules.
    """

    table: pd.DataFrame
    redrawn: Mapping[str, RareColumn] | None
    rules: Mapping[str, int] | None = None


class SyntheticTables(NamedTuple):
    """Synthetic people and their rows, and ``rules`` as of `SyntheticRecords` by table that has some."""

    tables: RelatedTables
    rules: Mapping[str, Mapping[str, int]]


Table = TypeVar("Table", pd.DataFrame, RelatedTables)


def synthesize(
    original: Table,
    *,
    method: str | Synthesizer = DEFAULT_SYNTHESIZER,
    n_records: int | None = None,
    seed: int = 0,
    settings: Mapping[str, Any] | None = None,
    person: Sequence[Any] | pd.Series[Any] | None = None,
    engine: Engine | None = None,
    rules: Mapping[str, Any] | None = None,
) -> Table:
    """Learn from `original` and make synthetic records of the same columns, order and dtypes.

    The built-in methods do not reproduce text and category values that fewer than `min_atom` people share: these are
    first redrawn from the others of their column, unless `min_atom` in `settings` is 1. Other synthesizers decide for
    themselves.

    Parameters
    ----------
    original : DataFrame or RelatedTables
        Records that the synthesizer may see; every column is learned, so identifiers must be removed first
        (`TableContract.released_columns`). Of related tables, keys are not learned but made anew: whole numbers from 1.
    method : str or Synthesizer
        Name of a built-in synthesizer, or an object that follows the protocol. Related tables need ``smooth_cart``, or
        an object with ``fit_related(tables, *, seed)``, whose result has ``sample(n_people, *, seed)``.
    n_records : int, optional
        Records, or people of related tables, to make, at least 1; as many as `original` by default.
    seed : int
        Seed of all random draws; the same seed and table give the same records.
    settings : mapping, optional
        Settings of the built-in synthesizer `method`.
    person : sequence, optional
        Person of each row of `original`, so that a person with many records counts once; only used by the built-in
        methods. By default each record counts as a person.
    engine : LocalEngine or SparkEngine, optional
        Where `gaussian_copula` learns the dependence of the columns; the records do not depend on it. Its margins, and
        all other methods, are learned in this process, where records are also drawn. With an engine that divides the
        work, the other built-in methods refuse more than 10,000,000 rows.
    rules : mapping, optional
        Rules across columns that the records of built-in methods keep, as in a contract; of related tables, by table:
        ``{"people": {...}, "visits": {...}}``. Records that violate a rule after 20 rounds stay.

    Returns
    -------
    DataFrame or RelatedTables
        `n_records` rows with a RangeIndex, or `n_records` people and their rows.

    Raises
    ------
    InvalidSettingError
        If the method or a setting is unknown, or not one for related tables; `n_records` is below 1, or the seed is
        negative.
    InvalidTableError
        If the synthesizer cannot learn from `original`, which may have too many rows for it, a column does not have any
        value that enough people share, or the synthesizer did not return a table of the described form.
    EngineError
        If the engine fails, or its workers do not have this version of the package.
    """
    if isinstance(original, RelatedTables):
        refuse_with_related(person=person, engine=engine)
        tables = original.tables
        if not isinstance(rules, Mapping | None) or (rules and not set(rules) <= set(tables)):
            raise InvalidSettingError(
                f"`rules` of RelatedTables must map some of their tables, {list(tables)}, to the rules of each, as a "
                "contract has them. Nothing was synthesized."
            )
        by_table = {name: read_rules(own, tables[name]) for name, own in (rules or {}).items()}
        return make_related(original, method, n_records, seed, settings, by_table).tables
    read = () if rules is None else read_rules(rules, original)
    made = make_synthetic_records(original, method, n_records, seed, settings, person, engine=engine, rules=read)
    return made.table


def make_related(
    original: RelatedTables,
    method: str | Synthesizer,
    n_people: int | None,
    seed: int,
    settings: Mapping[str, Any] | None,
    rules: Mapping[str, Sequence[Rule]],
) -> SyntheticTables:
    """Make synthetic people and their rows; `smooth_cart` keeps the rules of each table on what is learned of it."""
    synthesizer: Any = resolve_synthesizer(method, settings)
    name, n_people = synthesizer.name, len(original.people) if n_people is None else n_people
    check_setting("synthesize", "seed", seed, at_least=0)
    check_setting("synthesize", "n_records", n_people, at_least=1)
    fit_seed, sample_seed = (int(state) for state in np.random.SeedSequence(seed).generate_state(2))
    if is_embedded(synthesizer) and name == "smooth_cart":
        refuse_with_related(group=synthesizer.settings["group"])
        fitted = import_module(SEQUENCES).Sequences(original, synthesizer, seed=fit_seed, rules=rules)
    elif hasattr(synthesizer, "fit_related"):
        fitted = synthesizer.fit_related(original, seed=fit_seed)
    else:
        raise InvalidSettingError(
            f"`method` {name!r} cannot make RelatedTables: it learns one table, in which rows have no person. Use "
            "'smooth_cart', or an object with `fit_related`. Nothing was synthesized."
        )
    made = fitted.sample(n_people, seed=sample_seed)
    if not isinstance(made, RelatedTables) or list(made.children) != list(original.children):
        raise InvalidTableError(
            f"Synthesizer {name!r} returned a {type_name(made)}, not RelatedTables with the children "
            f"{list(original.children)}. Nothing was synthesized."
        )
    numbers = {PEOPLE: [*original.identifiers], **{each: child.numbers for each, child in original.children.items()}}
    for each, like in original.tables.items():
        own = made.tables[each].drop(columns=numbers[each], errors="ignore")
        _check_output(own, like.drop(columns=numbers[each]), len(own), name)
    return SyntheticTables(made, getattr(fitted, "counts", {}) if is_embedded(synthesizer) else {})


def make_synthetic_records(
    original: pd.DataFrame,
    method: str | Synthesizer,
    n_records: int | None,
    seed: int,
    settings: Mapping[str, Any] | None,
    person: Sequence[Any] | pd.Series[Any] | None,
    progress: Callable[[], None] | None = None,
    engine: Engine | None = None,
    rules: Sequence[Rule] = (),
) -> SyntheticRecords:
    """Make synthetic records like `synthesize`, and count redrawn values; of rules, those on its columns are kept.

    The built-in methods call `progress` before each column that they learn; an exception that it raises ends the work.
    """
    synthesizer = resolve_synthesizer(method, settings)
    name = synthesizer.name  # Before it has seen the table.
    count = len(original) if n_records is None else n_records
    check_setting("synthesize", "seed", seed, at_least=0)
    check_learnable(original, name)
    check_setting("synthesize", "n_records", count, at_least=1)
    fit_seed, sample_seed = (int(state) for state in np.random.SeedSequence(seed).generate_state(2))
    redraws = is_embedded(synthesizer)
    more: dict[str, Any] = {"person": person, "progress": progress} if redraws else {}
    if redraws and name == "gaussian_copula":
        more["engine"] = engine
    elif redraws and engine is not None and engine.rows_per_task is not None and len(original) > MOST_ROWS_HERE:
        raise InvalidTableError(
            f"{name!r} learns in this process, not on the engine, and takes at most {MOST_ROWS_HERE:,} rows next to "
            f"one; the table has {len(original):,}. Use `gaussian_copula`, or a sample of people, or no engine on a "
            "machine with enough memory. Nothing was synthesized."
        )
    plan = Plan.of(rules if redraws else (), original, int(synthesizer.settings["min_atom"]) if redraws else 1, person)
    fitted = synthesizer.fit(plan.learned(original), seed=fit_seed, **more)
    if plan.rules:
        given: dict[str, Any] = {} if name == "gaussian_copula" else {"rules": plan.early}
        kept = keep_rules(lambda n, own: fitted.sample(n, seed=own, **given), count, sample_seed, plan)
        synthetic, counts = kept.table[list(original.columns)], {"redrawn": kept.redrawn, "left": kept.left}
    else:
        synthetic, counts = fitted.sample(count, seed=sample_seed), None
    _check_output(synthetic, original, count, name)
    redrawn = fitted.redrawn if redraws else None  # type: ignore[attr-defined]
    return SyntheticRecords(synthetic.reset_index(drop=True), redrawn, counts)


def is_embedded(synthesizer: Synthesizer) -> bool:
    """Whether a synthesizer is one of `SYNTHESIZERS`, which redraw rare values and count people."""
    return type(synthesizer) in {synthesizer_class(name) for name in SYNTHESIZERS}


def synthesizer_class(name: str) -> type[Any]:
    """Import the built-in synthesizer called `name`."""
    if name not in SYNTHESIZERS:
        raise InvalidSettingError(
            f"There is no synthesizer named {name!r}. There are {sorted(SYNTHESIZERS)}, or pass an object with `name`, "
            "`settings`, `fit` and `sample`. Nothing was synthesized."
        )
    module, _, attribute = SYNTHESIZERS[name].partition(":")
    found: type[Any] = getattr(import_module(module), attribute)
    return found


def check_learnable(table: pd.DataFrame, synthesizer: str) -> None:
    """Raise `InvalidTableError` if `table` has a shape, a name or an infinity from which nothing can be learned."""
    if not isinstance(table, pd.DataFrame):
        raise InvalidTableError(f"{synthesizer!r} learns from a pandas DataFrame; got a {type_name(table)}.")
    n_rows, n_columns = table.shape
    if n_columns == 0:
        raise InvalidTableError(
            f"{synthesizer!r} has no columns to learn from: the table is empty, or all were removed."
        )
    require_unique_text_names(table)
    if n_rows < MIN_RECORDS:
        raise InvalidTableError(
            f"{synthesizer!r} cannot learn from {n_rows} record{'' if n_rows == 1 else 's'}: it needs at least "
            f"{MIN_RECORDS}, and its output would only repeat the table with fewer."
        )
    infinite = {name: count for name, count in _infinities(table).items() if count}
    if infinite:
        raise InvalidTableError(f"Columns have infinite values: {infinite} (counts). Replace them before synthesis.")


def check_kinds(table: pd.DataFrame, synthesizer: str) -> dict[str, Kind]:
    """Return the kind of each column; refuse a table that the built-in synthesizers cannot learn from."""
    check_learnable(table, synthesizer)
    kinds = {str(name): _kind(column) for name, column in table.items()}
    unknown = {name: dtype_name(table[name].dtype) for name, kind in kinds.items() if kind is None}
    if unknown:
        raise InvalidTableError(
            f"{synthesizer!r} cannot learn columns of these types: {unknown}. It supports integers, floats, booleans, "
            "datetimes, categories and text (object columns must have text only): convert them before synthesis."
        )
    return {name: kind for name, kind in kinds.items() if kind is not None}


def check_setting(owner: str, name: str, value: object, *, at_least: int) -> int:
    """Return `value` if it is a whole number of at least `at_least`, else raise `InvalidSettingError`."""
    if not is_integer(value, at_least):
        raise InvalidSettingError(f"`{name}` of {owner!r} is {value!r}; expected a whole number, {at_least} or more.")
    return int(value)


def is_ordered(kind: Kind, dtype: object) -> bool:
    """Whether the values of a column have an order of their own."""
    return kind not in REDRAWN_KINDS or (isinstance(dtype, pd.CategoricalDtype) and bool(dtype.ordered))


def _kind(column: pd.Series) -> Kind | None:
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return "category"
    if types.is_bool_dtype(dtype):
        return "boolean"
    if types.is_integer_dtype(dtype):
        return "integer"
    if types.is_float_dtype(dtype):
        return "float"
    if types.is_datetime64_any_dtype(dtype):
        return "datetime"
    is_text = types.is_string_dtype(dtype) and not types.is_object_dtype(dtype)
    if is_text or (types.is_object_dtype(dtype) and types.infer_dtype(column, skipna=True) in {"string", "empty"}):
        return "text"
    return None


def _infinities(table: pd.DataFrame) -> dict[str, int]:
    floats = [name for name in table.columns if types.is_float_dtype(table[name].dtype)]
    return {str(name): int(np.isinf(table[name].to_numpy(dtype=np.float64, na_value=np.nan)).sum()) for name in floats}


def resolve_synthesizer(method: str | Synthesizer, settings: Mapping[str, Any] | None = None) -> Synthesizer:
    """Return the synthesizer for a name and settings, or the object itself."""
    if not isinstance(method, str):
        if settings:
            raise InvalidSettingError(
                f"`settings` {sorted(settings)} were given together with a synthesizer object. Pass them to the object."
            )
        if getattr(method, "spends_budget", False):
            raise InvalidSettingError(
                f"The synthesizer {method.name!r} spends a privacy budget, which would not be recorded here. Call its "
                "`fit` and then `sample` of the model that it returns. Nothing was synthesized, and nothing was spent."
            )
        missing = [part for part in ("name", "settings", "fit", "sample") if not hasattr(method, part)]
        if missing:
            raise InvalidSettingError(
                f"A synthesizer of type {type_name(method)} lacks {missing}. It needs `name`, `settings`, "
                "`fit(table, *, seed)` and `sample(n_records, *, seed)`."
            )
        return method
    found = synthesizer_class(method)
    known = list(inspect.signature(found).parameters)
    unknown = sorted(set(settings or {}) - set(known))
    if unknown:
        raise InvalidSettingError(f"{method!r} has no settings {unknown}. It has {known}. Nothing was synthesized.")
    made: Synthesizer = found(**dict(settings or {}))
    return made


def _check_output(synthetic: object, original: pd.DataFrame, n_records: int, name: str) -> None:
    if not isinstance(synthetic, pd.DataFrame):
        raise InvalidTableError(f"Synthesizer {name!r} returned a {type_name(synthetic)}; expected a DataFrame.")
    expected, found = list(original.columns), list(synthetic.columns)
    if expected != found:
        missing, extra = [c for c in expected if c not in found], [c for c in found if c not in expected]
        raise InvalidTableError(
            f"Synthesizer {name!r} did not return the columns it learned, in their order: missing {missing}, and "
            f"{len(extra)} unknown; expected {expected}."
        )
    wrong = {
        str(column): f"{dtype_name(synthetic[column].dtype)} instead of {dtype_name(original[column].dtype)}"
        for column in expected
        if synthetic[column].dtype != original[column].dtype
    }
    if wrong:
        raise InvalidTableError(f"Synthesizer {name!r} changed the types of columns: {_without_categories(wrong)}.")
    if len(synthetic) != n_records:
        raise InvalidTableError(f"Synthesizer {name!r} returned {len(synthetic)} records; expected {n_records}.")


def _without_categories(wrong: Mapping[str, str]) -> dict[str, str]:
    """Keep only the name of a dtype: the text of some dtypes lists their categories, which are values."""
    return {column: text.splitlines()[0] for column, text in wrong.items()}
