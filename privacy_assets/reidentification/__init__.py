"""Re-identification: the people that each released record can come from."""
