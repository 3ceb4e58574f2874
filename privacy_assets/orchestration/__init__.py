"""The Dagster layer: assets, checks and resources. Bodies load inputs, call one function and attach metadata."""

from dagster_shared.libraries import DagsterLibraryRegistry

from privacy_assets import __version__

DagsterLibraryRegistry.register("privacy-assets", __version__, is_dagster_package=False)
