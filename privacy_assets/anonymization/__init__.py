"""Mondrian and the lattice: generalize a table until every class satisfies the privacy models."""
