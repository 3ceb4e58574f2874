"""There is one writer of YAML, and what it writes is read back as the same values."""

import datetime as dt
import math
import re

import numpy as np
import pandas as pd
import pytest
import yaml
from dagster_shared.yaml_utils import safe_load_yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from privacy_assets import InvalidSettingError, draft_contract
from privacy_assets.drafting.yaml_text import entry_in_yaml, in_yaml
from privacy_assets.orchestration.component.drafted import fields_in_yaml, release_in_yaml
from tests.examples import examples
from tests.shared_data import REPOSITORY

TEXTS = [
    *("", " ", "a b", "a ", " a", "a  b", "a: b", "a #b", "- a", "? a", "a:", "[x]", "{x", "#5", "&a", "*a", "!a", "|"),
    *("no", "No", "on", "OFF", "y", "N", "yes", "true", "null", "Null", "~", "=", "<<", "nan", "NaN", ".nan", "inf"),
    *("1", "1.5", "1e5", "1e-07", "0x10", "0o17", "017", "1_000", "12:30:00", "1:30", "+1", "-.inf", ">"),
    *("2026-01-01", "2026-01-01 10:00:00", "it's", 'say "no"', "c:\\d", "two\nlines", "tab\t", "\r\n", "\x00", "\x7f"),
    *("\x85", "\u2028", "\ufeff", "\ud800", "\u00e9", "\u65e5\u672c", "\U0001f642", "k" * 5000, "--- a", "...", "%TAG"),
    *("@a", "`a", "{{ x }}", "a/b.c", "privacy_assets.Thing"),
]
NUMBERS = [0, -3, 10**30, True, False, None, 0.0, -0.0, 0.1, 1e-07, -1e-06, 2.5e-9, 1e16, 1e300, 5e-324, math.inf]


def equal(read, value):
    """Whether values and their types are equal; NaN is NaN."""
    if isinstance(value, dict):
        return isinstance(read, dict) and all(map(equal, read, value)) and equal([*read.values()], [*value.values()])
    if isinstance(value, list | tuple):
        return isinstance(read, list) and len(read) == len(value) and all(map(equal, read, value))
    if isinstance(value, float) and math.isnan(value):
        return isinstance(read, float) and math.isnan(read)
    return type(read) is type(value) and read == value


@pytest.mark.parametrize("read", [yaml.safe_load, safe_load_yaml], ids=["PyYAML", "Dagster"])
def test_each_value_is_read_back_alone_in_a_list_as_a_key_and_as_an_entry(read):
    for value in [*TEXTS, *NUMBERS, -math.inf, math.nan]:
        assert equal(read(in_yaml(value)), value), repr(value)[:40]
        assert equal(read(in_yaml([value, {"a": value}])), [value, {"a": value}])
        if not isinstance(value, float):
            nested = {value: {value: [value]}}
            assert equal(read(in_yaml(nested)), nested), repr(value)[:40]
            assert equal(read(entry_in_yaml(value, value)), {value: value}), repr(value)[:40]
    assert equal(read(in_yaml({"a": [], "b": {}, "c": ()})), {"a": [], "b": {}, "c": ()})


SCALARS = st.text() | st.sampled_from(TEXTS) | st.integers() | st.booleans() | st.none() | st.floats()


@settings(max_examples=examples(300), deadline=None)
@given(
    st.recursive(SCALARS, lambda each: st.lists(each) | st.dictionaries(st.text() | st.integers(), each), max_leaves=8)
)
def test_what_is_written_is_what_yaml_reads(value):
    written = in_yaml(value)
    assert "\n" not in written
    assert equal(yaml.safe_load(written), value)
    assert equal(safe_load_yaml(written), value)


def test_numbers_of_numpy_are_numbers_and_other_objects_are_refused():
    assert in_yaml([np.float64(1e-7), np.int64(3), np.True_]) == "[1.0e-07, 3, true]"
    for other in (object(), dt.date(2026, 1, 1), b"a", {1, 2}):
        with pytest.raises(InvalidSettingError, match="cannot be written in YAML"):
            in_yaml({"a": other})


def test_what_people_read_is_plain_where_it_can_be():
    value = {"file": "data/people.csv", "text": "a b", "share": 0.5, "none": None, "no": "no", "x": ["a", True]}
    assert in_yaml(value) == '{file: data/people.csv, text: a b, share: 0.5, none: null, "no": "no", x: [a, true]}'
    assert in_yaml("two\nlines") == r'"two\nlines"'


@pytest.mark.parametrize("name", ["no", "a ", "k k ", "1e-07", "12:30:00", "two\nlines", "\u65e5\u672c #1", "k" * 5000])
def test_a_draft_with_such_names_and_categories_is_read_back(name):
    draft = draft_contract(pd.DataFrame({name: ["no", "on "] * 100, "age": range(20, 220)}))
    assert yaml.safe_load(draft.to_yaml()) == draft.mapping
    read = safe_load_yaml(release_in_yaml(fields_in_yaml({"file": f"{name[:9]}.csv"}, draft, {})))
    assert read["attributes"]["contract"] == draft.mapping
    assert read["attributes"]["source"] == {"file": f"{name[:9]}.csv"}


def test_no_other_module_writes_yaml():
    writers = re.compile(r"(?m)yaml\.(safe_)?dump|^def in_yaml\(")
    modules = (REPOSITORY / "privacy_assets").rglob("*.py")
    assert [path.name for path in modules if writers.search(path.read_text())] == ["yaml_text.py"]


def texts_like_numbers(value):
    """Yield texts that their author meant as numbers."""
    if isinstance(value, dict | list):
        for each in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts_like_numbers(each)
    elif isinstance(value, str) and re.fullmatch(r"[-+]?\d[\d_.]*e[-+]?\d+", value, re.IGNORECASE):
        yield value


def test_numbers_in_files_and_pages_are_read_as_numbers():
    pages = [*(REPOSITORY / "docs").rglob("*.md"), REPOSITORY / "README.md"]
    written = [block for page in pages for block in re.findall(r"(?ms)^ *```yaml\n(.*?)^ *```", page.read_text())]
    folders = [REPOSITORY / name for name in ("privacy_assets", "examples")]
    written += [path.read_text() for folder in folders for path in folder.rglob("*.yaml")]
    assert len(written) >= 10
    for text in written:
        assert [*texts_like_numbers([*yaml.safe_load_all(text)])] == []
    assert [*texts_like_numbers(yaml.safe_load("{delta: 1e-07, a: [1.0e-07]}"))] == ["1e-07"]
