"""Results in a notebook or a console: figures and names of columns, never a cell of a table."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import TYPE_CHECKING, Any, ClassVar

from privacy_assets.display.numbers import number, yes_or_no
from privacy_assets.display.pictures import Drawn
from privacy_assets.errors import InvalidSettingError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ENDS = (("_low", "_high"), ("_lower", "_upper"), ("_interval_low", "_interval_high"))
"""Suffixes of the names of the ends of intervals."""
MOST_NAMES = 8


class ShowsFigures:
    """A result that shows its figures when Python or a notebook displays it.

    A derived class has scores, or other figures, and names its main figures in order; `repr` has only these, and a
    notebook shows all others folded below them.
    """

    main_figures: ClassVar[tuple[str, ...]] = ()
    scores: Mapping[str, Any]

    def _figures(self) -> Mapping[str, object]:
        """Return all figures by name: numbers, yes or no, names, and the ends of intervals by their names."""
        return self.scores

    def __repr__(self) -> str:
        rows = dict(_rows(self._figures()))
        shown = [f"{name}={rows[name]}" for name in self.main_figures if name in rows]
        return f"<{type(self).__name__} {', '.join(shown)}>"

    def _repr_html_(self) -> str:
        rows = dict(_rows(self._figures()))
        main = {name: rows[name] for name in self.main_figures if name in rows}
        rest = {name: shown for name, shown in rows.items() if name not in main}
        more = f"<details><summary>{len(rest)} more</summary>{_table(rest)}</details>" if rest else ""
        return f"<div><strong>{escape(type(self).__name__)}</strong>{_table(main)}{more}</div>"


class ShowsPictures:
    """A result that can be drawn. Pictures show only aggregates: no cell, and no group below 5 records.

    A derived class names its pictures, the main picture first.
    """

    pictures: ClassVar[tuple[str, ...]] = ()

    def plot(self, what: str | None = None) -> "Figure":
        """Draw a picture as a Matplotlib figure, which a notebook displays.

        Parameters
        ----------
        what : str, optional
            One of ``pictures``; by default the first.

        Returns
        -------
        Figure
            The picture; ``figure.axes`` are its panels, which can be changed as usual.

        Raises
        ------
        InvalidSettingError
            If this result has no such picture.
        """
        return self.drawn(what).figure

    def drawn(self, what: str | None = None) -> Drawn:
        """Draw like `plot`, with a title and a sentence on what the picture shows."""
        chosen = self.pictures[0] if what is None else what
        if chosen not in self.pictures:
            raise InvalidSettingError(
                f"There is no picture {what!r}. Expected one of {list(self.pictures)}. Nothing was drawn."
            )
        return self._draw(chosen)

    def _draw(self, what: str) -> Drawn:
        """Draw one of ``pictures``."""
        raise NotImplementedError


def _rows(figures: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Format figures as text, each with its interval."""
    ends = {name + end for name in figures for pair in ENDS for end in pair}
    for name, value in figures.items():
        if name not in ends:
            yield name, _written(value) + _interval(figures, name)


def _interval(figures: Mapping[str, object], name: str) -> str:
    for low_end, high_end in ENDS:
        if name + low_end in figures and name + high_end in figures:
            low, high = figures[name + low_end], figures[name + high_end]
            return "" if low is None or high is None else f" ({_written(low)} to {_written(high)})"
    return ""


def _written(value: object) -> str:
    if value is None:
        return "not available"
    if isinstance(value, bool):
        return yes_or_no(value)
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list | tuple):
        if len(value) == 2 and all(isinstance(end, int | float) for end in value):
            return " to ".join(map(_written, value))
        more = [f"and {len(value) - MOST_NAMES} more"] if len(value) > MOST_NAMES else []
        return ", ".join([*map(_written, value[:MOST_NAMES]), *more]) or "none"
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {_written(each)}" for name, each in value.items()) or "none"
    return str(value)


def _table(rows: Mapping[str, str]) -> str:
    lines = "".join(
        f'<tr><th scope="row" style="text-align: left">{escape(name)}</th>'
        f'<td style="text-align: left">{escape(shown)}</td></tr>'
        for name, shown in rows.items()
    )
    return f"<table>{lines}</table>"
