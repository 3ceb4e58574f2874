"""The settings of a release."""
