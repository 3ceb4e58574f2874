"""What protection a table gives, measured from the outside."""
