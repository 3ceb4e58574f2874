"""Figures of hand-written records that agree with their verdicts, as those of a release do."""

import copy
from dataclasses import replace

from privacy_assets.release.metrics import DISCLOSURE, LEAKAGE_DETECTED, METRICS, UTILITY


def agreeing(record):
    """Return the record with the figure of each verdict where a manifest has it."""
    figures = copy.deepcopy(dict(record.figures))
    for verdict in record.verdicts:
        if verdict.metric is not None and METRICS[verdict.metric].of(figures, record.policy.required) != verdict.value:
            place = METRICS[verdict.metric].reading.place
            figures[place] = {**figures.get(place, {}), **written(verdict.metric, verdict.value, place)}
    return replace(record, figures=figures)


def written(metric, value, place):
    """Return the entries of its place from which a figure is read."""
    if metric == LEAKAGE_DETECTED:
        return {LEAKAGE_DETECTED: None if value is None else bool(value), "detectable_share": 0.0}
    if metric == "copies_beyond_people":
        return {f"{metric}_interval_low": value}
    if place == UTILITY:
        return {f"{metric}_lower": value}
    if place == DISCLOSURE and metric.endswith("_excess"):
        return {metric.replace("excess", "interval"): None if value is None else [min(value, 0.0), value]}
    return {"k": value, "k_people": None} if metric == "smallest_class" else {metric: value}
