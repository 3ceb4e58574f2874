"""Audits of linkage methods: their claims, compared with what a release reveals."""
