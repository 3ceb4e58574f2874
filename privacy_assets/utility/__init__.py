"""The utility of a release: figures on one scale for synthetic and anonymized records."""
