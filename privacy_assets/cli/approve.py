"""The command ``approve``: show a waiting release, ask once, and write the signed decision; or sign a waiver."""

import argparse
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacy_assets.errors import InvalidSettingError

if TYPE_CHECKING:
    from privacy_assets.release.waivers import Waiver


def run_approve(chosen: argparse.Namespace) -> int:
    """Let an approver decide on a waiting release; return 1 if nothing was decided."""
    from privacy_assets.release.approvals import APPROVERS_FILE, read_approvers, sign_approval
    from privacy_assets.release.gate import DECLARATION_CHECK
    from privacy_assets.release.manifest import DamagedManifestError, read_manifest
    from privacy_assets.release.received_checks import changed_files
    from privacy_assets.release.signing import SigningKey, load_signer
    from privacy_assets.release.waivers import sign_waiver
    from privacy_assets.storage.durable_files import locked, write_json

    path: Path = chosen.path
    try:
        signer = load_signer(SigningKey(chosen.key))
    except InvalidSettingError as error:
        raise InvalidSettingError(f"{error} Nothing was decided.") from None
    if path.is_file():
        if chosen.decision != "approve":
            raise InvalidSettingError("A waiver that is not signed is rejected. Nothing was signed.")
        waiver = sign_waiver(path, signer, lambda waiver: _says_yes(f"{_listed(waiver)}\nSign this waiver?"))
        said = "Nothing was signed."
        if waiver is not None:
            said = f"Signed: {path}, a waiver of the limit on {waiver.metric}, with the key {signer.key_id}."
        print(said)
        return int(waiver is None)
    problem = ""
    try:
        manifest = read_manifest(path)
        problem = "; ".join(changed_files(path, manifest))
        shown = _shown(path, manifest)
        if chosen.decision == "approve" and not problem:
            undeclared = [each for each in manifest["verdicts"] if each["name"] == DECLARATION_CHECK]
            problem = "; ".join(f"{each['reason']}: {each['advice']}" for each in undeclared if not each["passed"])
    except (DamagedManifestError, OSError) as error:
        problem = str(error)
    except (TypeError, ValueError):
        problem = "a recorded verdict is invalid"
    if problem:
        raise InvalidSettingError(
            f"{str(path)!r} is not what waits for approval: {problem.rstrip('.')}. Nothing was approved."
        )
    approval = sign_approval(
        manifest, read_approvers(path / APPROVERS_FILE), signer, chosen.decision, chosen.statement or ""
    )
    print("\n".join(shown))
    if not _says_yes(f"{chosen.decision.capitalize()} this release as {approval.name} ({approval.role})?"):
        print("Nothing was decided.")
        return 1
    digits = "".join(each for each in approval.at if each.isdigit())
    own = hashlib.sha256(approval.body).hexdigest()[:8]
    file = path / f"approval-{signer.key_id[:12]}-{digits}-{own}.json"
    try:
        with locked(path.parent):
            write_json(file, approval.to_json())
    except OSError as error:
        problem = type(error).__name__
    if problem:
        raise InvalidSettingError(f"{str(file)!r} could not be written ({problem}). Nothing was decided.")
    print(f"Written: {file}. If this is a copy, put the file to where the release waits; then materialize it again.")
    return 0


def _says_yes(question: str) -> bool:
    try:
        return input(f"{question} Type yes: ").strip() == "yes"
    except EOFError:
        return False


def _listed(waiver: "Waiver") -> str:
    return "\n".join(f"  {name}: {' '.join(str(own).split())}" for name, own in waiver.to_json().items())


def _shown(path: Path, manifest: Mapping[str, Any]) -> list[str]:
    from privacy_assets.release.declaration import DECLARED
    from privacy_assets.release.gate import WAITS, Verdict
    from privacy_assets.release.manifest import REPORT_FILE
    from privacy_assets.release.related_files import records_in_words

    decided = [Verdict.from_json(each) for each in manifest["verdicts"]]
    open_points = [each for each in decided if not each.passed and each.name not in WAITS]
    declared = manifest.get("declaration", {})
    missing = [name for name in DECLARED if name not in declared]
    waived = [each for each in decided if each.waived_by is not None]
    table = ", ".join(str(manifest[name]) for name in ("release", "stage", "partition") if manifest[name] is not None)
    return [
        f"{table}: {records_in_words(manifest)}, {manifest['fingerprint']}",
        f"Report: {path / REPORT_FILE}",
        *(f"  {'passed' if each.passed else 'failed'}  {each.reason}" for each in decided if each.metric is not None),
        *(f"  {words}: {declared[name]}" for name, words in DECLARED.items() if name in declared),
        *([f"  Not stated: {', '.join(missing)}"] if missing else []),
        f"Open points: {len(open_points) + len(waived)}",
        *(f"  {each.reason}" for each in (*open_points, *waived)),
    ]
