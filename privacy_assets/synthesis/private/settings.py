"""The settings of differentially private records in a release."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Final

from privacy_assets.contract.contract import TableContract
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_integer, is_number, require
from privacy_assets.synthesis.private.accounting import LARGEST_EPSILON, check_delta
from privacy_assets.synthesis.private.domain import DEFAULT_BINS, PublicDomain
from privacy_assets.synthesis.private.mechanisms import require_opendp
from privacy_assets.synthesis.private.mst import Mst, check_delta_of, place_of

MST: Final = "mst"
UNDONE: Final = "No record was read, and nothing was spent."


@dataclass(frozen=True)
class MstSettings:
    """Settings of `Mst` and of its public domain, whose columns the contract of a release gives.

    ``given`` is a column whose relation to every other one is kept; ``bin_starts`` has the first value of each bin by
    column, instead of ``bins`` of equal width; ``declared_people`` is the number of people, if it is public.
    """

    epsilon: float = 1.0
    delta: float = 1e-6
    given: str | None = None
    bins: int = DEFAULT_BINS
    bin_starts: Mapping[str, Sequence[float | str]] = field(default_factory=dict)
    rows_per_person: int = 1
    declared_people: int | None = None

    def __post_init__(self) -> None:
        is_right = is_number(self.epsilon, 0, LARGEST_EPSILON) and self.epsilon > 0
        require(is_right, "epsilon", self.epsilon, f"a number above 0, at most {LARGEST_EPSILON:g}", UNDONE)
        check_delta(self.delta)
        check_delta_of(self.delta, self.declared_people)
        is_right = is_integer(self.rows_per_person, 1)
        require(is_right, "rows_per_person", self.rows_per_person, "a whole number, 1 or more", UNDONE)
        require(isinstance(self.bin_starts, Mapping), "bin_starts", self.bin_starts, "a mapping of columns", UNDONE)

    @classmethod
    def from_mapping(cls, settings: Mapping[str, Any]) -> MstSettings:
        """Read the settings of a release."""
        known = [each.name for each in fields(cls)]
        unknown = sorted(set(settings) - set(known))
        if unknown:
            raise InvalidSettingError(f"{MST!r} has no settings {unknown}. It has {known}. {UNDONE}")
        return cls(**settings)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as JSON values."""
        return asdict(self) | {"bin_starts": {name: list(starts) for name, starts in self.bin_starts.items()}}

    def domain(self, contract: TableContract) -> PublicDomain:
        """Return the public domain that a contract gives."""
        return PublicDomain.from_contract(contract, bins=self.bins, bin_starts=self.bin_starts)

    def check(self, contract: TableContract) -> None:
        """Refuse settings that are invalid for every fit or for the contract, without importing OpenDP."""
        place_of(self.domain(contract), self.given)
        if self.rows_per_person != 1 and contract.person is None:
            raise InvalidSettingError(
                f"rows_per_person is {self.rows_per_person}, but the contract does not name a person column, so each "
                f"record counts as a person. {UNDONE}"
            )
        require_opendp()

    def synthesizer(self, contract: TableContract) -> Mst:
        """Return the synthesizer for a contract."""
        return Mst(
            self.domain(contract),
            self.epsilon,
            self.delta,
            self.given,
            rows_per_person=self.rows_per_person,
            declared_people=self.declared_people,
        )
