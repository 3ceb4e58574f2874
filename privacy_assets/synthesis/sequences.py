"""Related tables by sequences of trees: people first, then their rows one after the other.

**People** get the number of their rows in each child table and their first moment, and are made by `smooth_cart` as one
table, so that rare numbers of rows are drawn from intervals of enough people.

**Rows** are drawn in order. The trees of a row see the classes of its person, its place, how many rows are left, the
classes of the row before, the mean classes of all rows before, by which what is lasting about a person is carried on,
and the moments of both rows in at most 32 classes. First the gap to the row before is drawn, then the other columns,
those of few classes first. Rows later than the latest real one are not made.

**Stay or change.** A first tree says whether the value of the row before stays. Only if not, a second tree, learned on
rows that changed, draws a class. A value that stays is a synthetic one, so that nothing of a real person is repeated.

**Leaves of people.** A leaf has at least `smoothing` times the square root of the number of *different people*, and no
person has more than a tenth of its donors. Trees learn from rows: one that adds probabilities must raise the
log-likelihood of the rows by as many.

**Rows of rows** are drawn in the same way: a row gets the number of those that belong to it and their first moment, of
datetimes since its own, and the trees of these see its classes and those of its person.

**Rules** of a table are kept as in a single one (`privacy_assets.synthesis.kept_rules`): what is determined is joined,
and sums are computed. A row that violates another rule is drawn again before the next one of its person, given the same
rows before, so that those after it follow from what stays.

Numbers of people and rows are made anew, and rows have the order of their synthetic person. Not kept are rules across
rows, and what two child tables have in common beyond the columns above them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pandas.api import types

from privacy_assets.columns.coding import kind_of_dtype
from privacy_assets.contract.related import PEOPLE, RelatedTables
from privacy_assets.contract.rules import Rule
from privacy_assets.contract.views import beside
from privacy_assets.errors import InvalidTableError
from privacy_assets.synthesis.kept_rules import MOST_ROUNDS, Plan, draw_last_again, keep_rules
from privacy_assets.synthesis.kernels.class_tree import ClassTree, find_leaves, grow_tree
from privacy_assets.synthesis.margins import with_dtype, without_arrow_moments
from privacy_assets.synthesis.number_lines import as_numbers, coarsest_step, restore_numbers
from privacy_assets.synthesis.smooth_cart import MAX_CLASSES, Column, SmoothCart, draw_classes, softened
from privacy_assets.synthesis.synthesize import MOST_ROWS_HERE, Kind, check_kinds, is_ordered

MOST_ROWS_OF_PERSON: Final = 2_000
"""Rows are drawn place by place."""
MOST_PEOPLE_COUNTED: Final = 10
"""A person has at most one in this many donors of a leaf."""
STEPS_OF_MEANS: Final = 2
"""Codes of mean classes for each class."""
ROWS, FIRST, GAP = "rows of {}", "first {} of {}", "gap of {}"


class Step(NamedTuple):
    """A tree of what is drawn next, and its donors by node and class."""

    tree: ClassTree
    donors: NDArray[np.float64]

    def draw(self, known: NDArray[np.uint8], random: np.random.Generator) -> NDArray[np.uint8]:
        """Draw a class for each column of what is known, which is of shape (n_features, n_rows)."""
        return draw_classes(find_leaves(self.tree, known), self.donors, random).astype(np.uint8)


class Clock(NamedTuple):
    """The order column as numbers of its coarsest unit, so that gaps add to moments."""

    like: pd.Series[Any]
    kind: Kind
    dtype: Any
    step: int
    """In units of the last decimal; 0 if floats have too many digits, which are ticks themselves."""
    decimals: int
    edges: NDArray[np.float64]
    """Between the classes of moments."""
    latest: Any

    @classmethod
    def of(cls, column: pd.Series[Any], kind: Kind) -> tuple[Clock, NDArray[Any]]:
        """Learn unit and classes, which are equally frequent; return the moments as ticks, too."""
        like = without_arrow_moments(column.to_frame(), {str(column.name): kind})[column.name]
        numbers = as_numbers(like, kind)
        step, decimals = coarsest_step(np.unique(numbers), like, kind)
        ticks = numbers
        if step:
            ticks = np.rint(numbers * 10.0**decimals).astype(np.int64) // step if decimals else numbers // step
            ticks = ticks.astype(np.int64)
        places = np.linspace(0, 1, MAX_CLASSES + 1)[1:-1]
        edges = np.unique(np.quantile(ticks, places))
        return cls(like, kind, column.dtype, step, decimals, edges, ticks.max()), ticks

    def moments(self, ticks: NDArray[Any]) -> pd.Series[Any]:
        """Return ticks in the dtype of the column."""
        numbers = ticks * self.step if self.step else ticks
        numbers = np.round(numbers / 10**self.decimals, self.decimals) if self.decimals else numbers
        return with_dtype(restore_numbers(numbers, self.like, self.kind), self.dtype)

    def ticks_of(self, moments: pd.Series[Any]) -> NDArray[np.int64]:
        """Return the ticks in which datetimes of another column are."""
        plain = without_arrow_moments(moments.to_frame(), {str(moments.name): self.kind})[moments.name]
        numbers = as_numbers(plain, self.kind).view(f"datetime64[{plain.dt.unit}]")
        return numbers.astype(f"datetime64[{self.like.dt.unit}]").astype(np.int64) // self.step

    def classes(self, ticks: NDArray[Any]) -> NDArray[np.uint8]:
        """Return the class of each moment, from 1 on: 0 stands for no row before."""
        return (np.searchsorted(self.edges, ticks, side="right") + 1).astype(np.uint8)


class Row(NamedTuple):
    """A row of each of some people: classes, what stays, moments; with rules also values, and which violate one."""

    classes: NDArray[np.uint8]
    stayed: NDArray[np.bool_]
    ticks: NDArray[Any]
    table: pd.DataFrame
    is_wrong: NDArray[np.bool_]

    def replaced(self, at: NDArray[np.intp], by: Row) -> Row:
        """Return the rows, some of them replaced."""
        places = np.arange(len(self.ticks))
        places[at] = len(places) + np.arange(len(at))

        def joined(mine: NDArray[Any], own: NDArray[Any]) -> NDArray[Any]:
            return np.concatenate([mine, own], axis=-1).take(places, axis=-1)

        table = pd.concat([self.table, by.table], ignore_index=True).take(places).reset_index(drop=True)
        return Row(
            joined(self.classes, by.classes),
            joined(self.stayed, by.stayed),
            joined(self.ticks, by.ticks),
            table,
            joined(self.is_wrong, by.is_wrong),
        )


@dataclass(frozen=True)
class Rows:
    """The model of a child table.

    ``readers`` read values from classes, by column, the gap first if there is an order; ``stays`` and ``changes`` are
    by column in the order of drawing; ``columns`` are those of the table.
    """

    names: list[str]
    readers: list[Column]
    is_ordered: NDArray[np.bool_]
    order: list[int]
    stays: dict[int, Step]
    changes: dict[int, Step]
    clock: Clock | None
    plan: Plan

    def drawn(
        self, above: NDArray[np.uint8], n_rows: NDArray[np.int64], first: NDArray[Any], random: np.random.Generator
    ) -> Drawn:
        """Draw this many rows for each person, or row above, given their classes and first moments."""
        n_people, n_columns = len(n_rows), len(self.readers)
        starts, whose = np.cumsum(n_rows) - n_rows, np.repeat(np.arange(n_people), n_rows)
        classes = np.zeros((n_columns, len(whose)), np.uint8)
        stayed, ticks = np.zeros(classes.shape, np.bool_), np.zeros(len(whose), first.dtype)
        clock, last = first.copy(), np.zeros((n_columns, n_people), np.uint8)
        sums = np.zeros((n_columns, n_people), np.int64)
        is_redrawn, is_wrong = np.zeros((2, len(whose)), np.bool_)
        before = pd.DataFrame(index=range(n_people))
        written: list[pd.DataFrame] = []
        for place in range(int(n_rows.max(initial=0))):
            people = np.flatnonzero(n_rows > place)
            rows, places = starts[people] + place, np.full(len(people), place)
            means = _means(sums[:, people], places, self.is_ordered, self.clock is not None)
            features = [*above[:, people], *_position(places, n_rows[people]), *last[:, people], *means]
            if self.clock is not None:
                features.append(self.clock.classes(clock[people]) * np.uint8(place > 0))
            known, before = np.array(features, np.uint8), before.loc[people].reset_index(drop=True)
            own = self._row(known, last[:, people], clock[people], before, random, is_first=place == 0)
            for _ in range(MOST_ROUNDS):
                wrong = np.flatnonzero(own.is_wrong)
                if not len(wrong):
                    break
                is_redrawn[rows[wrong]] = True
                given = known[:, wrong], last[:, people[wrong]], clock[people[wrong]], before.take(wrong)
                own = own.replaced(wrong, self._row(*given, random, is_first=place == 0))
            classes[:, rows], stayed[:, rows], is_wrong[rows] = own.classes, own.stayed, own.is_wrong
            ticks[rows] = clock[people] = own.ticks
            begun = int(self.clock is not None and place == 0)
            last[begun:, people] = own.classes[begun:] + np.uint8(1)
            sums[:, people] += own.classes
            before = own.table.set_axis(people)
            if self.plan.rules:
                written.append(own.table.set_axis(rows))
        table = pd.concat(written).sort_index() if written else self._table(classes, stayed, ticks, random)
        shown, is_kept = np.vstack([above[:, whose], classes]), np.ones(len(whose), np.bool_)
        if self.clock is not None:
            shown = np.vstack([above[:, whose], classes[1:], self.clock.classes(ticks)[None]])
            is_kept = ticks <= self.clock.latest
        counts = {"redrawn": int(is_redrawn[is_kept].sum()), "left": int(is_wrong[is_kept].sum())}
        return Drawn(whose[is_kept], table[is_kept].reset_index(drop=True), shown[:, is_kept], counts)

    def _row(
        self,
        known: NDArray[np.uint8],
        last: NDArray[np.uint8],
        clock: NDArray[Any],
        before: pd.DataFrame,
        random: np.random.Generator,
        *,
        is_first: bool,
    ) -> Row:
        """Draw the next row of some people, given what is known of them, and the row before."""
        seen, ticks = [*known], clock
        classes, stayed = np.zeros(last.shape, np.uint8), np.zeros(last.shape, np.bool_)
        made: dict[str, pd.Series[Any]] = {}
        for j in self.order:
            is_gap = self.clock is not None and j == 0

            def draw(at: NDArray[np.intp], is_within: bool = False) -> Any:  # in this turn of the loop
                own, stays = classes[j, at], stayed[j, at]  # noqa: B023
                if not is_within:
                    features, stays = np.array(seen, np.uint8).take(at, axis=1), np.zeros(len(at), np.bool_)  # noqa: B023
                    if not is_first and j in self.stays:  # noqa: B023
                        stays = self.stays[j].draw(features, random) > 0  # noqa: B023
                        own = last[j, at] - np.uint8(1)  # noqa: B023
                    changed = np.flatnonzero(~stays)
                    own[changed] = self.changes[j].draw(features.take(changed, axis=1), random)  # noqa: B023
                    classes[j, at], stayed[j, at] = own, stays  # noqa: B023
                drawn = np.flatnonzero(~stays)
                if is_gap or not self.plan.rules:  # noqa: B023
                    return None
                values = self.readers[j].read(own[drawn], random)  # noqa: B023
                if not stays.any():
                    return values
                kept, places = before[self.names[j]].iloc[at[stays]], np.append(np.flatnonzero(stays), drawn)  # noqa: B023
                return pd.concat([kept, values]).iloc[np.argsort(places)].reset_index(drop=True)

            value: Any = None if is_gap and is_first else draw(np.arange(len(clock)))
            if is_gap and self.clock is not None:
                if not is_first:
                    ticks = clock + self.readers[j].read(classes[j], random).to_numpy(clock.dtype)
                seen += [classes[j] + np.uint8(not is_first), self.clock.classes(ticks)]
                if self.plan.rules:
                    made[str(self.clock.like.name)] = self.clock.moments(ticks)
                continue
            if self.plan.rules:
                made[self.names[j]] = value
                draw_last_again(self.plan.early, made, self.names[j], draw, self.plan)
            for name, total in self.plan.summed(made).items():
                place = self.names.index(name)
                classes[place] = np.where(total.notna(), self.readers[place].classes_of(total), classes[place])
            seen += [*([stayed[j]] if j in self.stays else []), classes[j]]
        table = pd.DataFrame(made, index=range(len(clock)))
        is_wrong = np.zeros(len(clock), np.bool_)
        if self.plan.rules:
            table, is_wrong = self.plan.complete(table, random)
        return Row(classes, stayed, ticks, table, is_wrong)

    def _table(
        self, classes: NDArray[np.uint8], stayed: NDArray[np.bool_], ticks: NDArray[Any], random: np.random.Generator
    ) -> pd.DataFrame:
        """Read all rows at once."""
        made = {
            name: self._values(j, classes[j], stayed[j], random)
            for j, name in enumerate(self.names)
            if j or self.clock is None
        }
        if self.clock is not None:
            made[str(self.clock.like.name)] = self.clock.moments(ticks)
        table = pd.DataFrame(made, index=range(len(ticks)))
        return self.plan.complete(table, random)[0] if self.plan.rules else table

    def _values(
        self, j: int, classes: NDArray[np.uint8], stayed: NDArray[np.bool_], random: np.random.Generator
    ) -> pd.Series[Any]:
        """Read the values of a column; those that stay are those of the row before."""
        drawn = np.flatnonzero(~stayed)
        values = self.readers[j].read(classes[drawn], random)
        return values.iloc[np.cumsum(~stayed) - 1].reset_index(drop=True)


class Drawn(NamedTuple):
    """Rows that were drawn: to what each belongs, and the classes that rows below see, their own and those above.

    ``counts`` are of the rows that were drawn again for a rule, and that violate one.
    """

    above: NDArray[np.intp]
    table: pd.DataFrame
    classes: NDArray[np.uint8]
    counts: Mapping[str, int]


class Prepared(NamedTuple):
    """The rows of a child in order, and what the table above has of them."""

    order: NDArray[np.intp]
    above: NDArray[np.intp]
    people: NDArray[np.intp]
    table: pd.DataFrame
    clock: Clock | None
    ticks: NDArray[Any]
    added: pd.DataFrame
    plan: Plan


class Sequences:
    """People and rows as learned from related tables; `sample` makes others.

    ``rules`` are by table. ``counts`` are of the rows of each table with rules, which the last sample drew again, and
    which violate one.
    """

    def __init__(
        self, tables: RelatedTables, cart: SmoothCart, *, seed: int, rules: Mapping[str, Sequence[Rule]] | None = None
    ) -> None:
        self._like, self._cart, rules = tables, cart, rules or {}
        self.counts: dict[str, Mapping[str, int]] = {}
        self._rows: dict[str, Rows] = {}
        prepared: dict[str, Prepared] = {}
        for place, name in enumerate(tables.from_above):
            of = tables.children[name].of
            random = np.random.default_rng([seed, place])
            prepared[name] = _prepared(tables, name, prepared.get(of), random, cart, rules.get(name, ()))
        people = tables.people.drop(columns=sorted(tables.identifiers)).reset_index(drop=True)
        self._plan = Plan.of(rules.get(PEOPLE, ()), people, cart.settings["min_atom"], None)
        people = self._with_figures(self._plan.learned(people), PEOPLE, prepared)
        classes = {PEOPLE: cart.learn(people, seed=seed)}
        for place, (name, own) in enumerate(prepared.items()):
            table = self._with_figures(own.table, name, prepared)
            above = classes[tables.children[name].of][:, own.above]
            self._rows[name], classes[name] = learn_rows(
                table, own.above, own.people, above, own.clock, own.ticks, cart, seed=seed + place, plan=own.plan
            )

    def _with_figures(self, table: pd.DataFrame, name: str, prepared: Mapping[str, Prepared]) -> pd.DataFrame:
        """Add the number of rows that belong to each row of a table, and their first moments."""
        for below in self._like.below(name):
            table = beside(table, prepared[below].added, name, below)
        return table

    def sample(self, n_people: int, *, seed: int) -> RelatedTables:
        """Make people, and the rows that belong to them."""
        random, like = np.random.default_rng(seed), self._like
        drawn = {PEOPLE: self._people(n_people, seed, random)}
        children = {}
        for name in like.from_above:
            child = like.children[name]
            upper = drawn[child.of]
            n_rows = upper.table[ROWS.format(name)].to_numpy(np.int64)
            first, clock = np.zeros(len(n_rows), np.int64), self._rows[name].clock
            if clock is not None:
                first = _completed(upper.table[FIRST.format(child.order, name)], random)
                if (since := _datetimes_above(like, name)) is not None:
                    first += clock.ticks_of(upper.table[since])
            own = drawn[name] = self._rows[name].drawn(upper.classes, n_rows, first, random)
            numbers = {child.key: own.above + 1}
            if child.own_key is not None:
                numbers[child.own_key] = np.arange(1, len(own.table) + 1)
            children[name] = replace(child, table=own.table.assign(**numbers)[list(child.table.columns)])
        numbers = dict.fromkeys(like.identifiers, np.arange(1, n_people + 1))
        made = drawn[PEOPLE].table.assign(**numbers)[list(like.people.columns)]
        plans = {PEOPLE: self._plan, **{name: own.plan for name, own in self._rows.items()}}
        self.counts = {name: drawn[name].counts for name, plan in plans.items() if plan.rules}
        return RelatedTables(made, {name: children[name] for name in like.children}, like.person)

    def _people(self, n_people: int, seed: int, random: np.random.Generator) -> Drawn:
        if not self._plan.rules:
            return Drawn(np.arange(0), *self._cart.draw(n_people, random), {})
        classes = []

        def draw(n_drawn: int, own_seed: int) -> pd.DataFrame:
            table, own = self._cart.draw(n_drawn, np.random.default_rng(own_seed), self._plan.early)
            classes.append(own)
            return table

        kept = keep_rules(draw, n_people, seed, self._plan)
        counts = {"redrawn": kept.redrawn, "left": kept.left}
        return Drawn(np.arange(0), kept.table, np.hstack(classes)[:, kept.drawn], counts)


def _prepared(
    tables: RelatedTables,
    name: str,
    upper: Prepared | None,
    random: np.random.Generator,
    cart: SmoothCart,
    rules: Sequence[Rule],
) -> Prepared:
    """Bring the rows of a child into order, and count them for each person, or for each row above in its order."""
    child = tables.children[name]
    order = tables.in_order(name, random.permutation(len(child.table)), None if upper is None else upper.order)
    above, n_above = tables.above[name], len(tables.people)
    if upper is not None:
        above, n_above = np.argsort(upper.order, kind="stable")[above], len(upper.order)
    above, people = above[order], tables.whose[name][order]
    n_rows = np.bincount(above, minlength=n_above)
    n_people = [len(np.unique(people[n_rows[above] > n])) for n in (0, 1)]
    _require_enough(name, n_rows, n_people, cart.settings["min_people"])
    table = child.table.drop(columns=child.numbers).iloc[order].reset_index(drop=True)
    if not table.shape[1]:
        raise InvalidTableError(
            f"Child {name!r} has no columns but {child.numbers}, which are made anew, so that only the number of its "
            f"rows is left. Expected another column; or make that number a column of {child.of!r}. Nothing was "
            "synthesized."
        )
    kinds = check_kinds(table, "smooth_cart")
    plan = Plan.of(rules, table, cart.settings["min_atom"], people, [str(child.order)])
    clock, ticks = None, np.zeros(len(table), np.int64)
    added: dict[str, Any] = {ROWS.format(name): n_rows}
    if child.order is not None:
        clock, ticks = Clock.of(table[child.order], kinds[child.order])
        first = pd.Series(ticks).astype("Int64" if ticks.dtype.kind == "i" else "Float64").groupby(above).min()
        first = first.reindex(range(n_above))
        if upper is not None and (since := _datetimes_above(tables, name)) is not None:
            # Since the row above, so that what follows from it does not come before it.
            first -= clock.ticks_of(tables.children[child.of].table[since].iloc[upper.order])
        added[FIRST.format(child.order, name)] = first.array
    learned = plan.learned(table[child.columns])
    return Prepared(order, above, people, learned, clock, ticks, pd.DataFrame(added), plan)


def _datetimes_above(tables: RelatedTables, name: str) -> str | None:
    """Return the order column of the rows above, if these and the rows are ordered by datetimes."""
    child = tables.children[name]
    if child.of == PEOPLE:
        return None
    upper = tables.children[child.of]
    pairs = [(own.table, own.order) for own in (child, upper) if own.order is not None]
    are_datetimes = [kind_of_dtype(table[order].dtype) == "datetime" for table, order in pairs]
    return upper.order if len(pairs) == 2 and all(are_datetimes) else None


def learn_rows(
    table: pd.DataFrame,
    whose: NDArray[np.intp],
    people: NDArray[np.intp],
    above: NDArray[np.uint8],
    clock: Clock | None,
    ticks: NDArray[Any],
    cart: SmoothCart,
    *,
    seed: int,
    plan: Plan,
) -> tuple[Rows, NDArray[np.uint8]]:
    """Learn the rows of a child table, in order, given the classes above; return what the rows below them see, too.

    ``whose`` are the people, or the rows, to which they belong, and ``people`` their people, both ascending.
    """
    n_rows = np.bincount(whose)[whose]
    place = np.arange(len(whose)) - np.searchsorted(whose, whose)
    is_later, previous = place > 0, np.maximum(np.arange(len(whose)) - 1, 0)
    parts = [(table, np.ones(len(whose), np.bool_))]
    if clock is not None:
        # If nobody has two rows, nobody gets any, and what is learned of gaps does not matter.
        has_gap = is_later if is_later.any() else np.ones(len(whose), np.bool_)
        gap = pd.DataFrame({GAP.format(clock.like.name): (ticks - ticks[previous])[has_gap]})
        parts.insert(0, (gap, has_gap))
    names: list[str] = []
    readers: list[Column] = []
    ordered: list[bool] = []
    shown: list[NDArray[np.uint8]] = []
    same: list[NDArray[np.bool_]] = []
    for part, having in parts:
        if not part.shape[1]:
            continue
        kinds = check_kinds(part, "smooth_cart")
        divided = cart.divide(part, kinds, seed=seed, person=people[having].tolist())
        for j, (name, kind) in enumerate(kinds.items()):
            dtype = part[name].dtype
            readers.append(Column(j, _NO_TREE, _NO_DONORS, None, divided.firsts[j], divided.margins[j], dtype))
            names.append(name)
            ordered.append(is_ordered(kind, dtype))
            own = np.zeros(len(whose), np.uint8)
            own[having] = divided.classes(j) + 1
            shown.append(own)
            values = np.full(len(whose), -2)
            values[having] = pd.factorize(divided.table[name])[0]
            same.append(is_later & (values == values[previous]) & (clock is None or len(same) > 0))
    classes, is_same = np.array(shown, np.uint8), np.array(same, np.bool_)
    order = _order_of(readers, names, clock, plan)
    learned = Rows(names, readers, np.array(ordered), order, {}, {}, clock, plan)
    sums = np.cumsum(np.maximum(classes, 1) - 1, axis=1, dtype=np.int64)
    sums = np.hstack([np.zeros((len(names), 1), np.int64), sums])
    before = sums[:, :-1] - sums[:, np.arange(len(whose)) - place]
    means = _means(before, place, learned.is_ordered, clock is not None)
    known = [*above, *_position(place, n_rows), *np.where(is_later, classes[:, previous], 0), *means]
    moments = None if clock is None else clock.classes(ticks)
    if moments is not None:
        known.append(np.where(is_later, moments[previous], 0))
    for j in learned.order:
        is_gap = clock is not None and j == 0
        rows = is_later if is_gap else np.ones(len(whose), np.bool_)
        if len(np.unique(people[is_same[j]])) >= cart.settings["min_people"]:
            learned.stays[j] = learn_step(known, is_same[j].astype(np.uint8), people, is_later, cart)
            rows = ~is_same[j]
        learned.changes[j] = learn_step(known, classes[j] - np.uint8(1), people, rows, cart)
        if is_gap and moments is not None:
            known += [classes[j], moments]
        else:
            known += [*([is_same[j]] if j in learned.stays else []), classes[j] - np.uint8(1)]
    if moments is None:
        return learned, np.vstack([above, classes - np.uint8(1)])
    return learned, np.vstack([above, classes[1:] - np.uint8(1), moments])


def learn_step(
    known: Sequence[NDArray[Any]],
    target: NDArray[np.uint8],
    whose: NDArray[np.intp],
    is_learned: NDArray[np.bool_],
    cart: SmoothCart,
) -> Step:
    """Grow a tree on some rows, whose people are ascending, with leaves of enough different people."""
    rows = np.flatnonzero(is_learned)
    codes, target, own = np.array(known, np.uint8).take(rows, axis=1), target[rows], whose[rows].astype(np.int64)
    n_classes, leaf = int(target.max(initial=0)) + 1, cart.people_of_leaf(len(np.unique(own)))
    min_gain = cart.least_gain(n_classes, int(codes.max(axis=1, initial=0).sum()))
    tree = grow_tree(codes, target, np.ones(len(rows)), float(leaf), min_gain, own)
    leaves = find_leaves(tree, codes)
    counts = np.bincount(leaves * n_classes + target, donor_weights(leaves, own), len(tree.feature) * n_classes)
    donors = np.asarray(counts.reshape(len(tree.feature), n_classes), np.float64)
    return Step(tree, softened(tree, donors, min_gain) if cart.settings["soft_leaves"] and len(rows) else donors)


def donor_weights(leaves: NDArray[np.int64], whose: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the weight of each row: 1, but less for the rows of a person who would have over a tenth of a leaf.

    In a leaf of fewer than ten people, everybody has the same.
    """
    pairs, own, n_own = np.unique(leaves * (whose.max(initial=0) + 1) + whose, return_inverse=True, return_counts=True)
    of_leaf = pairs // (whose.max(initial=0) + 1)
    weights = np.ones(len(pairs))
    for leaf in np.unique(of_leaf[n_own * MOST_PEOPLE_COUNTED > np.bincount(leaves)[of_leaf]]):
        people = np.flatnonzero(of_leaf == leaf)
        descending, most = np.sort(n_own[people])[::-1], min(MOST_PEOPLE_COUNTED, len(people))
        # The first people with more than the limit have the limit, which is a tenth of all that then counts.
        limits = [descending[i:].sum() / (most - i) for i in range(most)]
        limit = next(own for own, n_rows in zip(limits, descending, strict=False) if n_rows <= own)
        weights[people] = np.minimum(1.0, limit / n_own[people])
    return np.asarray(weights[own], np.float64)


