"""The settings of a comparison of candidate releases, and the candidates themselves."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from privacy_assets.anonymization.settings import LDiversity
from privacy_assets.columns.hierarchy import Hierarchy
from privacy_assets.columns.safe_names import type_name
from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.settings.anonymized import AnonymizationSettings
from privacy_assets.orchestration.settings.synthetic import Synthesis
from privacy_assets.setting_checks import described, is_integer, is_number, require, setting

OPTIONS = "release_options"
STANDARD: Literal["standard"] = "standard"
FEWEST_SEEDS, MOST_SEEDS = 2, 100
MOST_CANDIDATES = 1_000
LONGEST_NAME = 80
_OF_COMPARISONS = 0x6F7074696F6E73
"""Makes the seeds of comparisons differ from all others that are derived from the same number."""


class ComparisonSeeds:
    """The seeds of a comparison, which no release uses: of its division, of what judges, and of each repetition."""

    def __init__(self, seed: int, n_seeds: int) -> None:
        state = np.random.SeedSequence([seed, _OF_COMPARISONS]).generate_state(2 + n_seeds, np.uint64)
        # 62 bits: fits in an int64, and is larger than any seed that is written by hand.
        self.split, self.judge, *self.repeats = (int(each >> np.uint64(2)) for each in state)


@described
@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One way to make a release, to compare with others: give `synthetic` or `anonymized`.

    Raises
    ------
    InvalidSettingError
        If both or neither are given, synthetic records have a seed (a comparison draws its own), or the name is not
        printable text of 1 to 80 characters.
    """

    name: str | None = setting(
        None, "Name of the candidate in tables; by default made from its settings.", "fine classes"
    )
    synthetic: Synthesis | None = setting(
        None,
        "How synthetic records are made; without a seed.",
        {"method": "cart", "settings": {"min_samples_leaf": 50}},
    )
    generalize_synthetic: AnonymizationSettings | None = setting(
        None, "How synthetic records are generalized before they are assessed and released.", {"k": 3}
    )
    anonymized: AnonymizationSettings | None = setting(
        None, "How the records of the source are anonymized, instead of synthetic records.", {"k": 5, "l_diversity": 2}
    )

    def __post_init__(self) -> None:
        kinds = {"synthetic": Synthesis, "generalize_synthetic": AnonymizationSettings}
        for name, kind in (kinds | {"anonymized": AnonymizationSettings}).items():
            given = getattr(self, name)
            if given is not None and not isinstance(given, kind):
                raise InvalidSettingError(f"`{name}` of a candidate is a {type_name(given)}; expected {kind.__name__}.")
        if (self.synthetic is None) == (self.anonymized is None):
            raise InvalidSettingError(
                "A candidate needs either `synthetic` or `anonymized`; this one has "
                f"{'neither' if self.synthetic is None else 'both'}."
            )
        if self.anonymized is not None and self.generalize_synthetic is not None:
            raise InvalidSettingError("A candidate has `generalize_synthetic`, but no `synthetic` to generalize.")
        if self.synthetic is not None and self.synthetic.seed != 0:
            raise InvalidSettingError(
                "A candidate has a seed for its synthetic records. A comparison draws its own seeds, which no release "
                "has: leave the seed out."
            )
        if self.synthetic is not None and self.synthetic.private is not None:
            raise InvalidSettingError(
                "A candidate has the method mst, whose fits spend privacy budget: comparing it would spend what the "
                "release needs. Compare other methods, and choose the settings of mst on public records."
            )
        if self.name is None:
            object.__setattr__(self, "name", " ".join(self._words())[:LONGEST_NAME])
        is_name = isinstance(self.name, str) and self.name.isprintable() and 0 < len(self.name) <= LONGEST_NAME
        require(is_name, "name of a candidate", self.name, f"printable text of 1 to {LONGEST_NAME} characters", "")

    @property
    def side(self) -> str:
        """The side of a release that the candidate is for."""
        return "anonymized" if self.synthetic is None else "synthetic"

    @property
    def kind(self) -> str:
        """The method without its settings, by which near candidates are found."""
        if self.anonymized is not None:
            return self.anonymized.method
        assert self.synthetic is not None  # noqa: S101 - checked when it was made
        return f"{_method(self.synthetic)}{'' if self.generalize_synthetic is None else ', generalized'}"

    def in_yaml(self) -> dict[str, Any]:
        """Return the settings as written in YAML, without a seed."""
        written: dict[str, Any] = {}
        if self.synthetic is not None:
            settings = dict(self.synthetic.settings)
            if not isinstance(self.synthetic.method, str):
                settings = dict(self.synthetic.for_manifest()["settings"])
            written["synthetic"] = {"method": _method(self.synthetic)} | ({"settings": settings} if settings else {})
            if self.synthetic.n_records is not None:
                written["synthetic"]["n_records"] = self.synthetic.n_records
        for name in ("generalize_synthetic", "anonymized"):
            if getattr(self, name) is not None:
                written[name] = written_anonymization(getattr(self, name))
        return written

    def _words(self) -> Iterator[str]:
        if self.synthetic is not None:
            yield _method(self.synthetic)
            yield from (_word(name, value) for name, value in self.in_yaml()["synthetic"].get("settings", {}).items())
            if self.synthetic.n_records is not None:
                yield f"{self.synthetic.n_records} records"
        settings = written_anonymization(self.anonymized or self.generalize_synthetic)
        yield from (_word(name, value) for name, value in settings.items())


