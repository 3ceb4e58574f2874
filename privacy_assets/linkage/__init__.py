"""Audits of linkage methods: their claims, compared with the information in a release."""
