"""The release: policy, verdict, files, signature, report and verification."""
