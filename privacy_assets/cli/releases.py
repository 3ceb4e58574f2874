"""The commands on releases: `compare`, `verify`, `report`, `release-card`, `register`, `keygen`, and `warm-up`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

EXIT_OVERDUE = 3
"""The release verifies, but its review is overdue; 2 is an error in the command line."""


def run_compare(chosen: argparse.Namespace) -> int:
    """Compare the candidate releases of a file, print the comparison, and store it for the file's assets."""
    import dagster as dg

    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.orchestration.component.comparing import compare_in_file, in_lines

    home = os.environ.get("DAGSTER_HOME") or (str(Path.cwd()) if Path("dagster.yaml").is_file() else None)
    stays = dg.DagsterInstance.from_config(home) if home else dg.DagsterInstance.ephemeral()
    try:
        with stays as instance, reported_to(print_compiling):
            options = compare_in_file(
                chosen.release,
                instance,
                name=chosen.name,
                standard=chosen.candidates is not None,
                limit_seconds=chosen.limit_seconds,
                partition_key=chosen.partition,
            )
    except dg.Failure as error:
        print(error.description)
        return 1
    print("\n".join(in_lines(options)))
    if chosen.picture is not None:
        chosen.picture.write_bytes(options.picture())
        print(f"\nMap: {chosen.picture}")
    print("\nA release with these settings is made and judged with new draws, and its manifest counts the comparison.")
    return 0


def run_verify(chosen: argparse.Namespace, max_bytes: int) -> int:
    """Verify a release, and print the result and the signing key."""
    from privacy_assets.engine.spark import SparkEngine
    from privacy_assets.errors import EngineError, InvalidSettingError
    from privacy_assets.release.object_store import ObjectStore
    from privacy_assets.release.verification import verify_release
    from privacy_assets.setting_checks import is_in_store

    directory = chosen.directory
    engine = None if chosen.engine is None else SparkEngine(chosen.engine, tag="privacy_assets verify")
    try:
        directory = ObjectStore.at(directory, "directory").name if is_in_store(directory) else directory
        found = verify_release(
            chosen.directory,
            public_keys=chosen.public_key,
            max_bytes=max_bytes,
            withdrawn=chosen.withdrawn,
            approvers=chosen.approvers,
            engine=engine,
        )
    except (EngineError, InvalidSettingError) as error:
        print(f"NOT verified{'' if is_in_store(directory) else f': {directory}'}\n  - {error}")
        return 1
    if found.withdrawn:
        print(f"WITHDRAWN: {directory} was {found.withdrawn}. Do not use it any more.")
        return 1
    if not found.verified:
        print(f"NOT verified: {directory}")
        for problem in found.problems:
            print(f"  - {problem}")
        return 1
    print(f"Verified: {directory} has {found.records} with fingerprint {found.fingerprint}.")
    if found.figures_withheld:
        print("Its files and its table match the manifest. The figures by which it was admitted are withheld, so the")
        print("manifest only states that they met their limits.")
    else:
        print("Its files, its table and the figures by which it was admitted match the manifest.")
    if found.trusted_key is not None:
        print(f"Signed with the key {found.signing_key_id} ({found.trusted_key}).")
    elif found.signing_key_id is not None:
        print(f"A signature made with the key {found.signing_key_id} was not checked: give --public-key FILE.")
    else:
        print("It is not signed, so verification does not show who wrote it.")
    for approval in found.approvals:
        print(f"Approved by {approval}" + ("" if chosen.approvers else " (not checked: give --approvers FILE)"))
    if found.is_overdue:
        print(f"REVIEW OVERDUE: it was to be reviewed by {found.review_by}. Ask its publisher.")
        return EXIT_OVERDUE
    return 0


def run_withdraw(chosen: argparse.Namespace) -> int:
    """Withdraw a release, and print what is the latest version now."""
    from privacy_assets.release.signing import SigningKey
    from privacy_assets.release.withdrawals import WITHDRAWN_FILE
    from privacy_assets.release.withdrawing import withdraw_release

    key = None if chosen.key is None else SigningKey(chosen.key)
    found = withdraw_release(chosen.directory, chosen.reason, key)
    said = "It was in the list before" if found.was_listed else f"Added to {WITHDRAWN_FILE}: give it to recipients"
    print(f"Withdrawn: {found.entry.release}, {found.entry.in_words}.\n{said}. Its files stay.")
    if found.same_records:
        print(f"The same records are in versions that are not withdrawn: {', '.join(found.same_records)}.")
    if found.undone:
        print(f"It stands, but `latest` or the register could not be written. Run the command again. {found.undone}")
        return 1
    print(f"The latest version is now {found.latest}." if found.latest else "There is no latest version any more.")
    return 0


