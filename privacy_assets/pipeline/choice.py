"""The choice among candidates: which may be proposed, and which is recommended."""

from collections.abc import Mapping, Sequence
from math import inf, isnan, sqrt
from typing import Any

import numpy as np
import pandas as pd

from privacy_assets.display.numbers import number
from privacy_assets.release.metrics import LEAKAGE_DETECTED, METRICS
from privacy_assets.release.policy import OF_STRANGERS, Limit, is_decided_instead

MARGIN = 2.0
"""Standard deviations between a figure and its limit, and standard errors within which worth counts as equal."""
INTERVAL = 1.96
WORTH = ("utility", "utility_lower", "utility_upper", "worth_in_people", "n_originals")
WORTH_LIMITED = "utility_limited"
"""The lower end of the worth, which the limit applies to; missing without a limit."""
SEPARATOR = "\n"


def table_of(
    runs: pd.DataFrame, candidates: Mapping[str, Mapping[str, Any]], limits: Mapping[str, Sequence[Limit]], n_seeds: int
) -> pd.DataFrame:
    """Return one row per candidate, from one row for each time that it was made; see `ReleaseOptions`.

    ``runs`` have ``candidate``, ``problem`` (empty if it was made), ``failed``, ``seconds``, the figures and the worth;
    ``candidates`` their ``side`` and ``settings``, by name; ``limits`` are the blocking limits, by side.
    """
    figures = [name for name in runs.columns if name in METRICS and name != "utility"]
    spreads = {
        is_generalized: {
            metric: _common_spread(runs, candidates, metric, is_generalized) for metric in (*figures, WORTH_LIMITED)
        }
        for is_generalized in (False, True)
    }
    rows = []
    for name, about in candidates.items():
        own = runs[runs["candidate"] == name]
        made = own[own["problem"] == ""]
        n_needed = n_seeds if about["side"] == "synthetic" else 1
        reasons = list(dict.fromkeys(own["problem"][own["problem"] != ""]))
        is_whole = len(made) == n_needed
        if not is_whole and not reasons:
            reasons = [f"made {len(made)} of {n_needed} times in time" if len(made) else "not begun in time"]
        failed = [reason for each in made["failed"] for reason in filter(None, each.split(SEPARATOR))]
        reasons += _first_of_each(failed)
        is_admitted = is_whole and not failed
        spread = spreads[_is_generalized(about)]
        close = _too_close(made, limits[about["side"]], spread, about["side"]) if is_admitted else []
        rows.append(
            {
                "candidate": name,
                "side": about["side"],
                "is_proposed": is_admitted and not close,
                "is_admitted": is_admitted,
                **{column: _mean(made[column]) for column in (*WORTH, *figures)},
                "n_made": len(made),
                "seconds": float(own["seconds"].sum()),
                "reason": "; ".join([*reasons, *close]),
            }
        )
    table = pd.DataFrame(rows)
    empty = [metric for metric in figures if table[metric].isna().all()]
    return table.drop(columns=empty)


def risk_that_decides(runs: pd.DataFrame, limits: Sequence[Limit], risk: str) -> str:
    """Return the figure by which admitted records differ in risk: the one that decided instead in a run, if any did."""
    admitted: list[dict[Any, Any]] = runs[(runs["problem"] == "") & (runs["failed"] == "")].to_dict("records")
    instead = [limit for limit in limits if is_decided_instead(limit)]
    return next((each.metric for each in instead if any(each.is_asked(run) for run in admitted)), risk)


def best_of(table: pd.DataFrame, side: str, risk: str) -> str | None:
    """Return the least risky of the proposed candidates whose worth equals that of the best, within its error.

    If too few people can judge the worth of any, it is the first, because candidates that change less are first.
    """
    proposed = table[(table["side"] == side) & table["is_proposed"]]
    open_to_all = proposed[proposed["utility"].notna()]
    if open_to_all.empty:
        return None if proposed.empty else str(proposed["candidate"].iloc[0])
    top = open_to_all.iloc[int(open_to_all["utility"].argmax())]
    error = max((top["utility_upper"] - top["utility_lower"]) / (2 * INTERVAL), 0.0)
    as_good = open_to_all[open_to_all["utility"] >= top["utility"] - MARGIN * error]
    # The larger worth first; this order remains if risks are equal.
    in_order = as_good.sort_values("utility", ascending=False, kind="stable").sort_values(risk, kind="stable")
    return str(in_order["candidate"].iloc[0])


def _is_generalized(about: Mapping[str, Any]) -> bool:
    return "generalize_synthetic" in about["settings"]


def _common_spread(
    runs: pd.DataFrame, candidates: Mapping[str, Mapping[str, Any]], metric: str, is_generalized: bool
) -> float:
    """Return the pooled standard deviation between draws; each candidate has too few draws for its own.

    Scores of generalized records differ by 0.02 between draws, those of records that are not generalized by 0.002.
    """
    squares, freedom = 0.0, 0
    for name, about in candidates.items():
        if about["side"] != "synthetic" or _is_generalized(about) != is_generalized:
            continue
        values = runs[metric][(runs["candidate"] == name) & (runs["problem"] == "")].dropna()
        if len(values) > 1:
            squares += float(((values - values.mean()) ** 2).sum())
            freedom += len(values) - 1
    return sqrt(squares / freedom) if freedom else 0.0


def _too_close(made: pd.DataFrame, limits: Sequence[Limit], spreads: Mapping[str, float], side: str) -> list[str]:
    """Return the limits that a candidate meets by less than the margin, in words."""
    if side != "synthetic":
        return []  # The same records give the same classes again.
    close = []
    if (made[LEAKAGE_DETECTED] == 1).any():
        close.append("leakage was detected")
    means, deviations, at_margin = {}, {}, {}
    of_strangers = {other for pairs in OF_STRANGERS.values() for _, other in pairs}
    for metric in (each for each in METRICS if each in made.columns):
        column = WORTH_LIMITED if metric == "utility" else metric
        values = made[column].astype("float64")
        own = float(values.std(ddof=1)) if len(values) > 1 else 0.0
        # Counts vary more for candidates with larger counts.
        spread = own if METRICS[metric].high == inf else max(own, spreads[column])
        # The lower strangers score, the less can be decided by another figure.
        is_risk = METRICS[metric].direction in ("below", "at_most") and metric not in of_strangers
        means[metric], deviations[metric] = float(values.mean()), spread
        at_margin[metric] = means[metric] + MARGIN * spread * (1 if is_risk else -1)
    return close + [
        f"{limit.metric} is {number(means[limit.metric])}, within two standard deviations "
        f"({number(deviations[limit.metric])}) of its limit"
        for limit in limits
        if not METRICS[limit.metric].is_yes_no and limit.outcome(at_margin) == "not met"
    ]


def _first_of_each(failed: Sequence[str]) -> list[str]:
    """Return one reason per figure, from the first draw in which it failed."""
    by_figure: dict[str, str] = {}
    for reason in failed:
        by_figure.setdefault(reason.split(" ", 1)[0], reason)
    return list(by_figure.values())


def _mean(values: "pd.Series[Any]") -> float:
    present = pd.to_numeric(values, errors="coerce").to_numpy(dtype=np.float64)
    # A figure that is missing in one draw is unknown.
    return float("nan") if not len(present) or any(map(isnan, present)) else float(present.mean())
