"""A declaration that has what every preset demands, for releases of tests that are about something else."""

from datetime import timedelta

from privacy_assets.release import clock

DECLARED = {
    "purpose": "Teaching statistics",
    "recipient": "Students of the course",
    "roles_decided_by": "A. Officer, data protection officer",
    "review_by": (clock.today() + timedelta(days=365)).isoformat(),
}
