"""What is no table is refused with what it is, where and what to do; no cell is shown. Large tables are drafted."""

import io
import logging
import re
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pandas as pd
import pytest

from privacy_assets import InvalidSettingError, InvalidTableError, PrivacyAssetsError, TableContract, draft_contract
from privacy_assets.drafting.blocks import BLOCK_BYTES
from privacy_assets.orchestration.settings.sources import TableFile
from tests.orchestration.sentinels import SENTINELS, TEXT, sentinel_people

GOOD = "age,plan\n31,free\n42,family\n"


def spreadsheet():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("xl/worksheets/sheet1.xml", f"<c>{TEXT}</c>")
    return file.getvalue()


def parquet(table):
    file = io.BytesIO()
    table.to_parquet(file)
    return file.getvalue()


LISTS = pd.DataFrame({"age": [31, 42], "tags": [[TEXT], []]})
BAD_FILES = {
    "empty": (b"", r"is empty \(0 bytes\)"),
    "blank": (b"\n \n", r"is empty \(3 bytes\)"),
    "header only": (b"age,plan\n", "has a header of 2 columns and no records"),
    "no header": (f"31,{TEXT}\n42,{TEXT}\n".encode(), "seems to have no header: of the 2 fields of its first line, 2"),
    "no header, addresses": (b"a@b.org,x,3\nc@d.org,y,4\n", "seems to have no header: of the 3 fields"),
    "ragged, too many": (
        f"{GOOD}57,free,{TEXT}\n".encode(),
        "header, 2: the first is record 4 with 3, and there are",
    ),
    "ragged, too few": (f"{GOOD}{TEXT}\n{GOOD}".encode(), r"header, 2: the first is record 4 with 1, and there are 1"),
    "an open quote": (
        (f'{GOOD}31,"{TEXT}\n' + GOOD * 300).encode(),
        "ends within a field: a quotation mark is opened",
    ),
    "UTF-16": (GOOD.encode("utf-16"), "is text in UTF-16. Expected UTF-8: convert it with `iconv -f UTF-16 -t UTF-8`"),
    "UTF-16 without a mark": (GOOD.encode("utf-16-le"), "is text in UTF-16"),
    "Latin 1": (f"{GOOD}57,für {TEXT}\n".encode("latin-1"), "that is not in UTF-8"),
    "Latin 1, far below": (
        ("age,plan\n" + "31,free\n" * 20_000 + "57,für\n").encode("latin-1"),
        "that is not in UTF-8",
    ),
    "names twice": (b"age,age\n31,42\n", "has 2 columns; of their names, 1 are repeated"),
    "a spreadsheet": (spreadsheet(), r"is a ZIP archive or a spreadsheet \(export the sheet as CSV\), not a table"),
    "a document": (b"%PDF-1.7\n" + TEXT.encode(), "is a PDF document, not a table"),
    "bytes": (TEXT.encode() + b"\x00\x01\x02", "is a binary file, not a table"),
    "JSON": (f'[{{"name": "{TEXT}"}}]'.encode(), "looks like JSON, not a table"),
    "HTML": (f"<table><td>{TEXT}</td></table>".encode(), "looks like HTML or XML, not a table"),
    "Parquet, cut off": (parquet(sentinel_people())[:500], "begins like a Parquet file, but is damaged or cut off"),
    "Parquet with lists": (
        parquet(LISTS),
        r"1 columns of .* have lists, records or bytes as values",
    ),
    "Parquet without rows": (parquet(LISTS[["age"]].head(0)), "has 1 columns and no records"),
}


@pytest.mark.parametrize("case", BAD_FILES)
def test_a_file_that_is_no_table_is_refused_with_what_it_is(case, tmp_path):
    content, said = BAD_FILES[case]
    path = tmp_path / "people.csv"
    path.write_bytes(content)
    with pytest.raises(InvalidTableError) as raised:
        draft_contract(path)
    message = str(raised.value)
    assert re.search(said, message), message
    assert str(path) in message
    assert raised.value.__context__ is None
    assert not [cell for cell in SENTINELS if cell in message.encode()]


UNREADABLE = set(BAD_FILES) - {
    # A table for the reader: what is wrong is found by the contract.
    *("header only", "no header", "no header, addresses", "ragged, too few", "names twice"),
    *("Parquet with lists", "Parquet without rows"),
}


