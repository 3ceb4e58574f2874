"""Identification of this package's own frames, classes and errors.

Names alone are not enough: a user's file may be called ``code.py``, like a module of Python, or be in a folder with
this package's name, and a user's class may claim to come from here. So a frame counts if it runs in a module whose file
lies in this package, and a class counts if such a module defines it. The same applies to the libraries.
"""

import os
import re
import sys
import sysconfig
from functools import cache, lru_cache
from types import CodeType, FrameType
from typing import Any

PACKAGE = __name__.partition(".")[0]
DIRECTORY = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120
PYTHON = "python"
"""Stands for the standard library."""
LIBRARIES = frozenset(
    {
        *(PYTHON, PACKAGE, "dagster", "dagster_shared", "numba", "numpy", "pandas", "pandera", "pyarrow", "pydantic"),
        *("scipy", "upath"),
    }
)
"""Libraries that this package calls, and that may call it back."""
INSTALLED = re.compile(r".*/(?:site|dist)-packages/([^/.]+)")
"""Path of an installed file, up to the name of its library."""


class MadeHere:
    """Base of exceptions that record whether this package itself made them."""

    was_made_here: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> "MadeHere":
        """Record which code makes the exception."""
        made = super().__new__(cls, *args, **kwargs)
        made.was_made_here = is_own_frame(sys._getframe(1))
        return made


def is_own_frame(frame: FrameType) -> bool:
    """Return whether a frame runs code of a file of this package."""
    return _is_in(_module_of(frame), PACKAGE) and _lies_here(frame.f_code)


def is_trusted_frame(frame: FrameType) -> bool:
    """Return whether a frame may be between this package and its own error, because it is not foreign code."""
    module, filename = _module_of(frame), frame.f_code.co_filename
    if module is None or type(filename) is not str:
        return False
    # Code that is frozen, generated or written in C does not name its file; its module does.
    return (_library_at(filename) if filename.startswith(os.sep) else library_of(module)) in LIBRARIES


def is_own_class(cls: type) -> bool:
    """Return whether a class is defined by this package, and not derived from one of its classes."""
    module, name = written_names(cls)
    return _is_in(module, PACKAGE) and found_under(cls, module, name)


def written_names(cls: type) -> tuple[str | None, str | None]:
    """Return the module and name of a class itself, regardless of its metaclass."""
    module, name = (type.__dict__[each].__get__(cls) for each in ("__module__", "__qualname__"))
    return (module if type(module) is str else None, name if type(name) is str else None)


def found_under(cls: type, module: str | None, name: str | None) -> bool:
    """Return whether a module has exactly this class under this name."""
    there = sys.modules.get(module) if module is not None else None
    return name is not None and getattr(there, "__dict__", {}).get(name) is cls


def library_of(module: str | None) -> str | None:
    """Return the library in whose directory the file of a loaded module lies; None for a module of others."""
    namespace = getattr(sys.modules.get(module or ""), "__dict__", {})
    filename = namespace.get("__file__")
    if filename is None and namespace.get("__name__") in sys.builtin_module_names:
        return PYTHON
    return _library_at(filename) if type(filename) is str else None


@lru_cache(maxsize=4096)
def _library_at(filename: str) -> str | None:
    if _is_below(filename):
        return PACKAGE
    path = os.path.realpath(filename)
    installed = INSTALLED.match(path)
    if installed is not None:
        return installed[1]
    return PYTHON if path.startswith(_directories_of_python()) else None


@cache
def _directories_of_python() -> tuple[str, ...]:
    return tuple(os.path.realpath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib"))


def _module_of(frame: FrameType) -> str | None:
    """Return the name of the module in which a frame runs; None if it runs elsewhere, like code of `exec`."""
    name = dict.get(frame.f_globals, "__name__")
    module = sys.modules.get(name) if type(name) is str else None
    return name if getattr(module, "__dict__", None) is frame.f_globals else None


def _is_in(module: str | None, package: str) -> bool:
    return module is not None and (module == package or module.startswith(f"{package}."))


def _lies_here(code: CodeType) -> bool:
    return type(code.co_filename) is str and _is_below(code.co_filename)


@lru_cache(maxsize=4096)
def _is_below(filename: str) -> bool:
    return os.path.realpath(filename).startswith(DIRECTORY + os.sep)
