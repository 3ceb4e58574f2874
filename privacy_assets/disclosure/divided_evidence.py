"""Evidence on real records by an engine: each task compares them with some records, by the usual kernels.

Tasks receive integer codes and tables of integers by code: ranks and counts, but no values. Where values decide, whose
record is closest, tasks return the few that could be, and the decision is made here.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from privacy_assets.disclosure.codes import Codes
from privacy_assets.disclosure.column_set_evidence import columns_as_bits
from privacy_assets.disclosure.criteria import Evidence
from privacy_assets.disclosure.kernels.column_sets import (
    COLUMNS_OF_WORD,
    NOBODY,
    ONE,
    SEVERAL,
    count_claims,
    count_equal,
    find_claims,
    find_owners,
    give_matches,
    link,
    mark_singled_out,
    match_uniquely,
)
from privacy_assets.disclosure.kernels.nearest import (
    LARGEST_DISTANCE,
    find_closer,
    guess_values,
    nearest_distances,
    raise_closeness,
)
from privacy_assets.disclosure.nearest_evidence import (
    Closest,
    Distances,
    Guesses,
    closest_in,
    n_closest_of,
    relative_distance,
    row_blocks,
    rows_of_people,
)
from privacy_assets.disclosure.placed import Placed
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.scores import Attack, Workers
from privacy_assets.engine.protocol import Engine, gather_batches

NEAREST: Final = -1
"""Key of what is known of the nearest records; those of sets of columns are 0 and above."""
BYTES_OF_CHUNK: Final = 1 << 26
"""Of what is known of the sets of columns that one task puts together."""
ROWS_OF_TASK: Final = 1 << 20
"""Most records that a task holds at once."""
FIRST_ROWS: Final = 1 << 14
"""Synthetic records that are compared here, so that tasks return few that could be closer than these."""
KEYED: Final = pa.schema([("key", pa.int32()), ("arrays", pa.binary())])


@contextmanager
def placed_by(records: PooledRecords, engine: Engine | None) -> Iterator[PooledRecords]:
    """Yield the records; if they are more than one task's, the engine holds their codes, and examines them."""
    n_records = records.n_real + records.n_synthetic
    if engine is None or n_records <= (engine.rows_per_task or n_records):
        yield records
        return
    columns: dict[str, NDArray[Any]] = {
        f"code_{j}": np.concatenate(own) for j, own in enumerate(zip(*records.exact, strict=True))
    }
    columns["person"] = np.concatenate([records.people, np.full(records.n_synthetic, -1, np.int32)])
    columns["number"] = np.concatenate([np.arange(n, dtype=np.int32) for n in (records.n_real, records.n_synthetic)])
    with engine.place(columns) as batches:
        del columns
        yield replace(records, placed=Placed(engine, batches, tuple(range(len(records.columns)))))


def gather_divided(records: PooledRecords, attack: Attack, workers: Workers, whole: Evidence | None) -> Evidence:
    """Return the evidence of column sets and nearest records, by the engine that holds the records."""
    placed = records.placed
    assert placed is not None  # noqa: S101 - otherwise the work is not divided
    closest, distances = Closest(records, attack.rows), Distances(records, attack)
    workers.begin("near copies in the first records", len(attack.rows))
    closeness = closest_in(records, closest, [slice(0, min(FIRST_ROWS, records.n_synthetic))], workers)
    asked = _asked(records, attack, closest, distances, closeness, whole)
    workers.begin("comparison by the engine", 1)
    made = placed.engine.map_reduce(placed.batches, _Examine(asked), KEYED, "key", _PutTogether(asked), KEYED)
    found = {row["key"]: _unpacked(row["arrays"]) for row in placed.engine.collect(made).to_pylist()}
    nearest, of_sets = found.pop(NEAREST), [found[key] for key in sorted(found)]
    guesses = Guesses(*(nearest[name] for name in Guesses._fields))
    for rows in row_blocks(len(nearest["places"])):
        candidates = closest.compared(records.exact.synthetic, nearest["places"][rows])
        raise_closeness(nearest["whose"][rows], candidates, closest.grids, closeness)
    matches, linked = np.concatenate([own["matches"] for own in of_sets]), np.zeros(len(attack.rows), np.uint8)
    workers.run("linking", len(linked), link, matches, columns_as_bits(attack, len(records.columns)), linked)
    evidence = {
        "singled_out": np.bitwise_or.reduce([own["singled_out"] for own in of_sets]),
        "linked": linked,
        "claim_score": sum(own["score"] for own in of_sets) / ONE,
        "n_claims": sum(own["n_claims"] for own in of_sets),
        "n_right": sum(own["n_right"] for own in of_sets),
        "precision": np.concatenate([own["precision"] for own in of_sets]),
        "guessed": guesses.guessed,
        "closeness": closeness,
        "n_closest": n_closest_of(records, attack),
    }
    if whole is None:
        evidence["relative_distance"] = relative_distance(nearest["to_synthetic"], nearest["to_others"])
    return evidence


