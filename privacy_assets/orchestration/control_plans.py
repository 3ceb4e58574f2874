"""The control of a release, judged before it is used: whether it can decide on leakage, and what it could reveal."""

import math
from dataclasses import replace
from functools import cache, cached_property, partial
from typing import Any, Final, NamedTuple

import dagster as dg
import pandas as pd

from privacy_assets.disclosure.planned_control import Rehearsal, judge_by, rehearse
from privacy_assets.display.numbers import percent
from privacy_assets.errors import InvalidTableError, PrivacyAssetsError
from privacy_assets.mpucc.control import MIN_CONTROL_RECORDS
from privacy_assets.mpucc.control_size import (
    COPIED_SHARE,
    DEFAULT_POWER,
    TRAIN_FRACTIONS,
    ControlPlan,
    ControlSize,
    choose_split,
    people_in_original,
)
from privacy_assets.orchestration.private.recorded import CONTROL_PLAN
from privacy_assets.orchestration.settings.release import ReleaseSettings
from privacy_assets.orchestration.settings.synthetic import AUTO, Split, Synthesis
from privacy_assets.orchestration.shown.metadata import ADVICE, FOUND
from privacy_assets.pipeline.forecast import (
    Forecast,
    Planned,
    Strangers,
    forecast_anonymized,
    forecast_synthetic,
    scores_of_strangers_in,
)
from privacy_assets.release.leakage import TOO_LITTLE_SEEN
from privacy_assets.release.metrics import DISCLOSURE, LEAKAGE_DETECTED, MPUCC
from privacy_assets.storage.table import Table

NEAR: Final = 1.5
"""How far rehearsals of one table with few people differ."""
BY_TEST: Final = "disclosure test, rehearsed"
USE_MORE: Final = (
    "Use more records, or let the policy accept that copies of more people go unnoticed (required.detectable_share)."
)


class Foreseen(NamedTuple):
    """The reason why a split will prevent the policy from being met, and what to do."""

    found: str
    advice: str

    @property
    def metadata(self) -> dict[str, str]:
        """The finding and the advice, with the keys that pages show first."""
        return {FOUND: self.found, ADVICE: self.advice}


def plan_metadata(release: ReleaseSettings, source: Table) -> dict[str, Any]:
    """Describe the control that the split of a source will have, and the recommended split.

    If the policy will refuse that split, or probably the records made from it, the finding and the advice come first.
    A sentence for each side forecasts the decision (``forecast``, ``forecast_anonymized``). Empty if the release does
    neither. A source whose control cannot be judged may still be anonymized, so
    the reason is shown instead; the split refuses it.
    """
    other: dict[str, Any] = {}
    if release.anonymized is not None:
        other = {"forecast_anonymized": _forecast_anonymized(release, source).sentence}
    if "synthetic" not in release.sides or not isinstance(release.split, Split):
        return other
    if not release.assesses(DISCLOSURE):
        return _without_plan(release, _count_people(release, source), _not_planned(release)) | other
    try:
        rehearsal = _rehearsed(release, source)
        outlook = _Outlook(release, source, rehearsal)
        n_people, planned_fraction = outlook.n_people, outlook.fraction
        other["forecast"] = outlook.forecast(planned_fraction).sentence
    except PrivacyAssetsError as error:
        return other | {"control": f"The control of the split cannot be judged. {error}"}
    if rehearsal is None:
        return _without_plan(release, n_people, f"{n_people:,} {_unit(release)} are too few for any control.") | other
    plan = outlook.plan()
    unit, planned = _unit(release), plan.planned
    fraction, best = plan.recommended_fraction, plan.recommended
    foreseen = _refusal_foreseen(release, planned.n_original, planned.n_control)
    if foreseen is None:
        foreseen = _unseen_copies(release, planned, _advised(release, n_people, plan))
    said = _reveals(release, planned)
    if fraction is None or best is None:
        said += f" No split of {n_people:,} {unit} has a control that decides."
    elif fraction == planned_fraction:
        said += f" For this table and policy, train_fraction {fraction:g} is recommended, as configured."
    else:
        said += f" For this table and policy, train_fraction {_rounded(fraction):g} is recommended: "
        said += _reveals(release, best)
    described = {"planned": _described(planned), "recommended": None if best is None else _described(best)}
    return {
        **(foreseen.metadata if foreseen else {}),
        **other,
        "train_fraction": planned_fraction,
        "control": said,
        CONTROL_PLAN: dg.MetadataValue.json({**_how(release), **described, "recommended_train_fraction": fraction}),
    }


