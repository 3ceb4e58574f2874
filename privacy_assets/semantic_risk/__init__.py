"""Semantic risk: what the concepts of a table reveal of its records."""