_SHORT = {"min_samples_leaf": "leaf", "l_diversity": "l", "t_closeness": "t", "max_suppression": "suppress"}


def _word(name: str, value: Any) -> str:
    if name == "method":
        return str(value)
    if isinstance(value, Mapping) and {"least", "kind"} <= set(value):
        return f"{value['kind']} l={value['least']:g}"
    shown = f"{value:g}" if is_number(value) else "by column" if isinstance(value, Mapping) else str(value)
    return f"{_SHORT.get(name, name)}={shown}"


def _method(synthesis: Synthesis) -> str:
    if isinstance(synthesis.method, str):
        return synthesis.method
    kind = type(synthesis.method)
    return f"{kind.__module__}:{kind.__qualname__}"


def written_anonymization(settings: AnonymizationSettings | None) -> dict[str, Any]:
    """Return the settings that differ from the default, as in YAML; hierarchies by their rules or digests."""
    if settings is None:
        return {}
    written = {}
    for each in fields(settings):
        value = getattr(settings, each.name)
        if each.name not in ("seed", "pictured", "membership_control") and value != each.default:
            written[each.name] = _plain(value)
    return written


def _plain(value: Any) -> Any:
    if isinstance(value, LDiversity):
        own = asdict(value)
        return {name: own[name] for name in ("least", "kind", "c") if name != "c" or value.kind == "recursive"}
    if isinstance(value, Hierarchy):
        return value.described()
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value.item() if isinstance(value, np.generic) else value


@described
@dataclass(frozen=True, kw_only=True)
class OptionsSettings:
    """The candidate releases to compare, for the asset ``release_options`` (`compare_releases`).

    Raises
    ------
    InvalidSettingError
        If there is no candidate, two candidates have the same name, or a number is out of range.
    """

    candidates: Literal["standard"] | Sequence[Candidate] = setting(
        STANDARD,
        "standard (k, l and t where there are sensitive columns; synthesizers, also generalized), or a list of "
        "candidates.",
        STANDARD,
    )
    n_seeds: int = setting(
        2,
        "How often the synthetic records of each candidate are made, at least 2.",
        3,
        at_least=FEWEST_SEEDS,
        at_most=MOST_SEEDS,
    )
    seed: int = setting(0, "Number from which the comparison derives its seeds; no release uses those.", 1, at_least=0)
    limit_seconds: float | None = setting(
        None,
        "After this many seconds no further candidate is begun, and the results so far are shown; null: no limit.",
        300,
        above=0,
    )
    until: float | None = setting(
        None,
        "Least worth (utility) at which the first candidate of a side that can be proposed ends the comparison of that "
        "side; null: all candidates are compared.",
        0.8,
        above=0,
        below=1,
    )
    seeds: ComparisonSeeds = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        is_range = is_integer(self.n_seeds, FEWEST_SEEDS, MOST_SEEDS, plain=True)
        expected = f"an integer from {FEWEST_SEEDS} to {MOST_SEEDS}: one draw alone does not show how draws differ"
        require(is_range, "options.n_seeds", self.n_seeds, expected, "Nothing was compared.")
        is_seed = is_integer(self.seed, 0, plain=True)
        require(is_seed, "options.seed", self.seed, "an integer of at least 0", "Nothing was compared.")
        limit = self.limit_seconds
        is_limit = limit is None or (is_number(limit, 0, plain=True) and limit > 0)
        require(is_limit, "options.limit_seconds", limit, "a number above 0, or None", "Nothing was compared.")
        is_worth = self.until is None or (is_number(self.until, plain=True) and 0 < self.until < 1)
        require(is_worth, "options.until", self.until, "a number between 0 and 1, or None", "Nothing was compared.")
        self._check_candidates()
        object.__setattr__(self, "seeds", ComparisonSeeds(self.seed, self.n_seeds))

    def _check_candidates(self) -> None:
        given = self.candidates
        if isinstance(given, str):
            require(given == STANDARD, "options.candidates", given, f"{STANDARD!r} or a list of Candidate", "")
            return
        are_candidates = isinstance(given, Sequence) and all(isinstance(each, Candidate) for each in given)
        if not are_candidates or not 0 < len(given) <= MOST_CANDIDATES:
            raise InvalidSettingError(
                f"options.candidates is a {type_name(given)}. Expected {STANDARD!r}, or a list of 1 to "
                f"{MOST_CANDIDATES:,} Candidate. Nothing was compared."
            )
        object.__setattr__(self, "candidates", tuple(given))
        names = [each.name for each in given]
        repeated = sorted({str(name) for name in names if names.count(name) > 1})
        if repeated:
            raise InvalidSettingError(
                f"Several candidates are called {repeated}. Expected a different name for each. Nothing was compared."
            )

    def are_seeds_of(self, *used: object) -> bool:
        """Whether one of a release's seeds is a seed of this comparison."""
        return not {self.seeds.split, self.seeds.judge, *self.seeds.repeats}.isdisjoint(used)

    def for_digest(self) -> dict[str, Any]:
        """Return all settings that affect the result, as JSON values."""
        given = self.candidates
        candidates = given if isinstance(given, str) else [[each.name, each.in_yaml()] for each in given]
        return {"candidates": candidates, "n_seeds": self.n_seeds, "seed": self.seed, "until": self.until}
