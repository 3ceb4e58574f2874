"""Exceptions that attack whoever handles them, each with cells of a table wherever an exception can have text."""

import asyncio
import errno
from collections.abc import Callable
from typing import NoReturn

import dagster as dg

from privacy_assets.errors import ContractError, InvalidTableError, PrivacyAssetsError
from privacy_assets.orchestration.private.guard import ReleaseRefused, ValueFreeFailure
from privacy_assets.orchestration.settings.sources import TableFile
from privacy_assets.own_code import DIRECTORY

ATTRIBUTES = (
    *("__class__", "__traceback__", "__cause__", "__context__", "__suppress_context__", "__notes__", "__dict__"),
    *("errno", "strerror", "filename", "args", "description", "metadata", "exceptions", "was_made_here"),
)
"""What a handler may look at; each becomes a property that raises."""
METHODS = ("__str__", "__repr__", "__hash__", "__eq__", "__bool__", "__getattribute__", "__reduce_ex__", "__del__")


def attacks(cell: str, number: int) -> dict[str, Callable[[], NoReturn]]:
    """Return functions, by what they attack; each raises when it is called."""
    found: dict[str, Callable[[], NoReturn]] = {}
    for base in (ValueError, OSError, InvalidTableError, ReleaseRefused):
        for raised in (ValueError, SystemExit, KeyboardInterrupt):
            for name in ATTRIBUTES:
                found[f"{base.__name__}.{name} raises {raised.__name__}"] = _with_property(base, name, raised, cell)
    for raised in (ValueError, SystemExit, RecursionError):
        for name in METHODS:
            found[f"{name} raises {raised.__name__}"] = _with_method(name, raised, cell)
    found |= {
        f"OSError with {type(first).__name__} {str(first)[:12]}": _raiser(OSError, first, second)
        for first, second in (
            ("text", number),
            (cell, cell),
            (float(number), cell),
            (2147942405, cell),
            (-1, cell),
            (2**80, cell),
            (True, cell),
            (errno.ENOSPC, cell),
            (None, cell),
        )
    }
    found |= {
        "errno set afterwards": _errno_afterwards(cell),
        "a class named after a cell": _raiser(type(cell, (ValueError,), {}), cell),
        "a class that pretends to be a library's": _raiser(type(cell, (ValueError,), {"__module__": "pandas"}), cell),
        "a metaclass with names": _raiser(_named_by_metaclass(cell), cell),
        "a metaclass that raises": _raiser(_refused_by_metaclass(cell), cell),
        "a class whose names are no text": _raiser(_renamed(cell), cell),
        "a group": _raiser(ExceptionGroup, cell, [ValueError(cell), ExceptionGroup(cell, [KeyError(cell)])]),
        "a group of interrupts": _raiser(BaseExceptionGroup, cell, [KeyboardInterrupt(cell)]),
        "notes": _with_notes(cell),
        "notes that are none": _with_strange_notes(cell),
        "a deep chain": _deep_chain(cell),
        "a deep group": _deep_group(cell),
        "a chain in a circle": _circle(cell),
        "too deep a recursion": _recursion(cell),
        "an interrupt with text": _raiser(type(cell, (KeyboardInterrupt,), {}), cell),
        "a generator's exit with text": _raiser(type("Exit", (GeneratorExit,), {"__init__": _never}), cell),
        "an exit": _raiser(SystemExit, cell),
        "the end of an iteration": _raiser(StopIteration, cell),
        "text that is not Unicode": _raiser(ValueError, f"{cell}\ud800\x00"),
        "a syntax error": _raiser(SyntaxError, cell, (cell, number, 1, cell)),
        "a Unicode error": _raiser(UnicodeDecodeError, "utf-8", cell.encode(), 0, 1, cell),
        "memory": _raiser(MemoryError, cell),
        "Dagster's failure": _raiser(dg.Failure, cell, {"cell": cell}),
        "Dagster's failure by its own name": _raiser(dg.RetryRequested, 1),
        "our failure, raised by others": _raiser(ValueFreeFailure, cell, {"cell": cell}),
        "our refusal, raised by others": _raiser(ReleaseRefused, cell, {"cell": cell}),
        "a class of our failure": _raiser(type("Mine", (ReleaseRefused,), {}), cell, {"cell": cell}),
        "our error, raised by others": _raiser(InvalidTableError, cell),
        "a class of our error": _raiser(type("Mine", (PrivacyAssetsError,), {}), cell),
        "our contract error": _raiser(ContractError, cell, ((cell, cell, number),)),
        "our error with another text": _text_changed(cell),
        "our error with a setting of others": lambda: TableFile(cell),
        "our error, raised by no frame": _of_a_future(InvalidTableError(cell)),
        "our refusal, raised by no frame": _of_a_future(ReleaseRefused(cell)),
        "code that pretends to be ours": _compiled(cell, f"{DIRECTORY}/pretended/errors.py"),
        "code of a folder of our name": _compiled(cell, f"/home/somebody/privacy_assets/{cell}.py"),
        "code of a file named after a cell": _compiled(cell, cell),
        "a function named after a cell": _named_function(cell),
        "an exception that does not let itself be made": _raiser(
            type("Mine", (ValueError,), {"__new__": _no_new}), cell
        ),
    }
    return found