_NOTHING = np.zeros(0, np.int64)
_NO_TREE = ClassTree(_NOTHING, _NOTHING, _NOTHING, np.zeros(0))
_NO_DONORS = np.zeros((0, 0))


def _order_of(readers: list[Column], names: list[str], clock: Clock | None, plan: Plan) -> list[int]:
    """Return the order of drawing: the gap, then columns of few classes first, but totals before their parts."""
    n_classes = {name: float(len(own.first_cells)) for name, own in zip(names, readers, strict=True)}
    sums = [rule.columns for rule in plan.rules if rule.kind == "sum" and rule.columns[-1] in plan.totals]
    for *parts, total in sums * len(sums):
        # The order is drawn first, and has no classes here.
        n_classes[total] = min(n_classes[total], *(n_classes.get(part, inf) - 0.01 for part in parts))
    order = np.argsort(list(n_classes.values()), kind="stable").tolist()
    return order if clock is None else [0, *(j for j in order if j)]


def _position(place: NDArray[Any], n_rows: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return the place of rows among those of their person, and how many are left, as far as it matters."""
    return np.minimum(place, MAX_CLASSES - 1), np.minimum(n_rows - place, MAX_CLASSES)


def _means(
    sums: NDArray[np.int64], place: NDArray[np.int64], is_ordered: NDArray[np.bool_], has_gap: bool
) -> NDArray[np.uint8]:
    """Return the mean classes of all rows before, of ordered columns; 0 if there are none. First rows have no gap."""
    n = np.repeat(place[None, :], len(sums), axis=0)
    if has_gap:
        n[0] -= 1
    means = np.where(n > 0, np.rint(STEPS_OF_MEANS * sums / np.maximum(n, 1)) + 1, 0)
    return means[is_ordered].astype(np.uint8)


def _completed(first: pd.Series[Any], random: np.random.Generator) -> NDArray[Any]:
    """Return first moments; people without one have that of another synthetic person, if they have rows."""
    known = first.dropna()
    if not len(known):
        return np.zeros(len(first), np.int64)
    numbers = known.to_numpy(np.float64 if types.is_float_dtype(first.dtype) else np.int64)
    found = numbers[random.integers(0, len(numbers), len(first))]
    found[first.notna().to_numpy()] = numbers
    return found


def _require_enough(name: str, n_rows: NDArray[np.int64], people: Sequence[int], min_people: int) -> None:
    """Refuse a child table from which nothing can be learned; ``people`` are those with rows, and with several."""
    (n_people, n_several), most, problem = people, int(n_rows.max(initial=0)), ""
    if n_people < min_people:
        problem = f"has rows of {n_people:,} people. Expected at least {min_people}. Leave the table out"
    elif 0 < n_several < min_people:
        problem = (
            f"has several rows of only {n_several:,} people, from which it cannot be learned how rows follow each "
            f"other. Expected at least {min_people}, or none. Keep the first row of each"
        )
    elif (n_all := int(n_rows.sum())) > MOST_ROWS_HERE:
        problem = (
            f"has {n_all:,} rows, and rows of people are learned in this process. Expected at most {MOST_ROWS_HERE:,}. "
            "Take a sample of people, or aggregate the rows"
        )
    elif most > MOST_ROWS_OF_PERSON:
        n_most = int((n_rows > MOST_ROWS_OF_PERSON).sum())
        problem = (
            f"has more than {MOST_ROWS_OF_PERSON:,} rows of a person or of a row above ({n_most:,} of them). Rows are "
            "drawn one after the other. Aggregate them, or leave these out"
        )
    if problem:
        raise InvalidTableError(f"Child {name!r} {problem}. Nothing was synthesized.")
