"""What belongs to Python, to a library or to this package is decided by the place of its file, never by its name."""

import code
import importlib.util
import json
import os
import sys
from collections import OrderedDict
from functools import partial, reduce, singledispatch

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml

from privacy_assets.columns.safe_names import class_name
from privacy_assets.errors import InvalidTableError
from privacy_assets.orchestration.private.guard import call_guarded
from privacy_assets.orchestration.settings.sources import TableFile

CELL = "Zaphodine-Quxington"
NAMES = ("code", "types", "token", "secrets", "xml.dom", "pandas", "upath", "pydantic.errors", "numpy.core", "os")
OWN = """
def passing_on(call):
    return call()

def telling(call):
    try:
        return call()
    except ValueError as error:
        error.args = ("Zaphodine-Quxington",)
        raise

def named_after_a_cell(cell):
    globals()[cell] = type(cell, (ValueError,), {"__module__": __name__})
    return globals()[cell]
"""


@pytest.fixture
def module_of_the_user(tmp_path, monkeypatch):
    """Load a file of the user under the name of a library's module, as a file beside the user's script would be."""

    def load(name):
        path = tmp_path / "project" / (name.replace(".", "/") + ".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(OWN)
        spec = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
        return module

    return load


def said(call, path):
    with pytest.raises(Exception, match="people__source failed") as raised:
        call_guarded(call, path / "private", "people__source")
    return raised.value.description


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("does", ["passing_on", "telling"])
def test_a_file_of_the_user_with_the_name_of_a_library_is_foreign(module_of_the_user, tmp_path, name, does):
    call = partial(getattr(module_of_the_user(name), does), partial(TableFile(f"{CELL}.csv").read, None))
    description = said(call, tmp_path)
    assert CELL not in description
    assert "withheld" in description


@pytest.mark.parametrize("name", NAMES)
def test_a_class_of_such_a_file_is_named_after_its_base(module_of_the_user, name):
    assert class_name(module_of_the_user(name).named_after_a_cell(CELL)) == "subclass of ValueError"


def test_python_and_libraries_may_be_between_this_package_and_its_errors(tmp_path):
    read = TableFile(str(tmp_path / "nowhere.csv")).read
    between = {
        "reduce": partial(reduce, lambda *_: read(None), [1, 2]),
        "singledispatch": partial(singledispatch(read), "a"),
        "frozen os": partial(os._Environ({}, read, read, read, read).__getitem__, "a"),
        "a Cython loop of pandas": partial(pd.Series(["a"]).map, read),
        "pandas": partial(pd.DataFrame({"a": ["x"]}).pipe, lambda *_: read(None)),
        "numpy": partial(np.vectorize(read), ["a"]),
    }
    # The lambdas are code of this test, so they count as foreign.
    spoken = {name for name, call in between.items() if "There is no file" in said(call, tmp_path)}
    assert spoken == between.keys() - {"reduce", "pandas"}


@pytest.mark.parametrize(
    ("cls", "name"),
    [
        (KeyError, "KeyError"),
        (OrderedDict, "OrderedDict"),
        (code.InteractiveConsole, "InteractiveConsole"),
        (json.JSONDecodeError, "JSONDecodeError"),
        (importlib.machinery.FileFinder, "FileFinder"),
        (pd.errors.OutOfBoundsDatetime, "OutOfBoundsDatetime"),
        (pa.ArrowInvalid, "ArrowInvalid"),
        (yaml.YAMLError, "YAMLError"),
        (InvalidTableError, "InvalidTableError"),
        (type("Mine", (KeyError,), {}), "subclass of KeyError"),
    ],
)
def test_classes_of_python_and_of_libraries_have_their_names(cls, name):
    assert class_name(cls) == name
