"""Metadata and pictures shown in Dagster, without cells."""
