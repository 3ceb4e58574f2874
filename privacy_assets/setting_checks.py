"""Descriptions and checks shared by all settings, and the sentence that refuses a setting."""

from __future__ import annotations

import inspect
import os
import re
import sys
import unicodedata
from dataclasses import MISSING, field, fields
from math import inf
from pathlib import Path
from typing import Any, TypeGuard, TypeVar

import numpy as np

from privacy_assets.errors import InvalidSettingError

T = TypeVar("T")
LARGEST = sys.float_info.max
"""Infinity, NaN and integers beyond all floats are not between this and its negative."""
REQUIRED: Any = MISSING
"""Default of a setting without a default."""
_IN_SCHEMA = {"at_least": "minimum", "at_most": "maximum", "above": "exclusiveMinimum", "below": "exclusiveMaximum"}
FEWEST_REASON_WORDS = 3
_MODULES = re.compile(r"\b\w+\.(?=\w)")
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+):/")
"""A path of pathlib has only one of the slashes; a single letter would be a drive."""
_STORES = ("s3://", "gs://", "gcs://", "abfs://", "abfss://")
_WITHOUT_SPACES = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO", "THAI", "LAO", "KHMER", "MYANMAR", "TIBETAN")
"""Scripts, by the names of their letters, in which a word is short, or has no space after it."""
_TYPED = "qwertyuiop asdfghjkl zxcvbnm abcdefghijklmnopqrstuvwxyz"
"""Letters in the order of a keyboard and of the alphabet."""


def setting(default: Any, description: str, *examples: Any, is_secret: bool = False, **bounds: float) -> Any:
    """Describe a field of a dataclass of settings, once for all places that show it.

    The schema of YAML files, ``docs/configuration.md`` and the scaffold are made from it; fields without a description
    cannot be written in YAML. The default is `REQUIRED` if the setting must be given, and ``dict`` for an empty
    mapping. The value of a secret is not shown with the others. ``at_least``, ``at_most``, ``above`` and ``below`` are
    the range of a number in the schema.
    """
    named: dict[str, Any] = {"default_factory": dict} if default is dict else {"default": default}
    schema = {_IN_SCHEMA[name]: bound for name, bound in bounds.items()}
    metadata = {"description": description, "examples": list(examples), "json_schema_extra": schema}
    return field(**named, repr=not is_secret, metadata=metadata)


def described(settings: type[T]) -> type[T]:
    """Add the meanings of the fields of a dataclass of settings to its docstring, for Python's help."""
    head, raises, errors = inspect.cleandoc(settings.__doc__ or "").partition("\n\nRaises\n")
    meanings = [
        f"{each.name} : {_MODULES.sub('', str(getattr(each.type, '__name__', each.type)))}\n"
        f"    {each.metadata['description']}"
        for each in fields(settings)  # type: ignore[arg-type]
        if each.metadata
    ]
    settings.__doc__ = "\n".join([head, "", "Parameters", "----------", *meanings]) + raises + errors
    return settings


def is_integer(value: object, least: float = -inf, most: float = inf, *, plain: bool = False) -> TypeGuard[int]:
    """Whether a value is an integer from ``least`` to ``most``; a boolean is not.

    If ``plain``, it must be Python's own ``int``, which JSON can write, and not one of numpy's.
    """
    kinds = (int,) if plain else (int, np.integer)
    return isinstance(value, kinds) and not isinstance(value, bool) and bool(least <= value <= most)


def is_number(value: object, low: float = -inf, high: float = inf, *, plain: bool = False) -> TypeGuard[float]:
    """Whether a value is a finite number from ``low`` to ``high``, ``plain`` as an integer; a boolean is not."""
    kinds = (int, float) if plain else (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool):
        return False
    number = float(value) if isinstance(value, np.floating) else value
    return bool(max(low, -LARGEST) <= number <= min(high, LARGEST))


def require(
    is_right: bool, setting: str, value: object, expected: str, consequence: str = "Nothing was assessed."
) -> None:
    """Refuse a setting that is not what was expected."""
    if not is_right:
        raise InvalidSettingError(f"{setting} is {value!r}. Expected {expected}. {consequence}")


def local_path(path: str | os.PathLike[str], setting: str) -> Path:
    """Return a path, and refuse a URL, which would be taken for a local directory of that name."""
    if found := _URL.match(str(path)):
        is_file = found[1].lower() == "file"
        # The rest of a URL may contain a password.
        raise InvalidSettingError(
            f"{setting} is a URL ({found[1]}:). Expected the path of a local file or directory: URLs and object stores "
            "are not read or written here; only release_path and `verify` take s3, gs and abfs, as text. "
            f"{'Write the path alone' if is_file else 'Mount the store, or copy its files'}."
        )
    return Path(path)


def is_in_store(place: object) -> TypeGuard[str]:
    """Return whether a place is the address of an object store, as text."""
    return isinstance(place, str) and place.startswith(_STORES)


def threads_to_use(n_threads: int | None, consequence: str = "Nothing was assessed.") -> int:
    """Return the requested number of threads; if None, that of the processors on which this process may run."""
    is_right = n_threads is None or is_integer(n_threads, 1)
    require(is_right, "n_threads", n_threads, "None or an integer above 0", consequence)
    return n_threads or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()) or 1


def require_flag(setting: str, value: object) -> None:
    """Refuse a setting that is neither True nor False."""
    require(isinstance(value, bool), setting, value, "True or False")


def one_of(choices: tuple[Any, ...]) -> str:
    """Return the choices for a message."""
    return f"one of {', '.join(map(str, choices))}"


def has_words(reason: str) -> bool:
    """Return whether a reason has at least three different words, in any script; signs and repeated letters are none.

    Where a word has no space after it, two different characters count as a word. Text that cannot be printed has none.
    """
    plain = unicodedata.normalize("NFKC", reason).casefold()
    # Vowel signs and joiners do not end a word.
    letters = "".join(each for each in plain if unicodedata.category(each) not in ("Mn", "Mc", "Me", "Cf"))
    dense = {each for each in letters if unicodedata.name(each, "").startswith(_WITHOUT_SPACES)}
    spaced = "".join(" " if each in dense else each for each in letters)
    words = {word for word in re.findall(r"[^\W\d_]+", spaced) if len(set(word)) > 1 and not _is_typed(word)}
    return is_printable(reason) and len(words) + -(-len(dense) // 2) >= FEWEST_REASON_WORDS


def is_printable(text: str) -> bool:
    """Return whether a text has only characters that can be printed, spaces, line ends, and joiners of letters."""
    return re.sub(r"\s|[\u200c\u200d]", "", text).isprintable()


def _is_typed(word: str) -> bool:
    return len(word) > len("no") and (word in _TYPED or word[::-1] in _TYPED)
