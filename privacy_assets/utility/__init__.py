"""What a release is worth: figures on one scale for synthetic and anonymized records."""
