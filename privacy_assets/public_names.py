"""Public names that are resolved when they are first used, so that importing a package stays light."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

PACKAGE = __name__.partition(".")[0]


def resolved_lazily(package: str, names: Mapping[str, str]) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Make ``__getattr__`` and ``__dir__`` of a package from its public names and the modules that define them."""

    def __getattr__(name: str) -> Any:  # noqa: N807
        if name not in names:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{PACKAGE}.{names[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:  # noqa: N807
        return sorted(names)

    return __getattr__, __dir__
