"""Measures of the protection of a table, computed from the table alone."""