def forecast_sides(release: ReleaseSettings, source: Table) -> dict[str, Forecast]:
    """Forecast the decision on each side of a release whose people a split divides."""
    found = {}
    if "synthetic" in release.sides:
        outlook = _Outlook(release, source, _rehearsed(release, source))
        found["synthetic"] = outlook.forecast(outlook.fraction)._replace(train_fraction=outlook.fraction)
    if release.anonymized is not None:
        found["anonymized"] = _forecast_anonymized(release, source)
    return found


def _forecast_anonymized(release: ReleaseSettings, source: Table) -> Forecast:
    k = release.anonymized.k  # type: ignore[union-attr]
    return forecast_anonymized(release.policy, release.contract, _count_people(release, source), _unit(release), k)


def train_fraction_of(release: ReleaseSettings, source: Table) -> float:
    """Return the share of the people that the synthesizer may see: that of the settings, or the one chosen for them.

    ``auto`` is the largest of the tried shares with which a yes is forecast, so that the control reveals what the
    policy requires, else one half. It depends on the table and the settings alone.
    """
    split = release.split
    if not isinstance(split, Split) or split.train_fraction != AUTO:
        return float(getattr(split, "train_fraction", TRAIN_FRACTIONS[-1]))
    return _Outlook(release, source, _rehearsed(release, source)).fraction


class _Outlook:
    """The decision that is expected of a table and a rehearsal, by split."""

    def __init__(self, release: ReleaseSettings, source: Table, rehearsal: Rehearsal | None) -> None:
        self.release, self.source, self.rehearsal = release, source, rehearsal
        self.n_people = _count_people(release, source)
        # Scores of generalized records depend on their classes.
        has_score = release.assesses(MPUCC) and release.generalize_synthetic is None
        self.score = cache(partial(scores_of_strangers_in, release, source)) if has_score else lambda _: None
        self._sizes: dict[float, tuple[ControlSize, float]] = {}

    @cached_property
    def fraction(self) -> float:
        given = self.release.split.train_fraction  # type: ignore[union-attr]
        if given != AUTO:
            return float(given)
        least = max(_least_control(self.release), MIN_CONTROL_RECORDS)
        for tried in TRAIN_FRACTIONS:
            size = self.size(tried, self.release.policy.required.detectable_share or 1.0)
            if size.n_control >= least and _is_accepted(self.release, size) and self.forecast(tried).is_yes:
                return tried
        return TRAIN_FRACTIONS[-1]

    def plan(self) -> ControlPlan:
        share = self.release.policy.required.detectable_share or COPIED_SHARE
        return choose_split(self.size, self.fraction, share, _least_control(self.release))

    def size(self, fraction: float, most_share: float = 1.0) -> ControlSize:
        """Judge a split once; shares that no policy accepts take long, and are sought only if somebody asks."""
        size, sought = self._sizes.get(fraction, (None, 0.0))
        if size is None or (size.detectable_copies is None and most_share > sought):
            sides = _sides_of(self.n_people, fraction)
            size = ControlSize(*sides, None)
            if self.rehearsal is not None:
                size = judge_by(self.rehearsal, *sides, _n_synthetic(self.release), most_share)
            self._sizes[fraction] = size, most_share
        return size

    def forecast(self, fraction: float) -> Forecast:
        release, size = self.release, self.size(fraction)
        planned = Planned(self.n_people, _unit(release), size, self.rehearsal)
        found, true = self.score(fraction), self.score(TRAIN_FRACTIONS[-1])
        strangers = None if found is None or true is None else Strangers(found, true)
        return forecast_synthetic(release.policy, release.contract, planned, strangers)


def _sides_of(n_people: int, fraction: float) -> tuple[int, int]:
    n_original = people_in_original(n_people, fraction) if n_people > 1 else n_people
    return n_original, n_people - n_original


def judged_metadata(
    release: ReleaseSettings, original: pd.DataFrame, control: pd.DataFrame, plan: Any = None
) -> dict[str, Any]:
    """Describe the control of a split that was made, and refuse one with which the policy cannot decide.

    If the policy will probably refuse the records made from it, the finding and the advice come first. A split that the
    recorded ``plan`` of its source has with the current settings is not judged again.
    """
    if "synthetic" not in release.sides:
        return {}
    n_original, n_control = (_count_people(release, table) for table in (original, control))
    require_large_enough(release, n_original, n_control)
    if not (n_original and n_control):
        return {}
    if not release.assesses(DISCLOSURE):
        return {"control": _not_planned(release)}
    size = _as_planned(release, plan, n_original, n_control)
    if size is None:
        rehearsal = _rehearsed(release, pd.concat([original, control], ignore_index=True))
        if rehearsal is None:
            return {}
        size = judge_by(rehearsal, n_original, n_control, _n_synthetic(release))
    foreseen = _unseen_copies(release, size, TOO_LITTLE_SEEN)
    return {
        **(foreseen.metadata if foreseen else {}),
        "control": _reveals(release, size),
        "control_size": dg.MetadataValue.json({**_how(release), **_described(size)}),
    }


