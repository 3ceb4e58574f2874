"""The result of a comparison: a table, a map, and the settings to paste."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from privacy_assets.display.notebook import ShowsFigures, ShowsPictures
from privacy_assets.display.pictures import Drawn
from privacy_assets.drafting.yaml_text import entry_in_yaml
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.comparison.making import RISKS
from privacy_assets.orchestration.shown.options_pictures import COLORS, map_of_options
from privacy_assets.orchestration.shown.pictures import as_markdown
from privacy_assets.pipeline.choice import best_of
from privacy_assets.setting_checks import one_of
from privacy_assets.storage.artifact import Artifact

KIND = "ReleaseOptions"
SEED_BITS = 31


@dataclass(frozen=True, eq=False, repr=False)
class ReleaseOptions(ShowsFigures, ShowsPictures):
    """Candidate releases of one table with their risks and their worth; the result of `compare_releases`.

    Attributes
    ----------
    table : DataFrame
        One row per candidate, in the given order: ``candidate``, ``side``; ``is_proposed`` (admitted in every draw,
        without leakage, and every limited figure two standard deviations inside its limit); ``is_admitted`` (by the
        limits, in every draw); ``utility`` with its 95 % interval ``utility_lower`` and ``utility_upper``,
        ``worth_in_people`` of ``n_originals``; the limited figures and the risk, as means over draws; ``n_made``, how
        often it was made; ``seconds``; and ``reason``: why it cannot be made, fails or is not proposed. Names, counts
        and figures only.
    runs : DataFrame
        The same columns, with one row for each time that a candidate was made.
    candidates : dict
        By name: its ``side``, its ``kind`` (the method), and its settings as in YAML (``settings``).
    settings : dict
        The settings of the comparison, as JSON values: fingerprint of the table, digest of the settings, limits, the
        figure that is the risk of each side (``risks``: ``exposed_share`` where it decided instead of the score), and
        how many candidates were made here and not taken from an earlier comparison (``n_made_here``).
    """

    pictures = ("map",)
    main_figures = ("recommended", "n_candidates", "n_admitted")

    table: pd.DataFrame
    runs: pd.DataFrame
    candidates: dict[str, dict[str, Any]]
    settings: dict[str, Any]

    def _figures(self) -> Mapping[str, object]:
        return {
            "recommended": self.recommended,
            "n_candidates": len(self.table),
            "n_admitted": int(self.table["is_admitted"].sum()),
        }

    def best(self, side: str) -> str | None:
        """Return the recommended candidate of a side: the least risky of those whose worth equals that of the best.

        Parameters
        ----------
        side : {"synthetic", "anonymized"}
            Side of a release.

        Returns
        -------
        str or None
            Its name; None if no candidate can be proposed.

        Raises
        ------
        InvalidSettingError
            If there is no such side.
        """
        if side not in RISKS:
            raise InvalidSettingError(f"side is {side!r}. Expected {one_of(tuple(RISKS))}.")
        risk = self.settings["risks"][side]
        return best_of(self.table, side, risk) if risk in self.table.columns else None

    @property
    def recommended(self) -> dict[str, str]:
        """The recommended candidate of each side that has one."""
        found = {side: self.best(side) for side in RISKS}
        return {side: name for side, name in found.items() if name is not None}

    def yaml(self, candidate: str) -> str:
        """Return the settings of a candidate as YAML to paste, with new seeds.

        The figures by which a candidate was chosen do not admit it: the gate judges the records that these seeds make.

        Parameters
        ----------
        candidate : str
            Its name.

        Raises
        ------
        InvalidSettingError
            If there is no such candidate.
        """
        if candidate not in self.candidates:
            raise InvalidSettingError(f"There is no candidate {candidate!r}. There are {list(self.candidates)}.")
        about = self.candidates[candidate]
        settings = {name: dict(value) for name, value in about["settings"].items()}
        if about["side"] == "synthetic":
            share = self.settings["train_fraction"]
            if share is not None:
                settings = {"split": {"train_fraction": share, "seed": secrets.randbits(SEED_BITS)}} | settings
            settings["synthetic"]["seed"] = secrets.randbits(SEED_BITS)
        lines: list[str] = []
        for name, own in settings.items():
            lines += [f"{name}:", *(f"  {entry_in_yaml(*each)}" for each in own.items())] if own else [f"{name}: {{}}"]
        return "\n".join(lines) + "\n"

    def picture(self) -> bytes:
        """Return the map of risk against worth, one panel per side, as PNG."""
        return self.drawn().png(COLORS)

    def map(self) -> str:
        """Return the map as Markdown, with a sentence on what it shows."""
        return as_markdown(self.drawn().picture(COLORS))

    def _draw(self, what: str) -> Drawn:  # noqa: ARG002 - there is one picture
        risks = self.settings["risks"]
        limits = {side: self.settings["limits"][side].get(risk) for side, risk in risks.items()}
        return map_of_options(self.table, risks, limits, self.recommended)

    def to_artifact(self) -> Artifact:
        """Return everything as plain columns with a JSON header."""
        header = {"settings": self.settings, "candidates": self.candidates}
        return Artifact(KIND, header, {"table": self.table, "runs": self.runs})

    @classmethod
    def from_artifact(cls, artifact: Artifact) -> "ReleaseOptions":
        """Read the output of `to_artifact`."""
        header = artifact.header
        return cls(
            artifact.frames["table"], artifact.frames["runs"], dict(header["candidates"]), dict(header["settings"])
        )
