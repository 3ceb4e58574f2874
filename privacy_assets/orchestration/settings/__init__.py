"""What a release is configured with."""