def require_large_enough(release: ReleaseSettings, n_original: int, n_control: int) -> None:
    """Refuse a split with which the policy cannot decide on leakage."""
    refused = _refusal_of_split(release, n_original, n_control)
    if refused is not None:
        raise InvalidTableError(f"{refused.found} {refused.advice} Nothing was stored.")


def _as_planned(release: ReleaseSettings, plan: Any, n_original: int, n_control: int) -> ControlSize | None:
    planned = plan["planned"] if plan and plan.items() >= _how(release).items() else {}
    is_planned = (planned.get("original"), planned.get("control")) == (n_original, n_control)
    return ControlSize(n_original, n_control, planned["detectable_copies"]) if is_planned else None


def _without_plan(release: ReleaseSettings, n_people: int, said: str) -> dict[str, Any]:
    """Return why there is no plan, after the finding and the advice if the split will be refused."""
    given = release.split.train_fraction  # type: ignore[union-attr]
    fraction = TRAIN_FRACTIONS[-1] if given == AUTO else float(given)
    foreseen = _refusal_foreseen(release, *_sides_of(n_people, fraction))
    return {**(foreseen.metadata if foreseen else {}), "control": said}


def _rehearsed(release: ReleaseSettings, table: Table) -> Rehearsal | None:
    """Rehearse the test; three times if copies are seen about as well as required, and return the one in the middle."""
    person = release.contract.person
    columns = [*release.contract.released_columns, *([] if person is None else [person])]
    settings, required = release.disclosure_settings, release.policy.required.detectable_share
    n_each = _count_people(release, table) // 2

    def rehearsed(seed: int) -> Rehearsal | None:
        return rehearse(
            table,
            replace(settings, seed=seed),
            columns=columns,
            person=person,
            has_synthetic_people=release.synthetic_person is not None,
        )

    def share_of(rehearsal: Rehearsal) -> float:
        most = min(NEAR * required, 1.0) if required else 1.0
        share = judge_by(rehearsal, n_each, n_each, _n_synthetic(release), most).detectable_share
        return math.inf if share is None else share

    first = rehearsed(settings.seed)
    if first is None or required is None or not required / NEAR <= share_of(first) <= required * NEAR:
        return first
    others = [rehearsed(settings.seed + place) for place in (1, 2)]
    return sorted([first, *(own for own in others if own is not None)], key=share_of)[1]


def _count_people(release: ReleaseSettings, table: Table) -> int:
    person = release.contract.person
    return len(table) if person is None else int(table[person].nunique())


def _how(release: ReleaseSettings) -> dict[str, Any]:
    asked = {**release.disclosure_settings.to_json(), "columns": list(release.contract.released_columns)}
    asked |= {"n_records": _n_synthetic(release), "synthetic_person": release.synthetic_person}
    return {"counted": _unit(release), "power": DEFAULT_POWER, "judged_by": BY_TEST, "settings": asked}


def _not_planned(release: ReleaseSettings) -> str:
    """Return why the control of a release without the disclosure test is not planned."""
    limited = [limit.metric for limit in release.policy.limits if limit.needs_control]
    why = f"limits only {', '.join(limited)}" if limited else "does not limit leakage"
    also = ", too" if limited else ""
    return (
        f"The control was not planned, because the policy {why}: limit leakage_detected{also}, and the split says how "
        "many people it needs."
    )


def _unit(release: ReleaseSettings) -> str:
    return "records" if release.contract.person is None else "people"


def _n_synthetic(release: ReleaseSettings) -> int | None:
    return release.synthetic.n_records if isinstance(release.synthetic, Synthesis) else None


def _least_control(release: ReleaseSettings) -> int:
    limits_leakage = any(limit.needs_control for limit in release.policy.limits)
    return release.policy.required.control_records if limits_leakage else 0


def _refusal_foreseen(release: ReleaseSettings, n_original: int, n_control: int) -> Foreseen | None:
    refused = _refusal_of_split(release, n_original, n_control)
    return None if refused is None else Foreseen(f"The split will be refused: {refused.found}", refused.advice)