def run_report(chosen: argparse.Namespace, max_bytes: int) -> int:
    """Regenerate the report of a verified release, into a new file outside the release."""
    from privacy_assets.cli.stages import write_new
    from privacy_assets.errors import InvalidSettingError, PrivacyAssetsError
    from privacy_assets.release.remade_report import remake_report

    directory = chosen.directory.resolve()
    output = Path(f"report-{directory.name}.html") if chosen.output is None else chosen.output
    try:
        made = remake_report(directory, public_keys=chosen.public_key, max_bytes=max_bytes)
        if output.resolve().is_relative_to(directory):
            raise InvalidSettingError(
                f"The output {str(output)!r} is in the release, which would then no longer verify. Name a file "
                "elsewhere: -o FILE. Nothing was made."
            )
        write_new(output, lambda path: path.write_text(made.page, encoding="utf-8"))
    except PrivacyAssetsError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{str(output)!r} cannot be written ({type(error).__name__}). Nothing was made.", file=sys.stderr)
        return 1
    found = made.verification
    if chosen.json:
        told = {
            "report": str(output),
            "records": found.n_records,
            "fingerprint": found.fingerprint,
            "signing_key": found.signing_key_id,
            "trusted_key": found.trusted_key,
            "is_release": False,
        }
        print(json.dumps(told, indent=1))
        return 0
    print(f"Report: {output}, regenerated from the manifest of {directory}, which verifies.")
    print("The released page stays unchanged, and the manifest covers only that page.")
    return 0


def run_release_card(chosen: argparse.Namespace, max_bytes: int) -> int:
    """Make the cards and attestations of a verified release anew, and print whether they are as released."""
    from privacy_assets.errors import PrivacyAssetsError
    from privacy_assets.release.formats.attestation import ATTESTATIONS
    from privacy_assets.release.remade_cards import UNSIGNED, remake_cards
    from privacy_assets.release.signing import SigningKey

    output = chosen.output or Path(f"card-{chosen.directory.resolve().name}")
    key = None if chosen.key is None else SigningKey(chosen.key)
    try:
        made = remake_cards(chosen.directory, output, key=key, public_keys=chosen.public_key, max_bytes=max_bytes)
    except PrivacyAssetsError as error:
        print(error, file=sys.stderr)
        return 1
    for name, is_same in made.items():
        print(f"{output / name}: {'as released' if is_same else 'the release has none, or another'}")
    if key is None:
        print(f"{' and '.join(ATTESTATIONS)} were not made: {UNSIGNED}.")
    return 0


def run_keygen(path: Path) -> int:
    """Make a pair of keys and print where they are, without showing the private key."""
    from privacy_assets.release.signing import generate_key_pair

    private, public, key_id = generate_key_pair(path)
    print(f"Key: {key_id}")
    print(f"  private  {private}  (0600; keep it where releases are made, and nowhere else)")
    print(f"  public   {public}  (give it to recipients, over a channel they trust)")
    return 0


def run_warm_up() -> int:
    """Compile all kernels, and print their number and place."""
    from privacy_assets.cli.warm_up import warm_up
    from privacy_assets.kernels.compilation_progress import reported_to

    with reported_to(print_compiling):
        found = warm_up()
    print(f"Compiled {found.n_functions} functions in {found.seconds:.0f} seconds.")
    print(f"Numba's cache: {found.directory}")
    return 0


def print_compiling(_: int, line: str) -> None:
    """Print what is being compiled."""
    print(f"  {line}", flush=True)


def run_register(directory: Path, public_keys: Sequence[Path], verify_within: int | None) -> int:
    """Write the register of a directory of releases only from their manifests, and print its path."""
    from privacy_assets.release.register import write_register

    try:
        path, n_releases = write_register(directory, public_keys=public_keys, verify_within=verify_within)
    except OSError as error:
        print(f"The register of {directory} could not be written ({type(error).__name__}). Nothing was changed.")
        return 1
    print(f"Register: {path} lists {n_releases:,} release{'' if n_releases == 1 else 's'}.")
    return 0
