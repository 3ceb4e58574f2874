"""The findings of a disclosure test: scores, and frames by criterion and by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from privacy_assets.columns.unknown_values import UnknownValues, blind_columns
from privacy_assets.disclosure.criteria import Criterion, Evidence
from privacy_assets.disclosure.examination import LEVEL, ExaminedAlone, is_answered
from privacy_assets.disclosure.people import OfPeople
from privacy_assets.disclosure.pooled_records import PooledRecords
from privacy_assets.disclosure.result import difference_of_means, difference_of_ratios, difference_of_shares


def criteria_frame(
    asked: Mapping[str, Criterion],
    scores: NDArray[np.float64],
    n_original: int,
    p: NDArray[np.float64],
    adjusted: NDArray[np.float64],
    copied: Sequence[int | None],
) -> pd.DataFrame:
    """Return a row for each criterion, given the scores of people, originals first, and its p values.

    ``copied`` is how many copied originals it would have detected.
    """
    rows = []
    for j, (name, criterion) in enumerate(asked.items()):
        own = scores[:, j]
        difference = difference_of_shares if criterion.share_of else difference_of_means
        excess = difference(own[:n_original], own[n_original:])
        share = None if (n := copied[j]) is None else n / n_original
        means = float(own[:n_original].mean()), float(own[n_original:].mean())
        said = name, criterion.direction, criterion.weight
        rows.append((*said, *means, *excess, float(p[j]), float(adjusted[j]), share))
    figures = ("original", "control", "excess", "low", "high", "p_value", "adjusted_p_value")
    names = ("criterion", "direction", "weight", *figures)
    return pd.DataFrame(rows, columns=[*names, "detectable_share"]).astype({"detectable_share": float})


def overall(
    criteria: pd.DataFrame,
    split_p_value: float,
    unknown_values: UnknownValues,
    counts: Mapping[str, int],
    alone: Sequence[ExaminedAlone] = (),
) -> dict[str, Any]:
    """Return the scores of the whole test and of each criterion.

    ``counts`` of ``n_original``, ``n_control``, ``n_synthetic`` and ``n_examined`` are among them.
    """
    least = float(criteria["adjusted_p_value"].min())
    shares = criteria["detectable_share"].dropna()
    on_all = float(shares.min()) if len(shares) else None
    on_each = [on_all, *(each.detectable_share for each in alone if each.is_asked)]
    known = [own for own in on_each if own is not None]
    share = max(known) if len(known) == len(on_each) else None
    n_original = counts["n_original"]
    n_detectable = 0 if share is None else len(shares)
    is_seen = is_answered(n_detectable, split_p_value) and not blind_columns(unknown_values)
    scores: dict[str, Any] = {
        "leakage_detected": True if least <= LEVEL else (False if is_seen else None),
        "adjusted_p_value": least,
        "detectable_share": share,
        "detectable_people": None if share is None else int(np.ceil(share * n_original - 1e-9)),
    }
    for row in criteria.to_dict("records"):
        name = row["criterion"]
        scores[f"{name}_excess"] = row["excess"]
        scores[f"{name}_interval"] = [row["low"], row["high"]]
        scores[f"{name}_adjusted_p_value"] = row["adjusted_p_value"]
        scores[f"{name}_detectable_share"] = None if np.isnan(row["detectable_share"]) else row["detectable_share"]
    return scores | {"split_p_value": split_p_value, **counts}


def inferred(records: PooledRecords, evidence: Evidence, of_people: OfPeople, names: Sequence[str]) -> dict[str, Any]:
    """Return how much more often these columns of originals are guessed from the nearest record."""
    columns = [records.columns.index(name) for name in names]
    right = of_people.sum(evidence["guessed"][columns].mean(axis=0))
    excess = difference_of_ratios(right, of_people.n_records, of_people.n_original)
    return {"inference_excess": excess.value, "inference_interval": [excess.low, excess.high]}


def by_column(
    records: PooledRecords, evidence: Evidence, of_people: OfPeople, names: Sequence[str], named: Sequence[int]
) -> pd.DataFrame:
    """Return how often claims and guesses of each column are right, and named ones agree, for both sides."""
    first, rows = of_people.n_original, []
    for name in names:
        j = records.columns.index(name)
        claims, right, guessed = (
            of_people.sum(own[j]) for own in (evidence["n_claims"], evidence["n_right"], evidence["guessed"])
        )
        attacks = [("claims", right, claims), ("nearest", guessed, of_people.n_records)]
        if j in named:
            agreed = of_people.sum(evidence["agreed"][named.index(j)])
            attacks.append(("agreement", agreed, of_people.n_records))
        for attacker, correct, n in attacks:
            sides = [(correct[side].sum(), n[side].sum()) for side in (slice(first), slice(first, None))]
            shares = [float(a / b) if b else np.nan for a, b in sides]
            excess = difference_of_ratios(correct, n, first)
            rows.append((name, attacker, int(sides[0][1]), int(sides[1][1]), *shares, *excess))
    columns = ["column", "attack", "n_original", "n_control", "original", "control", "excess", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def rare_by_column(records: PooledRecords, evidence: Evidence, of_people: OfPeople) -> pd.DataFrame:
    """Count the people with a rare value that some synthetic record has, by column."""
    has_one = np.array([of_people.sum(own) > 0 for own in evidence["is_rare"]])
    original, control = (half.sum(axis=1) for half in np.split(has_one, [of_people.n_original], axis=1))
    return pd.DataFrame({"column": list(records.columns), "rare_original": original, "rare_control": control})
