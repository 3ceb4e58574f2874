"""The key that signs releases, as written in YAML."""

from pathlib import Path

from pydantic import Field, model_validator

from privacy_assets.errors import InvalidSettingError
from privacy_assets.orchestration.component.yaml_settings import YamlSettings
from privacy_assets.release.signing import SigningKey


class SigningYaml(YamlSettings):
    """The key that signs releases: give one of key_file and key_variable."""

    key_file: str | None = Field(
        None,
        description="PEM file with the private key, readable only by its owner (0600); a relative path starts at the "
        "root of the project.",
        examples=["/etc/privacy_assets/signing_key.pem"],
    )
    key_variable: str | None = Field(
        None,
        description="Name (and not a template that reads it) of the environment variable with the private key, as PEM "
        "or in base64.",
        examples=["RELEASE_SIGNING_KEY"],
    )
    key_id: str | None = Field(
        None,
        description="Identifier that privacy_assets keygen printed; any other key is refused.",
        examples=["70403ccee94b6155e4dcd4b2dfcd6a1cf6f6a3ab7f4ec4d0a2f9d4e4c3b5f1aa"],
    )

    @model_validator(mode="after")
    def _check(self) -> "SigningYaml":
        self.build(Path())
        return self

    def build(self, root: Path) -> SigningKey:
        """Return the settings; a relative path starts at `root`."""
        if (self.key_file is None) == (self.key_variable is None):
            raise InvalidSettingError("The settings of signing need one of key_file and key_variable.")
        # Checked as written, before it is joined to a path, because it may be the key itself.
        key = SigningKey(self.key_file, self.key_variable, self.key_id)
        if self.key_file is None:
            return key
        return SigningKey(root / self.key_file, None, self.key_id)
