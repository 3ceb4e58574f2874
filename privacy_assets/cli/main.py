"""The command ``privacy_assets``: quickstart, single stages, comparison, releases and their reports, budgets, keys."""

import argparse
import io
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from privacy_assets.cli.approve import run_approve
from privacy_assets.cli.budget import run_budget
from privacy_assets.cli.quickstart import run_quickstart
from privacy_assets.cli.releases import (
    run_compare,
    run_keygen,
    run_register,
    run_release_card,
    run_report,
    run_verify,
    run_warm_up,
    run_withdraw,
)
from privacy_assets.cli.stages import STAGES, add_stages, run_stage
from privacy_assets.cli.trial import run_try
from privacy_assets.errors import InvalidSettingError
from privacy_assets.setting_checks import is_in_store, local_path


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return 1 if something does not verify, breaks its contract, is damaged, or was not made."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        # The name of a directory may contain characters that the terminal cannot print.
        sys.stdout.reconfigure(errors="backslashreplace")
    parser = argparse.ArgumentParser(prog="privacy_assets", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    quickstart = commands.add_parser("quickstart", help="run three releases of a real health table through the gate")
    quickstart.add_argument("--related", action="store_true", help="one of its people and of their years instead")
    verify = commands.add_parser("verify", help="check a received release against its manifest")
    verify.add_argument(
        "directory", type=_place, help="release directory, which contains manifest.json, or its s3, gs or abfs address"
    )
    verify.add_argument(
        "--withdrawn", type=Path, metavar="FILE", help="copy of withdrawn.jsonl (default: that of the releases, if any)"
    )
    verify.add_argument(
        "--approvers",
        type=Path,
        metavar="FILE",
        help="YAML file of people whom you trust; the release is verified only if they approved it",
    )
    verify.add_argument(
        "--engine",
        metavar="ADDRESS",
        help="Spark Connect server, such as sc://host:15002, whose executors see the release under the same absolute "
        "path, and make the checks",
    )
    withdraw = commands.add_parser("withdraw", help="say that a release should no longer be used, and why")
    withdraw.add_argument("directory", type=Path, help="release directory, which contains manifest.json")
    withdraw.add_argument("--reason", required=True, help="at least three words, which recipients read")
    withdraw.add_argument("--key", type=Path, metavar="FILE", help="PEM file of a private key that signs the entry")
    approve = commands.add_parser("approve", help="decide on a release that waits, or sign a waiver")
    approve.add_argument("path", type=Path, help="directory where the release waits, or YAML file of a waiver")
    approve.add_argument("--key", type=Path, required=True, metavar="FILE", help="PEM file of your private key")
    approve.add_argument("--decision", choices=["approve", "reject"], default="approve", help="(default: approve)")
    approve.add_argument("--statement", help="why; needed for a release, and published with it")
    report = commands.add_parser("report", help="verify a release, and regenerate its report page")
    report.add_argument("directory", type=Path, help="release directory, which contains manifest.json")
    report.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="new file of the page (default: report-RELEASE.html here)"
    )
    report.add_argument("--json", action="store_true", help="print the outcome as JSON")
    card = commands.add_parser("release-card", help="verify a release, and make its files for other programs anew")
    card.add_argument("directory", type=Path, help="release directory, which contains manifest.json")
    card.add_argument(
        "-o", "--output", type=Path, metavar="DIRECTORY", help="new directory (default: card-RELEASE here)"
    )
    card.add_argument("--key", type=Path, metavar="FILE", help="PEM file of a private key that signs the attestations")
    for each in (verify, report, card):
        _add_verification(each)
    compare = commands.add_parser("compare", help="compare candidate releases of a table by risk and worth")
    compare.add_argument("release", type=Path, help="YAML file of the release; its relative paths start here")
    compare.add_argument("--name", help="name of the release, if the file has several")
    compare.add_argument(
        "--candidates", choices=["standard"], help="compare the standard candidates instead of those of the file"
    )
    compare.add_argument(
        "--limit-seconds",
        type=_number_below(2**31, "a number of seconds above 0"),
        metavar="N",
        help="begin no further candidate after N seconds",
    )
    compare.add_argument("--partition", metavar="KEY", help="the partition to compare")
    compare.add_argument("--picture", type=Path, metavar="FILE", help="write the map as PNG to this file")
    budget = commands.add_parser("budget", help="show the spent privacy budgets")
    budget.add_argument("directory", type=Path, nargs="?", default=Path(".dagster/private"), help="private directory")
    budget.add_argument("--population", metavar="NAME", help="show only the budget of this population")
    budget.add_argument(
        "--delta",
        type=_number_below(1, "a number above 0 and below 1"),
        default=1e-6,
        metavar="DELTA",
        help="delta of the total (default: 1e-6)",
    )
    register = commands.add_parser("register", help="write index.html, which lists all releases below a directory")
    register.add_argument("directory", type=Path, help="directory of the releases")
    _add_public_keys(register, "PEM file of a key that may have signed the releases; repeat the option for more keys")
    register.add_argument(
        "--verify", action="store_true", help="verify all files of every release; by default only check sizes"
    )
    _add_max_gib(register)
    keygen = commands.add_parser("keygen", help="make a private key for signing releases, and its public key")
    keygen.add_argument("path", type=Path, help="file of the private key, or a directory for signing_key.pem")
    add_stages(commands)
    commands.add_parser("warm-up", help="compile all kernels into Numba's cache, as when an image is built")
    chosen = parser.parse_args(arguments)
    try:
        for name, value in vars(chosen).items():
            for path in value if isinstance(value, list) else [value]:
                local_path(path if isinstance(path, Path) else "", name)
    except InvalidSettingError as error:
        print(error, file=sys.stderr)
        return 1
    stages = {**STAGES, "try": run_try}
    if chosen.command in stages:
        return run_stage(stages[chosen.command], chosen)
    max_bytes = int(chosen.max_gib * 2**30) if "max_gib" in chosen else 0
    runs: dict[str, Callable[[], int]] = {
        "quickstart": lambda: run_quickstart(related=chosen.related),
        "compare": lambda: run_compare(chosen),
        "budget": lambda: run_budget(chosen.directory, chosen.population, chosen.delta),
        "register": lambda: run_register(chosen.directory, chosen.public_key, max_bytes if chosen.verify else None),
        "keygen": lambda: run_keygen(chosen.path),
        "warm-up": run_warm_up,
        "report": lambda: run_report(chosen, max_bytes),
        "release-card": lambda: run_release_card(chosen, max_bytes),
        "verify": lambda: run_verify(chosen, max_bytes),
        "approve": lambda: run_approve(chosen),
        "withdraw": lambda: run_withdraw(chosen),
    }
    try:
        return runs[chosen.command]()
    except InvalidSettingError as error:
        print(error)
        return 1


def _place(text: str) -> Path | str:
    return text if is_in_store(text) else Path(text)


def _add_verification(command: argparse.ArgumentParser) -> None:
    """Add the options of a command that verifies a release."""
    _add_public_keys(
        command,
        "PEM file of a key that may have signed the release; repeat the option for more keys. The release is verified "
        "only if one of them signed it",
    )
    _add_max_gib(command)


def _add_public_keys(command: argparse.ArgumentParser, meaning: str) -> None:
    command.add_argument("--public-key", type=Path, action="append", default=[], metavar="FILE", help=meaning)


def _add_max_gib(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-gib",
        type=_number_below(2**20, "a number of GiB above 0"),
        default=4.0,
        metavar="GIB",
        help="largest file to read, and memory of the process that verifies a release, beyond that of its libraries "
        "(default: 4)",
    )


def _number_below(end: float, expected: str) -> Callable[[str], float]:
    """Return a reader of a number above 0 and below ``end``."""

    def read(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = 0.0
        if not 0 < value < end:
            raise argparse.ArgumentTypeError(f"expected {expected}")
        return value

    return read