@dataclass(frozen=True, eq=False)
class _Asked:
    """The information that every task has; codes of examined records are of shape (n_columns, n_scored)."""

    columns: tuple[int, ...]
    sets: NDArray[np.int64]
    precision: NDArray[np.float64] | None
    scored: NDArray[np.int32]
    scored_bins: NDArray[np.int32]
    n_codes: NDArray[np.int64]
    n_bins: NDArray[np.int64]
    chunks: tuple[slice, ...]
    is_distinct: NDArray[np.uint8]
    replaced: NDArray[np.int64]
    instead: Codes
    bins: tuple[NDArray[Any] | None, ...]
    is_number: NDArray[np.bool_]
    is_known: NDArray[np.bool_]
    unit: int
    distance_tables: tuple[tuple[NDArray[Any] | None, ...], ...]
    distance_types: tuple[Any, ...]
    scored_distance: NDArray[Any]
    scored_among: NDArray[Any]
    people: NDArray[np.int32]
    is_distance_asked: bool
    closest: Closest
    closeness: NDArray[np.int32]


def _asked(
    records: PooledRecords,
    attack: Attack,
    closest: Closest,
    distances: Distances,
    closeness: NDArray[np.int32],
    whole: Evidence | None,
) -> _Asked:
    placed = records.placed
    assert placed is not None  # noqa: S101 - otherwise the work is not divided
    n_sets, scored = len(attack.sets), records.exact.real.take(attack.rows)
    n_at_once = max(BYTES_OF_CHUNK // scored.nbytes, 1)
    is_distinct = np.zeros(records.n_synthetic, np.bool_)
    is_distinct[records.distinct] = True
    real, synthetic = distances.codes
    among = distances.among_real
    return _Asked(
        columns=placed.columns,
        sets=attack.sets,
        precision=None if whole is None else whole["precision"],
        scored=scored,
        scored_bins=records.binned.real.take(attack.rows),
        n_codes=records.n_exact,
        n_bins=records.n_binned,
        chunks=tuple(slice(begin, min(begin + n_at_once, n_sets)) for begin in range(0, n_sets, n_at_once)),
        is_distinct=np.packbits(is_distinct),
        replaced=placed.replaced,
        instead=records.exact.synthetic.of_rows(placed.replaced),
        bins=records.bins,
        is_number=records.is_number,
        is_known=distances.is_known,
        unit=distances.unit,
        distance_tables=(synthetic.tables, among.tables),
        distance_types=(synthetic.dtype, among.dtype),
        scored_distance=real.take(attack.rows),
        scored_among=among.take(attack.rows),
        people=records.people[attack.rows],
        is_distance_asked=whole is None,
        closest=closest.without_values(),
        closeness=closeness,
    )


@dataclass(frozen=True)
class _Examine:
    """Compares the examined records with those of a task; makes one row of arrays for each key."""

    asked: _Asked

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for table in gather_batches(batches, ROWS_OF_TASK):
            columns = [table.column(f"code_{j}").to_numpy() for j in self.asked.columns]
            person, number = (table.column(name).to_numpy() for name in ("person", "number"))
            real, made = np.flatnonzero(person >= 0), np.flatnonzero(person < 0)
            records = Codes.of(columns)
            others = self._as_they_are(records.of_rows(made), number[made])
            for key, arrays in self._examined(records.of_rows(real), person[real], others, number[made]):
                yield pa.record_batch([pa.array([key], pa.int32()), pa.array([_packed(arrays)])], schema=KEYED)

    def _as_they_are(self, made: Codes, number: NDArray[np.int32]) -> Codes:
        asked = self.asked
        places = np.flatnonzero(np.isin(number, asked.replaced))
        return made.replaced(places, asked.instead, np.searchsorted(asked.replaced, number[places]))

    def _examined(
        self, real: Codes, people: NDArray[np.int32], made: Codes, number: NDArray[np.int32]
    ) -> Iterator[tuple[int, dict[str, NDArray[Any]]]]:
        asked = self.asked
        is_distinct = np.unpackbits(asked.is_distinct)[number].astype(np.bool_)
        distinct, numbers = made.of_rows(np.flatnonzero(is_distinct)), number[is_distinct]
        distinct_codes, distinct_bins = (codes.take(slice(None)) for codes in (distinct, distinct.by(asked.bins)))
        real_bins = real.by(asked.bins).take(slice(None))
        for key, chunk in enumerate(asked.chunks):
            sets, state = asked.sets[chunk], _nothing(asked, chunk)
            count_equal(0, len(sets), sets, asked.scored_bins, distinct_bins, asked.n_bins, state["n_equal"])
            # Groups without a record here may have one in another task.
            n_equal = np.maximum(state["n_equal"], 1)
            find_owners(
                0, len(sets), sets, asked.scored_bins, real_bins, asked.n_bins, people, n_equal, state["owners"]
            )
            exact = asked.scored, distinct_codes, asked.n_codes
            match_uniquely(0, len(sets), sets, *exact, 0, state["matches"])
            is_matched = state["matches"] >= 0
            state["matches"][is_matched] = numbers[state["matches"][is_matched]]
            find_claims(0, len(sets), sets, *exact, state["values"], state["agreed"])
            yield key, state
        yield NEAREST, self._nearest(real, people, made, number)

    def _nearest(
        self, real: Codes, people: NDArray[np.int32], made: Codes, number: NDArray[np.int32]
    ) -> dict[str, NDArray[Any]]:
        asked = self.asked
        n_columns, n_scored = asked.scored.shape
        made_distance, among = (
            codes.by(tables, dtype).take(slice(None))
            for codes, tables, dtype in zip((made, real), asked.distance_tables, asked.distance_types, strict=True)
        )
        guesses = Guesses.none(n_scored, n_columns)
        compared = made_distance, asked.is_number, asked.is_known, asked.unit, asked.scored_bins
        guess_values(0, n_scored, asked.scored_distance, *compared, made.by(asked.bins).take(slice(None)), *guesses)
        to_synthetic, to_others = guesses.nearest.copy(), np.full(n_scored, LARGEST_DISTANCE, np.int64)
        if asked.is_distance_asked:
            ranks = asked.is_number, asked.unit
            if not asked.is_known.all():
                to_synthetic[:] = LARGEST_DISTANCE
                own = rows_of_people(np.full(len(number), -1, np.int32), asked.people)
                nearest_distances(0, n_scored, asked.scored_distance, made_distance, *ranks, *own, to_synthetic)
            own = rows_of_people(people, asked.people)
            nearest_distances(0, n_scored, asked.scored_among, among, *ranks, *own, to_others)
        whose, places = find_closer(0, n_scored, asked.closest.compared(made, slice(None)), asked.closeness)
        distances = {"to_synthetic": to_synthetic, "to_others": to_others}
        return {**guesses._asdict(), **distances, "whose": whose, "places": number[places].astype(np.int64)}


@dataclass(frozen=True)
class _PutTogether:
    """Puts together what the tasks know of one key, and finishes the evidence of sets of columns."""

    asked: _Asked

    def __call__(self, table: pa.Table) -> pa.Table:
        key = table.column("key")[0].as_py()
        states = (_unpacked(arrays.as_py()) for arrays in table.column("arrays"))
        if key == NEAREST:
            found = next(states)
            for other in states:
                found = _nearer(found, other)
        else:
            own = _nothing(self.asked, self.asked.chunks[key])
            for other in states:
                own = _merged(own, other)
            found = _finished(self.asked, self.asked.chunks[key], own)
        return pa.table([pa.array([key], pa.int32()), pa.array([_packed(found)])], schema=KEYED)


def _nothing(asked: _Asked, chunk: slice) -> dict[str, NDArray[Any]]:
    """Return what is known of a chunk of sets before anything was compared, by set and group; see the kernels."""
    n_columns, n_scored = asked.scored.shape
    shape = len(asked.sets[chunk]), n_scored
    return {
        "n_equal": np.zeros(shape, np.uint8),
        "owners": np.full(shape, NOBODY, np.int32),
        "matches": np.full(shape, NOBODY, np.int32),
        "values": np.full((*shape, n_columns), NOBODY, np.int32),
        "agreed": np.zeros((*shape, -(-n_columns // COLUMNS_OF_WORD)), np.uint64),
    }


def _merged(own: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Put together what two tasks know of a chunk of sets."""
    found = {"n_equal": np.minimum(own["n_equal"] + other["n_equal"], 2).astype(np.uint8)}
    for name in ("owners", "matches"):
        mine, its = own[name], other[name]
        is_same = (mine == its) & (name == "owners")
        found[name] = np.where(its == NOBODY, mine, np.where((mine == NOBODY) | is_same, its, np.int32(SEVERAL)))
    is_new, has_none = (each["values"][..., :1] == NOBODY for each in (own, other))
    is_equal = np.zeros((*is_new.shape[:-1], own["agreed"].shape[-1] * COLUMNS_OF_WORD), np.bool_)
    is_equal[..., : own["values"].shape[-1]] = own["values"] == other["values"]
    bits = np.packbits(is_equal, axis=-1, bitorder="little").view("<u8").astype(np.uint64)
    both = np.where(has_none, own["agreed"], own["agreed"] & other["agreed"] & bits)
    found["values"] = np.where(is_new, other["values"], own["values"])
    found["agreed"] = np.where(is_new, other["agreed"], both)
    return found


def _finished(asked: _Asked, chunk: slice, own: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Return the evidence of a chunk of sets, of which everything is known."""
    sets, (n_columns, n_scored) = asked.sets[chunk], asked.scored.shape
    each = 0, len(sets), sets
    singled_out = np.zeros(n_scored, np.uint8)
    mark_singled_out(*each, asked.scored_bins, asked.n_bins, own["n_equal"], own["owners"], singled_out)
    exact, matches = (asked.scored, asked.n_codes), np.ascontiguousarray(own["matches"])
    give_matches(*each, *exact, matches)
    is_given = asked.precision is not None
    precision = np.zeros((len(sets), n_columns)) if asked.precision is None else asked.precision[chunk]
    score, n_claims = np.zeros(n_scored, np.int64), np.zeros((n_columns, n_scored), np.int32)
    n_right = np.zeros_like(n_claims)
    agreement = own["values"], own["agreed"]
    count_claims(*each, *exact, *agreement, precision, is_given, score, n_claims, n_right)
    found = {"singled_out": singled_out, "matches": matches, "precision": precision}
    return found | {"score": score, "n_claims": n_claims, "n_right": n_right}


def _nearer(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    """Put together the nearest records of two tasks."""
    least = np.minimum(one["least"], other["least"])
    found = {name: np.minimum(one[name], other[name]) for name in ("nearest", "least", "to_synthetic", "to_others")}
    for name in ("n_nearest", "n_right"):
        found[name] = sum(each[name] * (each["least"] == least) for each in (one, other))
    return found | {name: np.concatenate([one[name], other[name]]) for name in ("whose", "places")}


def _packed(arrays: dict[str, NDArray[Any]]) -> bytes:
    buffer = BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    sink = pa.BufferOutputStream()
    with pa.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(buffer.getbuffer())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _unpacked(arrays: bytes) -> dict[str, NDArray[Any]]:
    with pa.CompressedInputStream(pa.BufferReader(arrays), "zstd") as stream:
        return dict(np.load(BytesIO(stream.read())))
