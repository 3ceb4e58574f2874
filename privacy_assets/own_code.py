"""Identification of this package's own frames, classes and errors.

Names and paths alone are not enough: a user's file may be in a folder with this package's name, and a user's class may
claim to come from here. So a frame counts if it runs in a module of this package, and a class counts if such a module
defines it.
"""

import os
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

PACKAGE = __name__.partition(".")[0]
DIRECTORY = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120
GENERATED = "<string>"
"""File name of methods that `dataclasses` generates."""
LIBRARIES = frozenset(
    {
        *sys.stdlib_module_names,
        *("dagster", "dagster_shared", "numba", "numpy", "pandas", "pandera", "pyarrow", "pydantic", "scipy", "upath"),
    }
)
"""Libraries that this package calls, and that may call it back."""


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
    name = _module_of(frame)
    if _is_in(name, PACKAGE):
        return frame.f_code.co_filename == GENERATED or _lies_here(frame.f_code)
    return name is not None and name.partition(".")[0] in LIBRARIES


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