def _raiser(cls: type[BaseException], *arguments: object) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise cls(*arguments)

    return call


def _with_property(base: type[BaseException], name: str, raised: type[BaseException], cell: str):
    def look(_: object) -> NoReturn:
        raise raised(cell)

    return _raiser(type("Mine", (base,), {name: property(look)}), cell)


def _with_method(name: str, raised: type[BaseException], cell: str):
    def method(*_: object, **__: object) -> NoReturn:
        print(cell)
        raise raised(cell)

    return _raiser(type("Mine", (ValueError,), {name: method}), cell)


def _errno_afterwards(cell: str):
    def call() -> NoReturn:
        error = OSError(errno.EIO, "x")
        error.errno = cell  # type: ignore[assignment]
        raise error

    return call


def _named_by_metaclass(cell: str) -> type[BaseException]:
    class Meta(type):
        def __getattribute__(cls, name: str) -> object:
            return cell if "name" in name else super().__getattribute__(name)

        def __hash__(cls) -> int:
            raise SystemExit(cell)

    class Error(ValueError, metaclass=Meta):
        pass

    return Error


def _refused_by_metaclass(cell: str) -> type[BaseException]:
    class Meta(type):
        def __subclasscheck__(cls, _: type) -> NoReturn:
            raise SystemExit(cell)

    return Meta("Error", (OSError,), {})


def _renamed(cell: str) -> type[BaseException]:
    class Text(str):
        def __eq__(self, _: object) -> bool:
            return True

        def __hash__(self) -> int:
            return hash("ValueError")

    error = type("Error", (ValueError,), {"__module__": Text("builtins")})
    error.__name__ = error.__qualname__ = Text(cell)
    return error


def _with_notes(cell: str):
    def call() -> NoReturn:
        error = KeyError(cell)
        error.add_note(cell)
        raise error

    return call


def _with_strange_notes(cell: str):
    def call() -> NoReturn:
        error = KeyError(cell)
        error.__notes__ = {cell: object()}  # type: ignore[assignment]
        raise error

    return call


def _deep_chain(cell: str):
    def call() -> NoReturn:
        error = last = ValueError(cell)
        for _ in range(3000):
            last.__context__ = ValueError(cell)
            last = last.__context__
        raise error

    return call


def _deep_group(cell: str):
    def call() -> NoReturn:
        error: Exception = ValueError(cell)
        for _ in range(3000):
            error = ExceptionGroup(cell, [error])
        raise error

    return call


def _circle(cell: str):
    def call() -> NoReturn:
        one, other = ValueError(cell), KeyError(cell)
        one.__cause__, other.__cause__ = other, one
        raise one

    return call


def _recursion(cell: str):
    def call(depth: str = "") -> NoReturn:
        call(f"{cell}{len(depth)}")
        raise AssertionError(cell)

    return call


def _never(*_: object) -> NoReturn:
    raise TypeError("cannot be made without arguments")


def _no_new(cls: type, cell: str) -> NoReturn:
    raise LookupError(cell)


def _text_changed(cell: str):
    def call() -> NoReturn:
        try:
            TableFile("x")
        except PrivacyAssetsError as error:
            error.args = (cell,)
            raise
        raise AssertionError

    return call


def _of_a_future(error: BaseException) -> Callable[[], NoReturn]:
    """Return a function of C that raises an error: no frame of others stands between us and it."""
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    loop.close()
    future.set_exception(error)
    future.exception()  # So that asyncio does not tell of it.
    return future.result


def _compiled(cell: str, filename: str) -> Callable[[], NoReturn]:
    names: dict[str, object] = {"__name__": "privacy_assets.errors", "InvalidTableError": InvalidTableError}
    exec(compile(f"\n\ndef call():\n    raise InvalidTableError({cell!r})", filename, "exec"), names)
    return names["call"]  # type: ignore[return-value]


def _named_function(cell: str) -> Callable[[], NoReturn]:
    def call() -> NoReturn:
        raise ValueError(cell)

    call.__code__ = call.__code__.replace(co_name=cell, co_qualname=cell, co_filename=f"/x/privacy_assets/{cell}.py")
    return call
