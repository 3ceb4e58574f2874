"""Candidate releases of one table, each made, assessed and judged, and the choice among them."""
