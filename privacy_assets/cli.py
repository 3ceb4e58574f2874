"""The command ``privacy_assets``: quickstart, comparison, verification, register, privacy budgets, keys, warm-up."""

import argparse
import io
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import dagster as dg

QUICKSTART_RELEASES = ("rand_hie_copula", "rand_hie_cart", "rand_hie_records")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Returns
    -------
    int
        Exit code: 0 if the command succeeded; 1 if a release does not verify, the quickstart failed, no key was
        made, nothing was compared, the register was not written, or a ledger of a privacy budget is missing or damaged.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A directory can have a name that the terminal cannot print.
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="privacy_assets", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("quickstart", help="run three releases of a real health table through the gate")
    verify = commands.add_parser("verify", help="check a received release against its manifest")
    verify.add_argument("directory", type=Path, help="release directory, with manifest.json in it")
    verify.add_argument(
        "--public-key",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="PEM file of a key that may have signed the release; repeat the option for more keys. The release is "
        "verified only if one of them signed it",
    )
    verify.add_argument(
        "--max-gib",
        type=_positive,
        default=4.0,
        metavar="GIB",
        help="largest file to read, and largest size of the table in memory (default: 4)",
    )
    compare = commands.add_parser("compare", help="compare candidate releases of a table by risk and worth")
    compare.add_argument("release", type=Path, help="YAML file of the release; its relative paths start here")
    compare.add_argument("--name", help="which release, if the file has several")
    compare.add_argument(
        "--candidates", choices=["standard"], help="compare the standard candidates instead of those of the file"
    )
    compare.add_argument("--limit-seconds", type=_seconds, metavar="N", help="begin nothing more after so many seconds")
    compare.add_argument("--partition", metavar="KEY", help="the partition to compare")
    compare.add_argument("--picture", type=Path, metavar="FILE", help="write the map as PNG to this file")
    budget = commands.add_parser("budget", help="show what was spent of the privacy budgets")
    budget.add_argument("directory", type=Path, nargs="?", default=Path(".dagster/private"), help="private directory")
    budget.add_argument("--population", metavar="NAME", help="only the budget of these people")
    budget.add_argument(
        "--delta", type=_share, default=1e-6, metavar="DELTA", help="delta of the total (default: 1e-6)"
    )
    register = commands.add_parser("register", help="write index.html, which lists every release below a directory")
    register.add_argument("directory", type=Path, help="directory of the releases")
    register.add_argument(
        "--public-key",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="PEM file of a key that may have signed the releases; repeat the option for more keys",
    )
    register.add_argument(
        "--verify", action="store_true", help="verify all files of every release; by default only their sizes"
    )
    keygen = commands.add_parser("keygen", help="make a private key that signs releases, and its public key")
    keygen.add_argument("path", type=Path, help="file of the private key, or a directory for signing_key.pem")
    commands.add_parser("warm-up", help="compile all kernels into Numba's cache, as when an image is built")
    chosen = parser.parse_args(arguments)
    if chosen.command == "quickstart":
        return run_quickstart()
    if chosen.command == "compare":
        return run_compare(chosen)
    if chosen.command == "budget":
        return run_budget(chosen.directory, chosen.population, chosen.delta)
    if chosen.command == "register":
        return run_register(chosen.directory, chosen.public_key, verify=chosen.verify)
    if chosen.command == "keygen":
        return run_keygen(chosen.path)
    if chosen.command == "warm-up":
        return run_warm_up()
    return run_verify(chosen.directory, chosen.public_key, int(chosen.max_gib * 2**30))


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2**20:
        raise argparse.ArgumentTypeError("expected a number of GiB above 0")
    return value


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 2**31:
        raise argparse.ArgumentTypeError("expected a number of seconds above 0")
    return value


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError("expected a number above 0 and below 1")
    return value


