"""Dagster: assets, checks, resources; bodies fetch, call one function of `tables` and attach metadata."""

from dagster_shared.libraries import DagsterLibraryRegistry

from privacy_assets import __version__

DagsterLibraryRegistry.register("privacy-assets", __version__, is_dagster_package=False)
