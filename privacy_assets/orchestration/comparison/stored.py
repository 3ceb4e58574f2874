"""The stored comparison of a release, and its advice after a refusal.

The comparison affects no decision: verdicts are made before it is read.
"""

from collections.abc import Mapping
from math import isnan
from typing import Any

from privacy_assets.orchestration.comparison.compare import digest_of_comparison
from privacy_assets.orchestration.comparison.result import KIND, ReleaseOptions
from privacy_assets.orchestration.private.storage import UNREADABLE, Storage
from privacy_assets.orchestration.settings.options import OPTIONS, Candidate
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.release.evidence import SPLIT_STAGES
from privacy_assets.storage.artifact import Artifact

MOST_NAMED = 3


def stages_compared(release: ReleaseSettings) -> tuple[str, ...]:
    """Return the stages whose records are compared: the source, or both sides of a given split."""
    return ("source",) if release.source is not None else SPLIT_STAGES


def stored_options(storage: Storage) -> tuple[ReleaseOptions, Artifact] | None:
    """Return the last stored comparison, regardless of its age; None if it cannot be read."""

    def read(stored: Artifact) -> tuple[ReleaseOptions, Artifact] | None:
        return (ReleaseOptions.from_artifact(stored), stored) if stored.kind == KIND else None

    return storage.read(storage.release.key(OPTIONS), read)


def fresh_options(storage: Storage) -> ReleaseOptions | None:
    """Return the comparison of the current table with the current settings; None if it does not exist."""
    release, found = storage.release, stored_options(storage)
    if release.options is None or found is None:
        return None
    options, artifact = found
    current = {stage: storage.recorded(stage).version for stage in stages_compared(release)}
    is_fresh = {stage: storage.keyed(own) for stage, own in artifact.made_of.items()} == current
    return (
        options if is_fresh and options.settings["digest"] == digest_of_comparison(release, release.options) else None
    )


def say_nearest(storage: Storage, side: str) -> str:
    """Return which settings near the current ones would be admitted, with their worth, or how to find out."""
    release = storage.release
    name = release.key(OPTIONS).to_user_string()
    if release.children is not None:
        return "Candidates of related tables cannot be compared yet; in a notebook, try one other setting at a time."
    if release.options is None:
        return (
            f"To see which settings would be admitted, and their worth, add `options` to the settings of "
            f"{release.name} and materialize {name}."
        )
    try:
        options = fresh_options(storage)
        if options is not None:
            return nearest_in(options, side, _as_candidate(release, side), name)
    except UNREADABLE:
        pass  # A damaged comparison must not keep a refusal from being recorded.
    return (
        "There is no comparison of this table with these settings. To see which would be admitted, materialize "
        f"{name}, or run `privacy_assets compare`."
    )


def nearest_in(options: ReleaseOptions, side: str, now: Candidate | None, name: str) -> str:
    """Name the proposed candidates of a side: those of the current method first, then by worth."""
    table = options.table[options.table["side"] == side]
    proposed = table[table["is_proposed"]]
    if proposed.empty:
        other = next((each for each in options.recommended if each != side), None)
        more = "" if other is None else f" For {other} records, {options.recommended[other]} would be admitted."
        return f"None of the {len(table)} {side} candidates that {name} compared would be admitted with a margin.{more}"
    kind, settings = (None, {}) if now is None else (now.kind, now.in_yaml())
    present = next(
        (row for row in table.to_dict("records") if _is_now(options.candidates[row["candidate"]], settings)), None
    )
    worth_now = float("nan") if present is None else float(present["worth_in_people"])
    of_kind = proposed["candidate"].map(lambda each: options.candidates[each]["kind"] == kind)
    in_order = proposed.assign(is_of_kind=of_kind).sort_values(
        ["is_of_kind", "utility"], ascending=[False, False], kind="stable"
    )
    rows = in_order.head(MOST_NAMED).to_dict("records")
    said = "; ".join(f"{row['candidate']}: {_worth(row['worth_in_people'])}" for row in rows)
    suffix = "" if isnan(worth_now) else f"; now {_people(worth_now)}"
    best = options.best(side)
    return f"Admitted in the comparison {name}: {said}{suffix}. Recommended: {best}."


def _as_candidate(release: ReleaseSettings, side: str) -> Candidate | None:
    if side == "anonymized":
        return Candidate(anonymized=release.anonymized, name="now")
    synthetic = release.synthetic
    if not isinstance(synthetic, Synthesis):
        return None
    made = Synthesis(method=synthetic.method, n_records=synthetic.n_records, settings=synthetic.settings)
    return Candidate(synthetic=made, generalize_synthetic=release.generalize_synthetic, name="now")


def _is_now(about: Mapping[str, Any], now: Mapping[str, Any]) -> bool:
    """Whether the settings are the current ones, apart from those that the policy adds."""
    return bool(now) and _without_added(about["settings"]) == _without_added(now)


def _without_added(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = {name: dict(value) for name, value in settings.items()}
    inner = plain.get("synthetic", {}).pop("settings", {})
    return plain | {"inner": {name: value for name, value in inner.items() if name != "min_atom"}}


def _worth(people: float) -> str:
    return "of unknown worth" if isnan(people) else f"worth about {_people(people)} people"


def _people(people: float) -> str:
    """Format a number of people with two significant digits, because it is an estimate."""
    return f"{max(int(float(f'{people:.1e}')), 0):,}"