def run_budget(directory: Path, population: str | None, delta: float) -> int:
    """Print what was spent on each population, after checking the chains of their ledgers."""
    from privacy_assets.errors import InvalidSettingError, PrivacyBudgetError
    from privacy_assets.synthesis.private.accounting import epsilon_of
    from privacy_assets.synthesis.private.ledger import DIRECTORY, PrivacyLedger, populations

    names = populations(directory / DIRECTORY) if population is None else (population,)
    if not names or not all((directory / DIRECTORY / f"{name}.jsonl").is_file() for name in names):
        print(
            f"There is no ledger of a privacy budget {'' if population is None else f'of {population!r} '}in "
            f"{directory / DIRECTORY}."
        )
        return 1
    are_intact = True
    for name in names:
        try:
            entries = PrivacyLedger(directory / DIRECTORY, name).entries()
        except (InvalidSettingError, PrivacyBudgetError) as error:
            print(error)
            are_intact = False
            continue
        rho = sum(entry.rho for entry in entries)
        fits = f"{len(entries)} fit{'' if len(entries) == 1 else 's'}"
        print(f"{name}: {fits}, epsilon {epsilon_of(rho, delta):.3g} at delta {delta:g} (rho {rho:.4g})")
        for entry in entries:
            part = "" if entry.partition is None else f", partition {entry.partition}"
            print(f"  {entry.number}. {entry.at}  {entry.release}{part}: epsilon {entry.epsilon:g}, run {entry.run_id}")
    return 0 if are_intact else 1


def run_compare(chosen: argparse.Namespace) -> int:
    """Compare the candidate releases of a file, print them, and store what was found for its assets."""
    import dagster as dg

    from privacy_assets.errors import InvalidSettingError
    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.orchestration.component.comparing import compare_in_file, in_lines

    home = os.environ.get("DAGSTER_HOME") or (str(Path.cwd()) if Path("dagster.yaml").is_file() else None)
    stays = dg.DagsterInstance.from_config(home) if home else dg.DagsterInstance.ephemeral()
    try:
        with stays as instance, reported_to(_print_compiling):
            options = compare_in_file(
                chosen.release,
                instance,
                name=chosen.name,
                standard=chosen.candidates is not None,
                limit_seconds=chosen.limit_seconds,
                partition_key=chosen.partition,
            )
    except InvalidSettingError as error:
        print(error)
        return 1
    except dg.Failure as error:
        print(error.description)
        return 1
    print("\n".join(in_lines(options)))
    if chosen.picture is not None:
        chosen.picture.write_bytes(options.picture())
        print(f"\nMap: {chosen.picture}")
    print("\nA release that takes these settings is made and judged afresh, and its manifest counts the comparison.")
    return 0


def run_verify(directory: Path, public_keys: Sequence[Path], max_bytes: int) -> int:
    """Verify a release, and print the result and who signed it."""
    from privacy_assets.errors import InvalidSettingError
    from privacy_assets.release.verification import verify_release

    try:
        found = verify_release(directory, public_keys=public_keys, max_bytes=max_bytes)
    except InvalidSettingError as error:
        print(f"NOT verified: {directory}\n  - {error}")
        return 1
    if not found.verified:
        print(f"NOT verified: {directory}")
        for problem in found.problems:
            print(f"  - {problem}")
        return 1
    print(f"Verified: {directory} has {found.n_records:,} records with fingerprint {found.fingerprint}.")
    print("Its files, its table and the figures it was admitted for match the manifest.")
    if found.trusted_key is not None:
        print(f"Signed with the key {found.signing_key_id} ({found.trusted_key}).")
    elif found.signing_key_id is not None:
        print(f"A signature made with the key {found.signing_key_id} was not checked: give --public-key FILE.")
    else:
        print("It is not signed, so verification does not show who wrote it.")
    return 0


def run_register(directory: Path, public_keys: Sequence[Path], *, verify: bool) -> int:
    """Write the register of a directory of releases from their manifests alone, and print where it is."""
    from privacy_assets.errors import InvalidSettingError
    from privacy_assets.release.register import write_register

    try:
        path, n_releases = write_register(directory, public_keys=public_keys, verify=verify)
    except InvalidSettingError as error:
        print(error)
        return 1
    except OSError as error:
        print(f"The register of {directory} could not be written ({type(error).__name__}). Nothing was changed.")
        return 1
    print(f"Register: {path} lists {n_releases:,} release{'' if n_releases == 1 else 's'}.")
    return 0


