"""Conversion between frames and codes: coding, hierarchies, scales and masks of columns."""
