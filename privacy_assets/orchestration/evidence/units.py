"""Whose the rows of a release are, decided for its table, or for each of its related tables."""

from collections.abc import Mapping
from typing import Any

from privacy_assets.contract.contract import TableContract
from privacy_assets.contract.related import named
from privacy_assets.disclosure.declared_unit import (
    UNIT_KEY,
    UnitDecision,
    UnitExamination,
    decide_on_unit,
    published_unit,
)
from privacy_assets.orchestration.settings.release import ReleaseSettings


def examined_units(release: ReleaseSettings, recorded: Any) -> dict[str, UnitExamination | None]:
    """Read what a run recorded of each table; without children, the table has no name."""
    if release.related is None:
        return {"": UnitExamination.from_json(recorded)}
    own = recorded if isinstance(recorded, Mapping) else {}
    return {name: UnitExamination.from_json(own.get(name)) for name in release.related.tables}


def decide_on_units(
    release: ReleaseSettings, stage: str, examined: Mapping[str, UnitExamination | None]
) -> UnitDecision:
    """Decide by the current contracts on what was found in the tables of a stage."""
    decisions = {
        name: decide_on_unit(
            {stage: own},
            _contract_of(release, name),
            release.policy.use_case,
            "" if release.related is None else release.related.person_of(name),
        )
        for name, own in examined.items()
    }
    if release.related is None:
        return decisions[""]
    failed = {name: each for name, each in decisions.items() if not each.passed}
    shown = failed or decisions
    return UnitDecision(
        not failed,
        "; ".join(named(name, each.reason) for name, each in shown.items()),
        " ".join(dict.fromkeys(filter(None, (each.advice for each in shown.values())))),
        "; ".join(named(name, each.doubts) for name, each in decisions.items() if each.doubts),
    )


def published_units(release: ReleaseSettings, examined: Mapping[str, UnitExamination | None]) -> dict[str, Any]:
    """Return what a manifest says of it; columns of related tables are named with their table."""
    if release.related is None:
        return published_unit(examined[""], release.contract)
    findings = [
        {**each, "column": named(name, each["column"])}
        for name, own in examined.items()
        for each in published_unit(own, _contract_of(release, name))[UNIT_KEY]["findings"]
    ]
    return {UNIT_KEY: {"findings": findings}}


def _contract_of(release: ReleaseSettings, name: str) -> TableContract:
    return release.contract if release.related is None else release.related.tables[name]
