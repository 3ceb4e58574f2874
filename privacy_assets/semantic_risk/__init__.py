"""Semantic risk: what the concepts of a table reveal about its records."""
