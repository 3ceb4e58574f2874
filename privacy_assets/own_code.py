"""What code of this package is: a frame of it, a class of it, an error that it made itself.

Names and paths alone do not say: a file of yours may lie in a folder of this package's name, and a class of yours may
say that it comes from here. So a frame counts if it runs in a module of this package, and a class if it is there.
"""

import os
import sys
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any

PACKAGE = __name__.partition(".")[0]
DIRECTORY = os.path.realpath(os.path.dirname(__file__))  # noqa: PTH120
GENERATED = "<string>"
"""File name of methods that `dataclasses` writes."""
LIBRARIES = frozenset(
    {
        *sys.stdlib_module_names,
        *("dagster", "dagster_shared", "numba", "numpy", "pandas", "pandera", "pyarrow", "pydantic", "scipy", "upath"),
    }
)
"""Libraries that this package calls, and that may call it back."""


class MadeHere:
    """Base of exceptions that know whether this package itself made them."""

    was_made_here: bool

    def __new__(cls, *args: Any, **kwargs: Any) -> "MadeHere":
        """Look who makes one."""
        made = super().__new__(cls, *args, **kwargs)
        made.was_made_here = is_own_frame(sys._getframe(1))
        return made


def is_own_frame(frame: FrameType) -> bool:
    """Tell whether a frame runs code of a file of this package."""
    return _is_in(_module_of(frame), PACKAGE) and _lies_here(frame.f_code)


def is_trusted_frame(frame: FrameType) -> bool:
    """Tell whether a frame may stand between this package and an error of its own: nobody else's code did."""
    name = _module_of(frame)
    if _is_in(name, PACKAGE):
        return frame.f_code.co_filename == GENERATED or _lies_here(frame.f_code)
    return name is not None and name.partition(".")[0] in LIBRARIES


def is_own_class(cls: type) -> bool:
    """Tell whether a class is one that this package defines, and not one derived from it."""
    module, name = written_names(cls)
    return _is_in(module, PACKAGE) and found_under(cls, module, name)


def written_names(cls: type) -> tuple[str | None, str | None]:
    """Return the module and the name that a class itself has, whatever its metaclass says."""
    module, name = (type.__dict__[each].__get__(cls) for each in ("__module__", "__qualname__"))
    return (module if type(module) is str else None, name if type(name) is str else None)


def found_under(cls: type, module: str | None, name: str | None) -> bool:
    """Tell whether a module has this very class under this name."""
    there = sys.modules.get(module) if module is not None else None
    return name is not None and getattr(there, "__dict__", {}).get(name) is cls


def _module_of(frame: FrameType) -> str | None:
    """Return the name of the module in which a frame runs; None if it runs elsewhere, as code of `exec` can."""
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
