"""Disclosure by single columns: columns that are released unchanged, and rare values."""
