"""Disclosure by single columns and rare values that are released unchanged, and by synthetic records."""
