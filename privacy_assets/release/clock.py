"""The one clock by which releases are dated, and by which waivers, approvals and reviews run out; tests can set it."""

from datetime import UTC, date, datetime


def now() -> datetime:
    """Return the time in UTC."""
    return datetime.now(UTC)


def today() -> date:
    """Return the day in UTC."""
    return now().date()