def run_keygen(path: Path) -> int:
    """Make a pair of keys and print where they are, without showing the private key."""
    from privacy_assets.errors import InvalidSettingError
    from privacy_assets.release.signing import generate_key_pair

    try:
        private, public, key_id = generate_key_pair(path)
    except InvalidSettingError as error:
        print(error)
        return 1
    print(f"Key: {key_id}")
    print(f"  private  {private}  (0600; keep it where releases are made, and nowhere else)")
    print(f"  public   {public}  (give it to recipients, over a channel they trust)")
    return 0


def run_warm_up() -> int:
    """Compile all kernels, and print how many there were and where they are."""
    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.warm_up import warm_up

    with reported_to(_print_compiling):
        found = warm_up()
    print(f"Compiled {found.n_functions} functions in {found.seconds:.0f} seconds.")
    print(f"Numba's cache: {found.directory}")
    return 0


def _print_compiling(_: int, line: str) -> None:
    print(f"  {line}", flush=True)


def run_quickstart() -> int:
    """Run the releases of the quickstart, and print where they are or which limit refused them."""
    home = Path.cwd()
    if not (home / "dagster.yaml").is_file():
        print(f"There is no dagster.yaml in {home}. Run the quickstart from the root of a clone. Nothing was run.")
        return 1
    print("Importing Dagster and compiling the search takes some seconds the first time.", flush=True)
    import dagster as dg

    from privacy_assets.definitions import defs
    from privacy_assets.kernels.compilation_progress import reported_to
    from privacy_assets.orchestration.private.hidden_output import print_openly

    def print_compiling(_: int, line: str) -> None:
        print_openly(f"          {line}")

    with dg.DagsterInstance.from_config(str(home)) as instance, reported_to(print_compiling):
        finished = [_run_release(defs, instance, name) for name in QUICKSTART_RELEASES]
    print("\nTo look at the results, run `.venv/bin/dagster dev` and open the address it prints.")
    return 0 if all(finished) else 1


def _run_release(defs: "dg.Definitions", instance: "dg.DagsterInstance", name: str) -> bool:
    import dagster as dg

    @dg.success_hook
    def say_that_a_stage_is_done(context: dg.HookContext) -> None:
        print(f"  done    {context.op.name.removeprefix(f'{name}__').replace('_', ' ')}", flush=True)

    print(f"\n=== {name} ===", flush=True)
    job = defs.resolve_job_def(f"{name}_release").with_hooks({say_that_a_stage_is_done})
    # The instance keeps the output of Dagster, and the UI shows it.
    quiet = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
    result = job.execute_in_process(instance=instance, raise_on_error=False, run_config=quiet)
    evaluations = result.get_asset_check_evaluations()
    for evaluation in evaluations:
        if "score" in evaluation.metadata:
            warns = evaluation.severity == dg.AssetCheckSeverity.WARN and not evaluation.passed
            print(f"  {'passed' if evaluation.passed else 'warns ' if warns else 'FAILED'}  {evaluation.description}")
            if warns:
                print(f"          Advice: {evaluation.metadata['advice'].value}")
    released = [
        event.materialization.metadata["privacy_assets/release"].value
        for event in result.get_asset_materialization_events()
        if "privacy_assets/release" in event.materialization.metadata
    ]
    if released:
        print(f"  RELEASED: {released[0]}")
        print(f"  Verify it: .venv/bin/privacy_assets verify {released[0]}")
        return True
    error = dg.AssetCheckSeverity.ERROR
    refused = [evaluation for evaluation in evaluations if not evaluation.passed and evaluation.severity == error]
    for evaluation in refused:
        print(f"  REFUSED by {evaluation.check_name}: {evaluation.description}. Nothing was written.")
        if "advice" in evaluation.metadata:
            print(f"  Advice: {evaluation.metadata['advice'].value}")
    if not refused:
        print(f"  The run {result.run_id} failed before the gate; see its events in the UI.")
    return bool(refused)


if __name__ == "__main__":
    sys.exit(main())
