"""The command ``privacy_assets``."""

from privacy_assets.cli.main import main

__all__ = ["main"]
