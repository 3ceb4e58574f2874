"""Dagster: assets, checks, resources; bodies fetch, call one function of `tables` and attach metadata."""
