"""What a recipient can undo: the transformations of `undoable.py`, as data.

A new transformation is one entry of `TRANSFORMATIONS`. What it may do to each figure is declared once for its family,
in `PROMISES`.
"""

import tempfile
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as parquet
from pandas.api import types

from benchmarks.campaigns.undoable_tables import (
    LINKED,
    SEPARATE,
    Anonymized,
    Source,
    Synthetic,
    are_far,
    most_unique,
    step_of,
)
from privacy_assets.anonymization.dataset import anonymize_dataset
from privacy_assets.contract.contract import TableContract
from privacy_assets.disclosure.declared_unit import UNIT_CHECK
from privacy_assets.engine.local import LocalEngine
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.release.row_links import LINKS_CHECK
from privacy_assets.storage.parquet_dataset import open_parquet_dataset

Form = Literal["typed", "text", "anonymized"]
Random = np.random.Generator
Text = Callable[[str], str]
TENS = 10
TELLS = 0.2
"""Distance of frequencies from those of real people, of at most 1, from which on a one-to-one change can be undone."""
FEW_CELLS = 0.02
"""Share of the cells of a column up to which it may be in another notation; one in 200 goes unseen."""
FEW_COPIES = 15
"""Copies up to which another notation of them alone may be chance."""
FEWEST_WITH_GAPS = 300
"""Originals below which gaps around them may be chance."""
ROWS_OF_A_GROUP = 97
"""Not a divisor of any number of rows, so that the last group differs."""


class Transformation(NamedTuple):
    """A change of a release that whoever receives it can undo.

    Attributes
    ----------
    name : str
    family : str
        Its row of `PROMISES`.
    undone_by : str
        What the recipient does.
    change : callable
        Changes a release, with a generator; returns None where there is nothing to change.
    form : {"typed", "text", "anonymized"}
        The releases to which it applies: synthetic ones as they are, or with all columns as text; anonymized ones.
    draws : bool
        Whether it draws other records, so that a share may improve by chance.
    seen_by : str
        Condition that must refuse every changed release, or metric that must become worse.
    """

    name: str
    family: str
    undone_by: str
    change: Callable[[Any, Random], Any]
    form: Form = "typed"
    draws: bool = False
    seen_by: str = ""


class Later(NamedTuple):
    """A transformation that is not applied yet, and what is missing."""

    name: str
    undone_by: str
    missing: str


# Order, names and the way through the machine.


def _of_synthetic(change: Callable[[pd.DataFrame, Random], pd.DataFrame]) -> Callable[[Synthetic, Random], Synthetic]:
    return lambda release, random: replace(release, synthetic=change(release.synthetic, random))


