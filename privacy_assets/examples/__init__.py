"""Public data the documentation and the quickstart run on."""