def _refusal_of_split(release: ReleaseSettings, n_original: int, n_control: int) -> Foreseen | None:
    """Return why the policy cannot decide on leakage with this split, and what to do; None if it can."""
    limits = [limit for limit in release.policy.limits if limit.needs_control and limit.blocks]
    if not limits:
        return None
    least_control = release.policy.required.control_records
    least = MIN_CONTROL_RECORDS if any(limit.metric == LEAKAGE_DETECTED for limit in limits) else 1
    if n_control >= max(least_control, least) and n_original >= least:
        return None
    unit, n_people = _unit(release), n_original + n_control
    needed = max(least_control, least)
    advice = f"Divide at least {needed + least:,} {unit}, or let the policy only warn of leakage."
    if isinstance(release.split, Split) and n_people >= needed + least:
        fits = _rounded(1 - needed / n_people)
        if people_in_original(n_people, fits) >= least:
            advice = f"Set train_fraction to {fits:g}."
    return Foreseen(
        f"The split has {n_original:,} {unit} that the synthesizer may see and {n_control:,} in the control. The "
        f"policy limits leakage, which cannot be decided with fewer than {needed:,} in the control and {least:,} "
        "originals.",
        advice,
    )


def _unseen_copies(release: ReleaseSettings, size: ControlSize, advice: str) -> Foreseen | None:
    """Return how many people's copies would probably go unnoticed, if a blocking limit accepts fewer."""
    blocks = any(limit.metric == LEAKAGE_DETECTED and limit.blocks for limit in release.policy.limits)
    if not blocks or _is_accepted(release, size):
        return None
    unit, share, accepted = _unit(release), size.detectable_share, release.policy.required.detectable_share
    revealed = f"not even reveal copies of all {size.n_original:,} originals"
    if share is not None:
        revealed = (
            f"reveal copies of about {size.detectable_copies:,} or more of the {size.n_original:,} originals "
            f"({percent(share)}), but not of fewer"
        )
    demanded = "" if accepted is None else f"; the policy accepts {percent(accepted)}"
    return Foreseen(
        "The synthetic records will probably be refused, because leakage_detected will have no value: a control of "
        f"{size.n_control:,} {unit} will {revealed}{demanded}.",
        advice,
    )


def _advised(release: ReleaseSettings, n_people: int, plan: ControlPlan) -> str:
    """Name a split whose control will probably detect what the policy requires, or report that there is none."""
    fraction, best, unit = plan.recommended_fraction, plan.recommended, _unit(release)
    if fraction is None or best is None or best.detectable_share is None:
        return f"No split of {n_people:,} {unit} has a control that decides. {USE_MORE}"
    if _is_accepted(release, best):
        return f"Set train_fraction to {_rounded(fraction):g}, with which {percent(best.detectable_share)} is expected."
    return (
        f"No split of {n_people:,} {unit} is expected to suffice; train_fraction {_rounded(fraction):g} comes closest "
        f"({percent(best.detectable_share)}). {USE_MORE}"
    )


def _is_accepted(release: ReleaseSettings, size: ControlSize) -> bool:
    accepted = release.policy.required.detectable_share
    return size.detectable_share is not None and (accepted is None or size.detectable_share <= accepted)


def _rounded(fraction: float) -> float:
    # Downward, so that the control does not become smaller.
    return math.floor(fraction * 100) / 100


def _reveals(release: ReleaseSettings, size: ControlSize) -> str:
    unit, share = _unit(release), size.detectable_share
    if size.detectable_copies is None or share is None:
        return (
            f"A control of {size.n_control:,} {unit} would not reveal verbatim copies, even of all {size.n_original:,} "
            "originals."
        )
    said = (
        f"A control of {size.n_control:,} {unit} reveals verbatim copies of about {size.detectable_copies:,} or more "
        f"of the {size.n_original:,} originals ({percent(share)}) with a probability of {percent(DEFAULT_POWER)}, but "
        "usually not of fewer."
    )
    accepted = release.policy.required.detectable_share
    limits_leakage = any(each.metric == LEAKAGE_DETECTED for each in release.policy.limits)
    if accepted is not None and limits_leakage and not _is_accepted(release, size):
        said += f" The policy accepts {percent(accepted)}, so leakage_detected will probably have no value."
    return said


def _described(size: ControlSize) -> dict[str, Any]:
    return {
        "original": size.n_original,
        "control": size.n_control,
        "detectable_copies": size.detectable_copies,
        "detectable_share": size.detectable_share,
    }
