"""Public data for the documentation and the quickstart."""
