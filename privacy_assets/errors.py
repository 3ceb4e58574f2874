"""Errors whose messages may be shown to anyone.

Messages of these classes contain columns, counts, settings and limits, never a cell of a table. The guard of the
Dagster layer passes them on. The text of every other exception stays in a private file, as does the text of an error of
these or derived classes that code outside this package made or raised.
"""

from privacy_assets.own_code import MadeHere


class PrivacyAssetsError(MadeHere, Exception):
    """Base of all errors of this package; its message does not contain a cell of a table."""


class InvalidTableError(PrivacyAssetsError, ValueError):
    """A table cannot be used as it is: missing columns, conflicting types, no rows."""


class InvalidSettingError(PrivacyAssetsError, ValueError):
    """A parameter, role, precision, limit or policy does not exist or is out of range."""


class MaskError(InvalidTableError):
    """A description of masks is wrong: the true original of a released record is not among its candidates."""


class ConflictError(InvalidTableError):
    """Releases contradict each other: no original fits the records of all of them."""


class ConcurrentReleaseError(PrivacyAssetsError):
    """Another run is releasing the same table at this moment."""


class ContractError(InvalidTableError):
    """A table breaks its contract; ``failures`` counts the violations by column and check."""

    def __init__(self, message: str, failures: tuple[tuple[str, str, int], ...] = ()) -> None:
        super().__init__(message)
        self.failures = failures


class PrivacyBudgetError(PrivacyAssetsError):
    """A privacy budget is used up, or its ledger is missing, was changed or was set back."""


class EngineError(PrivacyAssetsError):
    """A cluster did not finish its tasks, or its workers do not have this package in the same version."""


class ReleaseStoreError(PrivacyAssetsError):
    """An object store did not take, keep or give a release; the message has its address without credentials."""
