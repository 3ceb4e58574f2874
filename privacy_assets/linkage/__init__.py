"""Audits of linkage methods: what they claim, and what can be known of a release."""