@pytest.mark.parametrize("case", sorted(UNREADABLE))
def test_the_source_of_a_release_says_the_same(case, tmp_path):
    content, said = BAD_FILES[case]
    kind = "parquet" if case.startswith("Parquet") else "csv"
    path = tmp_path / f"people.{kind}"
    path.write_bytes(content)
    with pytest.raises(InvalidTableError) as raised:
        TableFile(str(path)).read(None)
    message = str(raised.value)
    assert re.search(said, message), message
    assert raised.value.__context__ is None
    assert not [cell for cell in SENTINELS if cell in message.encode()]


def test_a_table_in_another_format_than_its_source_says_is_named(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(parquet(LISTS[["age"]]))
    with pytest.raises(InvalidTableError, match="is a Parquet file, but text was expected"):
        TableFile(str(path)).read(None)
    path.write_text(GOOD)
    with pytest.raises(InvalidTableError, match="is text, but a Parquet file was expected"):
        TableFile(str(path), format="parquet").read(None)


def test_lists_and_mixed_types_in_a_text_file_are_named(tmp_path):
    path = tmp_path / "people.csv"
    lines = "".join(f'{age},"[{age}, {TEXT}]",0{age}\n{old},"[]",{age}\n' for age, old in ((31, "old"), (42, "young")))
    path.write_text("age,tags,code\n" + lines * 25)
    columns = {column.name: column.remarks for column in draft_contract(path).columns}
    assert columns == {
        "age": ("decide: 50.0% of its texts are numbers, 50 are not. Are these values of one kind?",),
        "tags": (
            "decide: its texts look like lists or records. A contract has columns of single values: turn the parts "
            "into columns or a separate table, or drop the column.",
        ),
        "code": (),
    }


def test_a_path_without_a_file_is_refused(tmp_path):
    for path, said in ((tmp_path, "is a directory"), (tmp_path / "none.csv", "does not exist")):
        with pytest.raises(InvalidTableError, match=said):
            draft_contract(path)


def test_frames_that_no_contract_describes_are_refused():
    cases = [
        (LISTS, r"'tags' has 2 values that are not single values: \['list'\]"),
        (LISTS[["age"]].head(0), "has 1 columns and no rows, so there is nothing to draft from"),
        (pd.DataFrame(), "has no columns"),
        (pd.DataFrame([[1, 2]]), "The table has 2 columns; of their names, 2 are not text"),
        ([1, 2], "got list"),
    ]
    for table, said in cases:
        with pytest.raises(PrivacyAssetsError, match=said):
            draft_contract(table)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_recognized(tmp_path, separator):
    path = tmp_path / "people.csv"
    text = "age,cost,town\n" + '31,"1,5",Bonn\n42,"2,5",Ulm\n' * 60
    path.write_text(text.replace('"1,5"', "1.5").replace('"2,5"', "2.5").replace(",", separator) if separator == ","
                    else text.replace('"', "").replace("1,5", "1§5").replace("2,5", "2§5").replace(",", separator)
                    .replace("§", ","))  # fmt: skip
    draft = draft_contract(path)
    assert draft.separator == separator
    columns = draft.mapping["columns"]
    assert [own["type"] for own in columns.values()] == ["integer", "float", "category"]
    assert columns["cost"].get("decimal") == (None if separator == "," else ",")


def test_a_byte_order_mark_and_breaks_within_fields_are_read(tmp_path):
    path = tmp_path / "people.csv"
    path.write_bytes(b"\xef\xbb\xbf" + b'age,note\n31,"two\nlines"\n' * 1 + b'42,"a ""word"""\n' * 100)
    draft = draft_contract(path)
    assert list(draft.mapping["columns"]) == ["age", "note"]
    assert draft.n_rows == 101


def test_thousands_of_columns_are_drafted(tmp_path):
    path = tmp_path / "wide.parquet"
    names = [f"question_{number}" for number in range(2_000)]
    pd.DataFrame(np.arange(24_000).reshape(12, 2_000) % 5, columns=names).to_parquet(path)
    draft = draft_contract(path)
    assert len(draft.columns) == 2_000
    assert "and 1,980 more" in draft.to_yaml()
    with pytest.raises(InvalidSettingError, match="'question_19'] and 1,980 more are proposals: read them"):
        TableContract.from_mapping(draft.mapping)


MEASURE = """
import resource, sys
from privacy_assets import draft_contract
from privacy_assets.drafting import profile
profile.MOST_KEPT_BYTES = 8 * 2**20
small = draft_contract(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
large = draft_contract(sys.argv[2])
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(large.n_rows, (after - before) // 1024)
print(large.mapping["columns"])
"""


def test_a_file_is_read_in_blocks_of_bounded_memory(tmp_path):
    """A file of many blocks takes less memory than itself: the kept rows and a few blocks."""
    small, large = tmp_path / "small.csv", tmp_path / "large.csv"
    n_rows = 25_000
    table = pd.DataFrame({"visit_id": np.arange(n_rows), "code": np.arange(n_rows) * 7919 % 100_003})
    table["letter"] = ("a letter as long as others, " * 160) + table["code"].astype(str)
    table.head(5_000).to_csv(small, index=False)
    table.to_csv(large, index=False)
    assert large.stat().st_size > 25 * BLOCK_BYTES
    run = subprocess.run([sys.executable, "-c", MEASURE, small, large], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    told, columns = run.stdout.strip().splitlines()
    found, mebibytes = map(int, told.split())
    assert found == n_rows
    assert mebibytes < large.stat().st_size / 2**20 / 3
    assert "'visit_id': {'type': 'integer', 'role': 'direct_identifier'" in columns


def test_nothing_but_the_contract_shows_a_cell(tmp_path, caplog, capfd):
    """Of the planted values only the category leaves, which is a part of the contract; the rest is nowhere."""
    path = tmp_path / "people.csv"
    sentinel_people(400).to_csv(path, index=False)
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        draft = draft_contract(path)
        written = draft.to_yaml() + repr(draft) + repr(draft.columns[0])
    out = capfd.readouterr()
    elsewhere = (caplog.text + out.out + out.err + "".join(str(each.message) for each in warned)).encode()
    assert not [cell for cell in SENTINELS if cell in elsewhere]
    categories = [name for name, own in draft.mapping["columns"].items() if "categories" in own]
    assert categories == ["name_of_plan", "region"]
    without = re.sub(r"categories: \[[^\]]*\]", "", written).encode()
    assert not [cell for cell in SENTINELS if cell in without]
    assert "categories of name_of_plan, region" in written
    assert "ranges, rounded outward until 5 people share each end, of income, admitted, cost" in written


@pytest.mark.parametrize(
    "text",
    [
        ",age\n1,31\n2,42\n3,57\n",  # pandas
        '"","age"\n"1",31\n"2",42\n"3",57\n',  # R
        "Unnamed: 0,age\n1,31\n2,42\n3,57\n",  # pandas, read and written once more
        "\ufeff,age\r\n1,31\r\n2,42\r\n3,57\r\n",  # a spreadsheet
        "age,\n31,1\n42,2\n57,3\n",
        ",age,\n1,31,x\n2,42,x\n3,57,x\n",
    ],
)
def test_a_column_without_a_header_is_named_by_its_position_and_can_be_dropped(text, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(text)
    mapping = draft_contract(path).mapping
    first, *others = text.lstrip("\ufeff").splitlines()[0].replace('"', "").split(",")
    expected = [name or f"Unnamed: {place}" for place, name in enumerate([first, *others])]
    assert list(mapping["columns"]) == expected
    assert list(TableFile(str(path)).read(None).columns) == expected
    for own in mapping["columns"].values():
        own["role"] = "direct_identifier"
    mapping["columns"]["age"]["role"] = "other"
    del mapping["drafted"]
    mapping["one_row_per_person"] = True
    admitted = TableContract.from_mapping(mapping).admit(TableFile(str(path)).read(None))
    assert admitted.to_dict("list") == {"age": [31, 42, 57]}


ONE_COLUMN = {
    "semicolons in a header and all records": ("age;cost\n31;1,5\n42;2,5\n", ";"),
    "a tab": ("age\tcost\n31\t1\n42\t2\n", "\t"),
    "a bar": ("age|cost\n31|1\n42|2\n", "|"),
    "no names": ("people\n31;1\n42;2\n", ";"),
    "as many parts as there are": ("tags\na;b\nc;d;e\nf;g;h;i\n", ";"),
    "a single record": ("name\nMiller; Anna\n", ";"),
    "quotation marks around parts": ('age;town\n31;"Bonn"\n42;"Ulm"\n', ";"),
}


@pytest.mark.parametrize("case", ONE_COLUMN)
def test_a_file_of_one_column_with_a_separator_in_it_asks_for_the_separator(case, tmp_path):
    text, separator = ONE_COLUMN[case]
    path = tmp_path / "people.csv"
    path.write_text(text)
    asked = re.escape(f"contains {separator!r}. Is this the separator?")
    with pytest.raises(InvalidTableError, match=asked) as raised:
        TableFile(str(path)).read(None)
    assert raised.value.__context__ is None
    if len(re.split(f"[{separator}]", text.splitlines()[0])) == 1:
        with pytest.raises(InvalidTableError, match=asked):
            draft_contract(path)
    else:
        # The draft finds the separator itself.
        assert draft_contract(path).separator == separator
        assert len(TableFile(str(path), separator=separator).read(None).columns) == 2


@pytest.mark.parametrize(
    "text",
    [
        'tags\n"a;b"\n"c;d"\n',  # quoted, so it is a text
        "tags\na;b\nc\n",
        "tags\n;\nc\n",
        "age\n31\n42\n",
    ],
)
def test_a_file_of_one_column_is_read(text, tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(text)
    assert TableFile(str(path)).read(None).shape == (2, 1)
    assert len(draft_contract(path).columns) == 1


def test_row_names_that_r_writes_without_a_field_in_the_header_are_a_column(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text('"age","town"\n"1",31,"Bonn"\n"2",42,"Ulm"\n')
    for table in (TableFile(str(path)).read(None), draft_contract(path).mapping["columns"]):
        assert list(table) == ["Unnamed: 0", "age", "town"]
    assert TableFile(str(path)).read(None)["age"].tolist() == ["31", "42"]
    # A separator at the end of each line is not a row name: columns would move.
    path.write_text("age,town\n31,Bonn,\n42,Ulm,\n")
    with pytest.raises(InvalidTableError, match="different number of fields"):
        TableFile(str(path)).read(None)


def test_records_that_are_too_short_are_not_filled_up(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text("age,plan\n31,free\n42\n")
    with pytest.raises(InvalidTableError, match="different number of fields than its header, 2: the first is record 3"):
        TableFile(str(path)).read(None)


def test_cells_are_read_as_they_are_written(tmp_path):
    path = tmp_path / "people.csv"
    cells = ["01000", "NA", " a ", 'a "word"', "two\nlines", "1e400", "é", "b'a'", "-", "TRUE", "a,b", "'"]
    pd.DataFrame({"a": [*cells, None], "b": [None, *cells]}).to_csv(path, index=False)
    assert TableFile(str(path)).read(None)["a"].tolist()[:-1] == cells
    assert TableFile(str(path)).read(None)["b"].tolist()[1:] == cells
    assert TableFile(str(path)).read(None).isna().sum().tolist() == [1, 1]
    for text in ("\n\na,b\n1,2\n", "a,b\r\n1,2\r\n", "a,b\r1,2\r", "a,b\n\n1,2\n\n"):
        path.write_text(text, newline="")
        assert TableFile(str(path)).read(None).to_dict("list") == {"a": ["1"], "b": ["2"]}
    path.write_text("a,b\n")
    assert TableFile(str(path)).read(None).shape == (0, 2)


@pytest.mark.parametrize("largest", [1.79e308, -1.79e308, 9.9e307, 1e308])
def test_the_largest_floats_are_drafted_and_admitted(largest):
    table = pd.DataFrame({"amount": [largest, 1.0] * 30, "wave": 1})
    mapping = draft_contract(table).mapping
    for own in mapping["columns"].values():
        own["role"] = "other"
    del mapping["drafted"]
    mapping["one_row_per_person"] = True
    assert TableContract.from_mapping(mapping).admit(table)["amount"].tolist() == table["amount"].tolist()