def _shuffled_rows(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    return table.iloc[random.permutation(len(table))].reset_index(drop=True)


def _shuffled_columns(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    return table[list(random.permutation(list(table)))]


def _shuffled_rows_of_all(release: Synthetic, random: Random) -> Synthetic:
    return release.of_all(lambda table: _shuffled_rows(table, random))


def _shuffled_columns_of_all(release: Synthetic, random: Random) -> Synthetic:
    order = list(random.permutation(list(release.original)))
    return release.of_all(lambda table: table[[name for name in order if name in table]])


def _renamed_columns(release: Synthetic, random: Random) -> Synthetic:
    names = {name: f"column {number}" for number, name in enumerate(random.permutation(release.columns))}
    return release.of_all(lambda table: table.rename(columns=names))


def _other_index(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    labels = pd.Index([f"row {number}" for number in random.permutation(len(table))], name="row")
    return table.set_index(labels).rename_axis(columns="column")


def _categories(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    """Return texts as categories, in another order and with an unused one."""
    made = {}
    for name in _texts(table):
        values = table[name].dropna().unique()
        made[name] = pd.Categorical(table[name], [*random.permutation(values), "used by nobody"])
    return table.assign(**made)


def _texts(table: pd.DataFrame) -> list[str]:
    return [name for name in table if _is_text(table[name])]


def _is_text(column: pd.Series) -> bool:
    if isinstance(column.dtype, pd.CategoricalDtype):
        return types.is_string_dtype(column.cat.categories)
    return types.infer_dtype(column, skipna=True) == "string"


def _numbers(table: pd.DataFrame, fewest: int = 3) -> list[str]:
    return [
        name
        for name in table
        if types.is_numeric_dtype(table[name])
        and not types.is_bool_dtype(table[name])
        and table[name].nunique() >= fewest
    ]


def _dates(table: pd.DataFrame) -> list[str]:
    return [name for name in table if types.is_datetime64_any_dtype(table[name])]


def _with_options(**options: Any) -> Callable[[Synthetic, Random], Synthetic]:
    return lambda release, random: replace(release, options={**release.options, **options})  # noqa: ARG005


def _through_files(write: Callable[[pd.DataFrame, Path], Path]) -> Callable[[Synthetic, Random], Synthetic]:
    """Write all tables and read them back as a source does."""

    def through(table: pd.DataFrame) -> pd.DataFrame:
        with tempfile.TemporaryDirectory() as directory:
            return _with_order(TableFile(str(write(table, Path(directory))), format="parquet").read(None), table)

    return lambda release, random: release.of_all(through)  # noqa: ARG005


def _with_order(read: pd.DataFrame, table: pd.DataFrame) -> pd.DataFrame:
    """Order categories again, as a contract does; files do not keep it."""
    return read.astype({name: own.dtype for name, own in table.items() if getattr(own.dtype, "ordered", False)})


def _in_groups(table: pd.DataFrame, directory: Path) -> Path:
    path = directory / "table.parquet"
    parquet.write_table(pa.Table.from_pandas(table), path, row_group_size=ROWS_OF_A_GROUP)
    return path


def _in_parts(table: pd.DataFrame, directory: Path) -> Path:
    whole = pa.Table.from_pandas(table, preserve_index=False)
    for number, begin in enumerate(range(0, len(table), ROWS_OF_A_GROUP)):
        parquet.write_table(whole.slice(begin, ROWS_OF_A_GROUP), directory / f"part-{number:05d}.parquet")
    return directory


def _in_reversed_dictionaries(table: pd.DataFrame, directory: Path) -> Path:
    whole = pa.Table.from_pandas(table, preserve_index=False)
    for place, own in enumerate(whole.schema):
        if pa.types.is_string(own.type) or pa.types.is_large_string(own.type):
            values = whole.column(place).combine_chunks()
            words = pa.array(sorted(set(values.drop_null().to_pylist()), reverse=True), own.type)
            coded = pa.DictionaryArray.from_arrays(pa.compute.index_in(values, words), words)
            whole = whole.set_column(place, own.name, coded)
    path = directory / "table.parquet"
    parquet.write_table(whole, path)
    return path


def _through_csv(release: Synthetic, random: Random) -> Synthetic:  # noqa: ARG001
    """Write all tables as CSV; the contract gives the values their types again."""

    def through(table: pd.DataFrame) -> pd.DataFrame:
        columns = {
            name: {"type": contract_type(release.original[name]), "role": "other", "nullable": True} for name in table
        }
        contract = TableContract.from_mapping({"columns": columns})
        with tempfile.TemporaryDirectory() as directory:
            path = Path(directory) / "table.csv"
            table.to_csv(path, index=False)
            return _with_order(contract.admit_synthetic(TableFile(str(path)).read(None)), table)

    return release.of_all(through)


def contract_type(column: pd.Series) -> str:
    """Return the type of a column in a contract."""
    if types.is_bool_dtype(column):
        return "boolean"
    if types.is_datetime64_any_dtype(column):
        return "datetime"
    if types.is_integer_dtype(column):
        return "integer"
    return "float" if types.is_numeric_dtype(column) else "text"


# How many records are published.


def _more(times: int) -> Callable[[Synthetic, Random], Synthetic | None]:
    def more(release: Synthetic, random: Random) -> Synthetic | None:
        if release.more is None:
            return None
        drawn = release.more((times - 1) * len(release.synthetic))
        return replace(release, synthetic=_shuffled_rows(pd.concat([release.synthetic, drawn]), random))

    return more


def _diluted(times: int) -> Callable[[Synthetic, Random], Synthetic]:
    def diluted(release: Synthetic, random: Random) -> Synthetic:
        more = release.fresh(times * len(release.synthetic)).astype(release.synthetic.dtypes.to_dict())
        return replace(release, synthetic=_shuffled_rows(pd.concat([release.synthetic, more]), random))

    return diluted


def _each_twice(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    return _shuffled_rows(pd.concat([table, table]), random)


def _some_repeated(table: pd.DataFrame, random: Random) -> pd.DataFrame:
    return table.iloc[np.repeat(np.arange(len(table)), random.integers(1, 6, len(table)))].reset_index(drop=True)


# Columns cut and added.


def _cut_number(table: pd.DataFrame, name: str) -> dict[str, pd.Series]:
    return {f"{name}_tens": table[name] // TENS, f"{name}_ones": table[name] % TENS}


def _cut_date(table: pd.DataFrame, name: str) -> dict[str, pd.Series]:
    return {f"{name}_{part}": getattr(table[name].dt, part) for part in ("year", "month", "day")}


def _cut_text(table: pd.DataFrame, name: str) -> dict[str, pd.Series]:
    return {f"{name}_first": table[name].astype(object).str[:1], f"{name}_rest": table[name].astype(object).str[1:]}


def _cut(
    chosen: Callable[[pd.DataFrame], list[str]], cut: Callable[[pd.DataFrame, str], dict[str, pd.Series]]
) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Cut the column with the most values in two or three, which the contract declares to be parts of one."""

    def in_parts(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        names = [name for name in chosen(release.synthetic) if name in chosen(release.original)]
        if not names:
            return None
        name = max(names, key=lambda own: release.original[own].nunique())
        pieces = list(cut(release.original, name))

        def apart(table: pd.DataFrame) -> pd.DataFrame:
            return table.drop(columns=name).assign(**cut(table, name))

        return replace(release.of_all(apart), options={**release.options, "parts": {name: pieces}})

    return in_parts


def _whole_numbers(table: pd.DataFrame) -> list[str]:
    return [name for name in _numbers(table, 2 * TENS) if (table[name].dropna() % 1 == 0).all()]


def _with_noise(n_columns: int) -> Callable[[Synthetic, Random], Synthetic]:
    def with_noise(release: Synthetic, random: Random) -> Synthetic:
        def added(table: pd.DataFrame) -> pd.DataFrame:
            return table.assign(**{f"noise {j}": random.integers(0, 2 + j % 11, len(table)) for j in range(n_columns)})

        return release.of_all(added)

    return with_noise


# Values written otherwise.


def _digits(change: Callable[[Decimal, str], str]) -> Text:
    """Change texts that are decimal numbers."""

    def changed(text: str) -> str:
        is_number = text.replace(".", "", 1).removeprefix("-").isdecimal() and text.isascii() and text[-1:] != "."
        return change(Decimal(text), text) if is_number else text

    return changed


def _day(form: str) -> Text:
    """Change texts that are days in ISO form; %s of the form is the day."""

    def changed(text: str) -> str:
        is_day = len(text) == 10 and text[4] == text[7] == "-" and text.replace("-", "").isdecimal()
        return form.replace("%s", text) if is_day else text

    return changed


def _exponent(number: Decimal, text: str) -> str:
    digits = f"{number:e}" if number else "0e0"
    return digits if digits != text else text


def _full_width(text: str) -> str:
    return "".join(chr(ord(own) + 0xFEE0) if "!" <= own <= "~" else "\u3000" if own == " " else own for own in text)


def _after_first(mark: str) -> Text:
    return lambda text: text[:1] + mark + text[1:]


def _with_zeros(number: Decimal, text: str) -> str:
    return ("-" if number.is_signed() else "") + "00" + text.removeprefix("-")


def _without_zeros(number: Decimal, text: str) -> str:  # noqa: ARG001
    whole, dot, rest = text.partition(".")
    return (whole.lstrip("0") or "0") + dot + rest


SPELLINGS: dict[str, tuple[str, Text]] = {
    "a trailing blank": ("strip", lambda text: text + " "),
    "a leading blank": ("strip", lambda text: " " + text),
    "a tab and a line end": ("strip", lambda text: "\t" + text + "\r\n"),
    "doubled blanks": ("one blank for several", lambda text: text.replace(" ", "  ")),
    "no-break blanks": ("a blank for each", lambda text: text.replace(" ", "\u00a0") + "\u00a0"),
    "upper case": ("case folding", str.upper),
    "lower case": ("case folding", str.lower),
    "swapped case": ("case folding", str.swapcase),
    "NFD": ("NFC", lambda text: unicodedata.normalize("NFD", text)),
    "full width": ("NFKC", _full_width),
    "a zero-width blank": ("without format characters", _after_first("\u200b")),
    "a soft hyphen": ("without format characters", _after_first("\u00ad")),
    "a byte order mark": ("without format characters", lambda text: "\ufeff" + text),
    "a mark of direction": ("without format characters", lambda text: text + "\u200e"),
    "leading zeros lost": ("as a number", _digits(_without_zeros)),
    "leading zeros added": ("as a number", _digits(_with_zeros)),
    "point zero": ("as a number", _digits(lambda _, text: text if "." in text else text + ".0")),
    "more places": ("as a number", _digits(lambda _, text: text + ("00" if "." in text else ".000"))),
    "an exponent": ("as a number", _digits(_exponent)),
    "a plus sign": ("as a number", _digits(lambda number, text: text if number.is_signed() else "+" + text)),
    "a decimal comma": (
        "as a number",
        _digits(lambda _, text: text.replace(".", ",") if "." in text else text + ",00"),
    ),
    "quotes": ("without quotes", lambda text: f'"{text}"'),
    "an apostrophe in front": ("without it", lambda text: "'" + text),
    "curly apostrophes": ("straight ones", lambda text: text.replace("'", "\u2019")),
    "straight apostrophes": ("curly ones", lambda text: text.replace("\u2019", "'")),
    "dashes": ("hyphens", lambda text: text.replace("-", "\u2013")),
    "signs of subtraction": ("hyphens", lambda text: text.replace("-", "\u2212")),
    "days with a time": ("as a day", _day("%sT00:00:00")),
    "days with a zone": ("as a day", _day("%sT00:00:00Z")),
    "days with fractions of a second": ("as a day", _day("%s 00:00:00.000")),
}
"""What undoes each spelling, and the spelling."""
MISSING_WORDS = ("", "NA", "n/a", "#N/A", "nan", "NaN", "null", "None", "<NA>", "NaT")
OTHER_NOTATIONS: dict[str, tuple[str, Text]] = {
    "a prefix": ("without it", lambda text: "x/" + text),
    "days first": ("as a day", lambda text: ".".join(reversed(text.split("-"))) if _day("")(text) != text else text),
    "letters in reverse": ("reversal", lambda text: text[::-1]),
    "underscores": ("blanks", lambda text: text.replace(" ", "_").replace("-", "_")),
    "a final dot": ("without it", lambda text: text + "."),
    "parentheses": ("without them", lambda text: f"({text})"),
    "no blanks": ("a blank between words", lambda text: text.replace(" ", "")),
    "thousands separated": ("read", lambda text: f"{int(text):,}" if text.isdecimal() else text),
    "codes of HTML": ("unescape", lambda text: "".join(f"&#{ord(letter)};" for letter in text)),
}


def _spelled(change: Callable[[str, Random], str]) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Change how texts of the synthetic records are written; return None if all are written like this already."""

    def spelled(release: Synthetic, random: Random) -> Synthetic | None:
        def written(value: Any) -> Any:
            return change(value, random) if isinstance(value, str) else value

        table = release.synthetic.map(written)
        return None if table.equals(release.synthetic) else replace(release, synthetic=table)

    return spelled


def _noted(text: Text) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Write texts in another notation where it changes more than a few of the cells of some column."""

    def noted(release: Synthetic, random: Random) -> Synthetic | None:
        changed = _always(text)(release, random)
        differs = release.synthetic != (release if changed is None else changed).synthetic
        is_changed = (differs & release.synthetic.notna()).mean() > FEW_CELLS
        if changed is None or not is_changed.any():
            return None
        own = is_changed.index[is_changed]
        return replace(release, synthetic=release.synthetic.assign(**{name: changed.synthetic[name] for name in own}))

    return noted


def _are_copies(release: Synthetic) -> np.ndarray:
    """Return which records are copies of originals; none if they are so few that a change of them may be chance."""
    people = set(release.original[release.columns].astype(str).itertuples(index=False, name=None))
    rows = release.synthetic.astype(str).itertuples(index=False, name=None)
    is_copy = np.array([row in people for row in rows])
    return is_copy & (is_copy.sum() > max(FEW_COPIES, FEW_CELLS / 2 * len(is_copy)))


def _copies_alone(text: Text) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Write only the records that are copies in another notation, if they are more than a few."""

    def noted(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        is_copy = _are_copies(release)
        if not is_copy.any():
            return None
        table = release.synthetic.copy()
        written = table[is_copy].map(lambda value: text(value) if isinstance(value, str) else value)
        table[is_copy] = written
        return replace(release, synthetic=table)

    return noted


def _fewer_digits(shorten: Callable[[pd.Series], pd.Series]) -> Callable[[Synthetic, Random], Synthetic | None]:
    def shortened(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        made = {name: shorten(column) for name, column in release.synthetic.items() if column.dtype.kind == "f"}
        table = release.synthetic.assign(**made)
        return None if table.equals(release.synthetic) else replace(release, synthetic=table)

    return shortened


def _always(text: Text) -> Callable[[Synthetic, Random], Synthetic | None]:
    return _spelled(lambda value, random: text(value))  # noqa: ARG005


def _each_otherwise(value: str, random: Random) -> str:
    _, text = list(SPELLINGS.values())[random.integers(len(SPELLINGS))]
    return text(value)


def _all_at_once(value: str) -> str:
    for name in (
        "an exponent",
        "days with a time",
        "dashes",
        "curly apostrophes",
        "NFD",
        "upper case",
        "a soft hyphen",
    ):
        value = SPELLINGS[name][1](value)
    return " \ufeff" + _full_width(value) + "\u00a0 "


def _missing_written(release: Synthetic, random: Random) -> Synthetic | None:
    """Write missing values as a word, another one each time."""
    table = release.synthetic
    if not table.isna().to_numpy().any():
        return None
    words = pd.DataFrame(random.choice(MISSING_WORDS, table.shape), table.index, table.columns).astype(object)
    return replace(release, synthetic=table.where(table.notna(), words))


# Kinds that differ.


def _of_another_kind(
    chosen: Callable[[pd.DataFrame], list[str]], change: Callable[[Any], Any]
) -> Callable[[Synthetic, Random], Synthetic | None]:
    def changed(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        table = release.synthetic
        names = [name for name in chosen(table) if name in chosen(release.original)]
        made = {
            name: pd.Series([None if pd.isna(value) else change(value) for value in table[name]], table.index, object)
            for name in names
        }
        return replace(release, synthetic=table.assign(**made)) if names else None

    return changed


def _booleans(table: pd.DataFrame) -> list[str]:
    return [name for name in table if types.infer_dtype(table[name], skipna=True) == "boolean"]


# One-to-one changes of the synthetic values.


def _tells(real: pd.Series, changed: pd.Series) -> bool:
    """Whether the frequencies of changed values differ from those of real ones by so much that they can be undone."""
    if types.is_numeric_dtype(real):
        cuts = np.unique(real.quantile(np.arange(1, TENS) / TENS))
        real, changed = (pd.Series(np.searchsorted(cuts, column.dropna())) for column in (real, changed))
    shares = (column.value_counts(normalize=True) for column in (real, changed))
    return pd.concat(list(shares), axis=1).fillna(0).diff(axis=1).abs().sum().iloc[-1] / 2 > TELLS


def _relabeled(among_their_own: bool) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Give each text another name: a new one, or the next one in alphabetical order."""

    def relabeled(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        table, made = release.synthetic, {}
        names = [name for name in _texts(table) if len(release.original[name].dropna().unique()) > 1]
        for name in names:
            known = sorted({*release.original[name].dropna(), *table[name].dropna()})
            new = [*known[1:], known[0]] if among_their_own else [f"label {number}" for number in range(len(known))]
            other = table[name].astype(object).map(dict(zip(known, new, strict=True)))
            if _tells(release.original[name].astype(object), other):
                made[name] = other
        return replace(release, synthetic=table.assign(**made)) if made else None

    return relabeled


def _reflected(table: pd.DataFrame, name: str) -> pd.Series:
    return table[name].min() + table[name].max() - table[name]


def _logged(table: pd.DataFrame, name: str) -> pd.Series:
    return np.log1p((table[name] - table[name].min()).astype(float))


def _renumbered(
    change: Callable[[pd.DataFrame, str], pd.Series], *, most: int | None = None
) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Change the numbers of the synthetic records where frequencies tell, or of the column with the most values."""

    def renumbered(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        table = release.synthetic
        made = {
            name: other
            for name in sorted(_numbers(table), key=lambda name: -table[name].nunique())
            if _tells(release.original[name], other := change(table, name))
        }
        made = {name: made[name] for name in [*made][:most]}
        return replace(release, synthetic=table.assign(**made)) if made else None

    return renumbered


def _rotated_and_reflected(release: Synthetic, random: Random) -> Synthetic | None:
    rotated = _relabeled(among_their_own=True)(release, random) or release
    changed = _renumbered(_reflected)(rotated, random) or rotated
    return None if changed is release else changed


# Records dropped, moved, and taken apart.


def _filtered(quantile: float) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Draw more records, and drop those that are close to an original."""

    def filtered(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        n = len(release.synthetic)
        if len(release.original) < FEWEST_WITH_GAPS:
            return None
        drawn = (release.more or release.fresh)(3 * n).astype(release.synthetic.dtypes.to_dict())
        records = pd.concat([release.synthetic, drawn], ignore_index=True)
        kept = records[are_far(release.original[release.columns], records, quantile)][:n].reset_index(drop=True)
        return replace(release, synthetic=kept) if len(kept) >= n / 2 else None

    return filtered


def _moved(
    chosen: Callable[[pd.DataFrame], list[str]], rows: Callable[[Synthetic], np.ndarray]
) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Add a constant to numbers of some records."""

    def moved(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        names, table, is_moved = chosen(release.original[release.columns]), release.synthetic, rows(release)
        made = {name: table[name] + is_moved * step_of(release.original[name]) for name in names}
        return replace(release, synthetic=table.assign(**made)) if names and is_moved.any() else None

    return moved


def _all_records(release: Synthetic) -> np.ndarray:
    return np.ones(len(release.synthetic), bool)


def _column_shuffled(chosen: Callable[[pd.DataFrame], list[str]]) -> Callable[[Synthetic, Random], Synthetic | None]:
    def shuffled(release: Synthetic, random: Random) -> Synthetic | None:
        table, names = release.synthetic, chosen(release.original[release.columns])
        order = random.permutation(len(table))
        made = {name: table[name].take(order).to_numpy() for name in names[:1]}
        return replace(release, synthetic=table.assign(**made)) if names else None

    return shuffled


# Units of all tables.


def _units(
    chosen: Callable[[pd.DataFrame], list[str]], change: Callable[[pd.Series, pd.Series], pd.Series]
) -> Callable[[Synthetic, Random], Synthetic | None]:
    """Change a column of all tables alike; the change gets all of its values as well."""

    def of_all(release: Synthetic, random: Random) -> Synthetic | None:  # noqa: ARG001
        names = [name for name in chosen(release.synthetic) if name in chosen(release.original)]
        tables = (release.original, release.synthetic, release.control)
        whole = {name: pd.concat([table[name] for table in tables], ignore_index=True) for name in names}
        if not names:
            return None
        return release.of_all(lambda table: table.assign(**{name: change(table[name], whole[name]) for name in names}))

    return of_all


def _times_ten(values: pd.Series, whole: pd.Series) -> pd.Series:  # noqa: ARG001
    return values * TENS


def _log(values: pd.Series, whole: pd.Series) -> pd.Series:
    return np.log1p(values - whole.min())


def _ranked(values: pd.Series, whole: pd.Series) -> pd.Series:
    ranks = {value: rank for rank, value in enumerate(np.sort(whole.dropna().unique()))}
    return values.map(ranks).astype(float)


def _later(values: pd.Series, whole: pd.Series) -> pd.Series:  # noqa: ARG001
    return values + pd.Timedelta(days=1_000)


def _permuted(values: pd.Series, whole: pd.Series) -> pd.Series:
    known = sorted(whole.dropna().unique())
    return values.astype(object).map(dict(zip(known, np.roll(known, len(known) // 2), strict=True)))


# Anonymized releases.


def _of_released(change: Callable[[pd.DataFrame, Random], pd.DataFrame]) -> Callable[[Anonymized, Random], Anonymized]:
    def changed(release: Anonymized, random: Random) -> Anonymized:
        return replace(release, made=replace(release.made, table=change(release.made.table, random)))

    return changed


def _released_rows_shuffled(release: Anonymized, random: Random) -> Anonymized:
    order = random.permutation(len(release.made.table))
    table, members = (frame.iloc[order].reset_index(drop=True) for frame in (release.made.table, release.made.members))
    return replace(release, made=replace(release.made, table=table, members=members))


def _made_again(
    change: Callable[[pd.DataFrame, Random], pd.DataFrame] | None = None, **options: Any
) -> Callable[[Anonymized, Random], Anonymized]:
    def again(release: Anonymized, random: Random) -> Anonymized:
        admitted = release.admitted if change is None else change(release.admitted, random)
        return replace(release, admitted=admitted, made=release.again(admitted, **options))

    return again


def _in_batches(release: Anonymized, random: Random) -> Anonymized:  # noqa: ARG001
    with tempfile.TemporaryDirectory() as directory:
        parts = Path(directory) / "source"
        parts.mkdir()
        made = anonymize_dataset(
            _in_parts(release.admitted, parts),
            Path(directory) / "released",
            release.contract,
            k=release.made.settings["k"],
            rows_per_part=ROWS_OF_A_GROUP,
            n_threads=1,
        )
        table = open_parquet_dataset(made.directory).read()
    return replace(release, made=replace(release.made, table=table))


def _sensitive_texts(release: Anonymized) -> list[str]:
    return [name for name in release.made.settings["sensitive"] if _is_text(release.made.table[name])]


def _sensitive(change: Callable[[str, Random], Any]) -> Callable[[Anonymized, Random], Anonymized | None]:
    """Change sensitive texts, in the release and in its source."""

    def changed(release: Anonymized, random: Random) -> Anonymized | None:
        names = _sensitive_texts(release)
        if not names:
            return None
        rows = release.made.members["row"].to_numpy()
        admitted = release.admitted.assign(
            **{
                name: pd.Series(
                    [change(value, random) if isinstance(value, str) else None for value in release.admitted[name]],
                    release.admitted.index,
                    object,
                )
                for name in names
            }
        )
        shown = {name: admitted[name].take(rows).to_numpy() for name in names}
        return replace(release, admitted=admitted, made=replace(release.made, table=release.made.table.assign(**shown)))

    return changed


def _half(text: Text) -> Callable[[str, Random], str]:
    return lambda value, random: text(value) if random.random() < 0.5 else value


def _labels_spelled(release: Anonymized, random: Random) -> Anonymized | None:
    names = [name for name in release.made.settings["quasi_identifiers"] if _is_text(release.made.table[name])]
    table = release.made.table
    spelled = _half(lambda value: value + " ")
    made = {name: table[name].map(lambda value: spelled(value, random), na_action="ignore") for name in names}
    return replace(release, made=replace(release.made, table=table.assign(**made))) if names else None


def _source_times_ten(table: pd.DataFrame, random: Random) -> pd.DataFrame:  # noqa: ARG001
    return table.assign(**{name: TENS * table[name] for name in _numbers(table)})


# Rows of a person.

NUMBERS_OF_A_HALF = 20
TIMES_REPEATED = 3
REASON = "Needed to follow people; the data steward"


def _visits_of(who: np.ndarray) -> np.ndarray:
    """Return the number of each row among those of its person."""
    return pd.Series(who).groupby(who).cumcount().to_numpy()


def _key(who: np.ndarray, random: Random) -> dict[str, Any]:
    return {"key": random.permutation(TENS * (int(who.max()) + 1))[who]}


def _key_in_two_columns(who: np.ndarray, random: Random) -> dict[str, Any]:
    number = random.permutation(int(who.max()) + 1)[who]
    return {"half": number // NUMBERS_OF_A_HALF, "other half": number % NUMBERS_OF_A_HALF}


def _key_in_numbers_of_visits(who: np.ndarray, random: Random) -> dict[str, Any]:
    number = 10_000 + random.permutation(int(who.max()) + 1)[who]
    return {"visit": [f"P{own}-{visit}" for own, visit in zip(number, _visits_of(who), strict=True)]}


def _serial_number(who: np.ndarray, random: Random) -> dict[str, Any]:
    number = random.permutation(int(who.max()) + 1)[who]
    return {"number": np.argsort(np.lexsort([_visits_of(who), number]))}


def _number_of_the_visit_before(who: np.ndarray, random: Random) -> dict[str, Any]:
    number = pd.Series(random.permutation(TENS * len(who))[: len(who)])
    return {"visit": number.to_numpy(), "visit before": number.groupby(who).shift().astype("Int64").to_numpy()}


def _linked_by(
    added: Callable[[np.ndarray, Random], dict[str, Any]], **declared: str
) -> Callable[[Anonymized, Random], Anonymized | None]:
    """Add columns to the release that show which rows are of one person."""

    def linked(release: Anonymized, random: Random) -> Anonymized | None:
        person = release.contract.person
        if person is None:
            return None
        made = pd.DataFrame(added(release.admitted[person].to_numpy(), random), release.source.table.index)
        own = {
            name: {"type": contract_type(made[name]), "role": "other", "nullable": True, **declared} for name in made
        }
        shown = {name: made[name].array.take(release.made.members["row"].to_numpy()) for name in made}
        return replace(
            release,
            made=replace(release.made, table=release.made.table.assign(**shown)),
            source=Source(release.source.table.assign(**made), {**release.source.columns, **own}),
        )

    return linked


def _declared_otherwise(change: Callable[[Source, str], Source]) -> Callable[[Any, Random], Any]:
    """Change whose the rows are, in the source and in the contract."""

    def declared(release: Synthetic | Anonymized, random: Random) -> Any:  # noqa: ARG001
        person = release.source.contract.person
        return None if person is None else replace(release, source=change(release.source, person))

    return declared


def _person_dropped(source: Source, person: str) -> Source:
    return replace(source, columns={**source.columns, person: {**source.columns[person], "person": False}})


def _other_people(number: Callable[[np.ndarray, np.ndarray], Any], *, beside: bool) -> Callable[[Any, Random], Any]:
    """Number people by their own number and that of a visit, in a column of its own or instead of the person column."""

    def otherwise(source: Source, person: str) -> Source:
        who = source.table[person].to_numpy()
        numbers = pd.Series(number(who, _visits_of(who)), source.table.index)
        own = {"type": contract_type(numbers), "role": "direct_identifier", "person": True}
        if not beside:
            return Source(source.table.assign(**{person: numbers}), {**source.columns, person: own})
        dropped = _person_dropped(source, person)
        return Source(source.table.assign(**{"its own": numbers}), {**dropped.columns, "its own": own})

    return _declared_otherwise(otherwise)


def _each_row_repeated(release: Any, random: Random) -> Any:
    """Repeat the rows of a source without a person, so that each person is counted several times."""
    if release.source.contract.person is not None:
        return None
    places = random.permutation(np.repeat(np.arange(len(release.source.table)), TIMES_REPEATED))
    return replace(release, source=replace(release.source, table=release.source.table.take(places)))


def _in_texts(who: np.ndarray, visit: np.ndarray) -> list[str]:
    return [f"P{10_000 + own}-{number}" for own, number in zip(who, visit, strict=True)]


ORDER, OWNER, PARTS = "order and machine", "order of all tables", "parts of a column"
MORE, DILUTION, REPEATS = "more records", "dilution", "repeated rows"
NOISE, UNITS = "random columns", "units of all tables"
SPELLING, NOTATION, DIGITS = "spelling", "another notation", "fewer digits"
KINDS, ONE_TO_ONE = "kinds", "one-to-one changes"
FILTER, SHIFT, SHUFFLE = "filter by distance", "shift", "one column shuffled"

TRANSFORMATIONS: Sequence[Transformation] = (
    Transformation("rows shuffled", ORDER, "sort", _of_synthetic(_shuffled_rows)),
    Transformation("rows of all tables shuffled", OWNER, "sort", _shuffled_rows_of_all),
    Transformation("columns shuffled", ORDER, "by name", _of_synthetic(_shuffled_columns)),
    Transformation("columns of all tables shuffled", OWNER, "by name", _shuffled_columns_of_all),
    Transformation("columns renamed", ORDER, "rename", _renamed_columns),
    Transformation("another index", ORDER, "reset_index", _of_synthetic(_other_index)),
    Transformation("texts as categories", ORDER, "astype", _of_synthetic(_categories)),
    Transformation("row groups", ORDER, "read", _through_files(_in_groups)),
    Transformation("a directory of parts", ORDER, "read", _through_files(_in_parts)),
    Transformation("reversed dictionaries of Parquet", ORDER, "read", _through_files(_in_reversed_dictionaries)),
    Transformation("CSV and a contract", ORDER, "read", _through_csv),
    Transformation("two threads", ORDER, "nothing", _with_options(n_threads=2)),
    Transformation("an engine with tasks", ORDER, "nothing", _with_options(engine=LocalEngine(rows_per_task=200))),
    Transformation("twice as many records", MORE, "sample", _more(2), draws=True),
    Transformation("eight times as many records", MORE, "sample", _more(8), draws=True),
    Transformation("as many fresh people", DILUTION, "sample, partly", _diluted(1)),
    Transformation("four times as many fresh people", DILUTION, "sample, partly", _diluted(4)),
    Transformation("each record twice", REPEATS, "drop_duplicates", _of_synthetic(_each_twice)),
    Transformation("some records repeated", REPEATS, "drop_duplicates", _of_synthetic(_some_repeated)),
    Transformation("tens and ones", PARTS, "addition", _cut(_whole_numbers, _cut_number)),
    Transformation("year, month and day", PARTS, "paste", _cut(_dates, _cut_date)),
    Transformation("first letter and rest", PARTS, "paste", _cut(_texts, _cut_text)),
    Transformation("one random column", NOISE, "drop", _with_noise(1), draws=True),
    Transformation("14 random columns", NOISE, "drop", _with_noise(14), draws=True),
    *(Transformation(name, SPELLING, undone, _always(text), "text") for name, (undone, text) in SPELLINGS.items()),
    Transformation(
        "half of the cells with a blank", SPELLING, "strip", _spelled(_half(SPELLINGS["a trailing blank"][1])), "text"
    ),
    Transformation("each cell written otherwise", SPELLING, "all of these", _spelled(_each_otherwise), "text"),
    Transformation("several spellings at once", SPELLING, "all of these", _always(_all_at_once), "text"),
    Transformation("missing values as words", SPELLING, "read", _missing_written, "text"),
    *(Transformation(name, NOTATION, undone, _noted(text), "text") for name, (undone, text) in OTHER_NOTATIONS.items()),
    Transformation(
        "copies alone with a prefix", NOTATION, "without it", _copies_alone(lambda text: "x/" + text), "text"
    ),
    Transformation(
        "single precision", DIGITS, "rounding", _fewer_digits(lambda column: column.astype("float32").astype(float))
    ),
    Transformation("text as bytes", KINDS, "decode", _of_another_kind(_texts, str.encode)),
    Transformation("numbers as text", KINDS, "as a number", _of_another_kind(_numbers, str)),
    Transformation("numbers as Decimal", KINDS, "float", _of_another_kind(_numbers, lambda value: Decimal(str(value)))),
    Transformation("whole numbers as floats", KINDS, "as integers", _of_another_kind(_whole_numbers, float)),
    Transformation("whole numbers as complex", KINDS, "real", _of_another_kind(_whole_numbers, complex)),
    Transformation("dates as text", KINDS, "as dates", _of_another_kind(_dates, str)),
    Transformation("dates as seconds", KINDS, "as dates", _of_another_kind(_dates, lambda value: value.timestamp())),
    Transformation("booleans as 0 and 1", KINDS, "as booleans", _of_another_kind(_booleans, int)),
    Transformation("booleans as text", KINDS, "as booleans", _of_another_kind(_booleans, str)),
    Transformation("labels renamed", ONE_TO_ONE, "frequencies", _relabeled(among_their_own=False)),
    Transformation("labels rotated", ONE_TO_ONE, "frequencies", _relabeled(among_their_own=True)),
    Transformation("numbers reflected", ONE_TO_ONE, "order", _renumbered(_reflected)),
    Transformation("one number reflected", ONE_TO_ONE, "order", _renumbered(_reflected, most=1)),
    Transformation("logarithms", ONE_TO_ONE, "order", _renumbered(_logged)),
    Transformation("labels rotated, numbers reflected", ONE_TO_ONE, "order and frequencies", _rotated_and_reflected),
    Transformation("records near originals dropped, to the quartile", FILTER, "absence", _filtered(0.25)),
    Transformation("records near originals dropped, to the median", FILTER, "absence", _filtered(0.5)),
    Transformation("a constant added to all numbers", SHIFT, "the frequent difference", _moved(_numbers, _all_records)),
    Transformation("a constant added to copies", SHIFT, "the frequent difference", _moved(_numbers, _are_copies)),
    Transformation(
        "a constant added to one number of copies", SHIFT, "the frequent difference", _moved(most_unique, _are_copies)
    ),
    Transformation("the finest number shuffled", SHUFFLE, "all other columns", _column_shuffled(most_unique)),
    Transformation("a text shuffled", SHUFFLE, "all other columns", _column_shuffled(_texts)),
    Transformation("numbers times 10", UNITS, "division", _units(_numbers, _times_ten)),
    Transformation("logarithms everywhere", UNITS, "exponential", _units(_numbers, _log)),
    Transformation("ranks", UNITS, "the scale", _units(_numbers, _ranked)),
    Transformation("later dates", UNITS, "subtraction", _units(_dates, _later)),
    Transformation("labels permuted everywhere", UNITS, "the key", _units(_texts, _permuted)),
    Transformation("rows shuffled", ORDER, "sort", _released_rows_shuffled, "anonymized"),
    Transformation("columns shuffled", ORDER, "by name", _of_released(_shuffled_columns), "anonymized"),
    Transformation("another index", ORDER, "reset_index", _of_released(_other_index), "anonymized"),
    Transformation("texts as categories", ORDER, "astype", _of_released(_categories), "anonymized"),
    Transformation("made from shuffled rows", ORDER, "sort", _made_again(_shuffled_rows), "anonymized"),
    Transformation("made from shuffled columns", ORDER, "by name", _made_again(_shuffled_columns), "anonymized"),
    Transformation("two threads", ORDER, "nothing", _made_again(n_threads=2), "anonymized"),
    Transformation(
        "an engine with tasks", ORDER, "nothing", _made_again(engine=LocalEngine(rows_per_task=200)), "anonymized"
    ),
    Transformation("made in batches", ORDER, "read", _in_batches, "anonymized"),
    Transformation("numbers of the source times 10", UNITS, "division", _made_again(_source_times_ten), "anonymized"),
    Transformation("labels with a blank", NOTATION, "strip", _labels_spelled, "anonymized"),
    Transformation(
        "half of the sensitive cells with a blank",
        SPELLING,
        "strip",
        _sensitive(_half(SPELLINGS["a trailing blank"][1])),
        "anonymized",
    ),
    Transformation(
        "half of the sensitive cells in upper case",
        SPELLING,
        "case folding",
        _sensitive(_half(str.upper)),
        "anonymized",
    ),
    Transformation(
        "sensitive cells written otherwise", SPELLING, "all of these", _sensitive(_each_otherwise), "anonymized"
    ),
    Transformation(
        "sensitive labels as bytes", KINDS, "decode", _sensitive(lambda value, _: value.encode()), "anonymized"
    ),
    Transformation(
        "sensitive labels renamed",
        ONE_TO_ONE,
        "frequencies",
        _sensitive(lambda value, _: "label " + value),
        "anonymized",
    ),
    *(
        Transformation(f"{name} released", LINKED, "grouping", _linked_by(added), "anonymized", seen_by=LINKS_CHECK)
        for name, added in (
            ("a key of each person", _key),
            ("a key in two columns", _key_in_two_columns),
            ("numbers of visits that have the key in them", _key_in_numbers_of_visits),
            ("a serial number in the order of people", _serial_number),
            ("the number of each visit and of the one before", _number_of_the_visit_before),
        )
    ),
    Transformation(
        "a key of each person released for a reason",
        LINKED,
        "grouping",
        _linked_by(_key, links_rows=REASON),
        "anonymized",
        seen_by="max_reidentification_probability",
    ),
    *(
        Transformation(name, SEPARATE, "grouping", change, form, seen_by=UNIT_CHECK)
        for form in ("typed", "anonymized")
        for name, change in (
            ("the person no longer declared", _declared_otherwise(_person_dropped)),
            ("each row as a person", _other_people(lambda _, visit: np.arange(len(visit)), beside=True)),
            ("every two rows as a person", _other_people(lambda who, visit: 1_000 * who + visit // 2, beside=True)),
            ("each row as a person whose number has that of the person", _other_people(_in_texts, beside=False)),
            ("each row three times, without a person", _each_row_repeated),
        )
    ),
)

LATER: Sequence[Later] = (
    Later("fresh people around copies that no test finds", "sample, partly", "a limit on originals_singled_out"),
    Later("another notation of so few cells that it may be chance", "normalize", "a guard for smaller shares"),
    Later("numbers with fewer digits", "rounding", "a precision that does not depend on the unit"),
    Later("the case of each cell, where people have both spellings", "case, partly", "a reading of any spelling"),
    Later("columns of one scale that change places", "order", "a test of changed copies"),
    Later("numbers times 0.97", "the largest one", "a test of scaled copies"),
    Later("one-to-one changes that leave the frequencies of their columns", "a guess", "a test of changed copies"),
    Later("records near fewer than 300 originals dropped", "absence itself", "more power against gaps"),
    Later("values pushed by a filter until the test passes", "absence itself", "a count of what was tried"),
    Later("several releases of the same originals", "union", "the test on everything published of these originals"),
    Later("a table cut into partitions", "union", "a judgment together with what was published before"),
    Later("some rows of an anonymized table repeated", "drop_duplicates", "how they differ from people who are alike"),
    Later("visits as people, with random numbers and no other column of a person", "other data", "nothing shows it"),
    Later("visits as people, whose numbers have that of the person", "grouping", "how visits differ from a household"),
    Later("the attacker's columns named, or not", "nothing", "a test that naming never makes weaker"),
    Later(
        "14 random columns, and the figures of disclosure", "drop", "a decision without columns that depend on no other"
    ),
)
