"""Re-identification: which people each released record can come from."""
