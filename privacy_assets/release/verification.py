"""Verification of a release, without Dagster: in this process, one of its own, or the tasks of an engine."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import date
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privacy_assets.errors import EngineError, InvalidSettingError, InvalidTableError, ReleaseStoreError
from privacy_assets.release import clock
from privacy_assets.release.approvals import Approval, Approver, read_approvers
from privacy_assets.release.declaration import review_of
from privacy_assets.release.formats.attestation import attestation_problems
from privacy_assets.release.manifest import DamagedManifestError, parse_manifest, read_manifest_bytes
from privacy_assets.release.object_store import ObjectStore
from privacy_assets.release.received_checks import MAX_FILES, MAX_PROBLEMS, Received, approval_problems, as_answer
from privacy_assets.release.received_files import NoAnswerError, in_limited_process
from privacy_assets.release.signing import PublicKey, SignatureFound, find_signature, read_public_key
from privacy_assets.release.withdrawals import lists_above, read_withdrawals, withdrawal_of
from privacy_assets.setting_checks import is_in_store

if TYPE_CHECKING:
    from privacy_assets.engine.protocol import Engine

MAX_BYTES = 4 * 2**30


@dataclass(frozen=True)
class ReleaseVerification:
    """The result of `verify_release`; if ``problems`` is empty, the release matches its manifest.

    Attributes
    ----------
    directory : Path or str
        The verified release; of one in an object store the address, without credentials and parameters.
    fingerprint, n_records
        Values in the manifest; None if it cannot be read.
    problems : tuple of str
        All problems found.
    signing_key_id : str or None
        Key that the signature names; None without a readable signature.
    trusted_key : str or None
        Name of the trusted key that made the signature; None if the signature was not checked, or another key made it.
    figures_withheld : bool
        Whether the figures that were computed on people's records are left out, so that met limits are only stated.
    withdrawn : str
        When and why the release was withdrawn, by the list next to it or the given one; else empty.
    review_by : date or None
        The last day before the release is to be reviewed, if it was declared.
    approvals : tuple of str
        Who approved it, when and why; whether they did is known only with the file of the approvers.
    records : str
        How many records it has, in words; of related tables, how many people and rows of each other table.
    """

    directory: Path | str
    fingerprint: str | None
    n_records: int | None
    problems: tuple[str, ...]
    signing_key_id: str | None = None
    trusted_key: str | None = None
    figures_withheld: bool = False
    withdrawn: str = ""
    review_by: date | None = None
    approvals: tuple[str, ...] = ()
    records: str = ""

    @property
    def is_overdue(self) -> bool:
        """Whether the review is overdue today; the release can be verified nevertheless."""
        return self.review_by is not None and self.review_by < clock.today()

    @property
    def verified(self) -> bool:
        """Whether no problem was found, and the release was not withdrawn."""
        return not self.problems and not self.withdrawn

    def require(self, undone: str) -> None:
        """Raise InvalidTableError with what was found, and what was not done, unless the release is verified."""
        if not self.verified:
            why = "; ".join(self.problems) or f"it was {self.withdrawn}"
            raise InvalidTableError(f"The release in {str(self.directory)!r} does not verify: {why}. {undone}")


def verify_release(
    directory: Path | str,
    *,
    public_keys: Sequence[str | Path | PublicKey] = (),
    max_bytes: int | None = MAX_BYTES,
    withdrawn: str | Path | None = None,
    approvers: str | Path | None = None,
    engine: "Engine | None" = None,
) -> ReleaseVerification:
    """Check a received release against its manifest, without Dagster.

    The manifest must be complete and match its own digest. Every file must have its recorded SHA-256 and size, no file
    may be added, and the report must be among them. The Parquet file must have the recorded fingerprint and columns.
    The recorded verdicts must follow from the recorded figures and limits. Anyone who can write all of the files can
    invent figures. Only a signature shows who released them, and only if `public_keys` are given.

    Parameters
    ----------
    directory : Path or str
        A release directory, or ``latest``. Or the address of one in an object store, such as
        ``s3://bucket/prefix/people/anonymized/latest?region=eu-west-1``: it is downloaded into a temporary directory.
    public_keys : sequence of str or Path, optional
        PEM files of the keys that may have signed it. If there are any, a release is verified only if one of them
        signed it, and the manifest is not parsed before that is known.
    max_bytes : int or None
        Largest file that is read, and memory that reading may take, by default 4 GiB: the files are read in a process
        of its own (0.7 seconds), which may use one hour of processor time. None for a release of your own: it is read
        in this process, without limits.
    withdrawn : str or Path, optional
        A copy of the list of withdrawn releases, in addition to the list in the directory of the releases, if the
        release is in one.
    approvers : str or Path, optional
        YAML file of the approvers whom you trust. If it is given, a release is verified only if as many of them as its
        policy requires, and at least one, approved it.
    engine : Engine, optional
        Runs the checks as tasks, such as a SparkEngine, whose executors must see the release under the same absolute
        path. Each task is within ``max_bytes``; the problems are the same, except beyond that limit. What is verified
        is what the executors read: here, only the manifest, and names and sizes of files are compared with theirs.

    Returns
    -------
    ReleaseVerification
        All problems at once; the messages contain no cell.

    Raises
    ------
    InvalidSettingError
        If a public key cannot be used, the file of the approvers, or a given list of withdrawn releases does not
        exist, or a release in an object store is to be verified by an engine.
    EngineError
        If the engine fails, or its executors see another manifest there, or files of other names or sizes.
    """
    trusted = [key if isinstance(key, PublicKey) else read_public_key(key) for key in public_keys]
    if is_in_store(directory):
        if engine is not None:
            raise InvalidSettingError(
                "An engine verifies a release in a directory that its executors see, not one in an object store. "
                "Nothing was checked. Download it to such a directory, or leave out the engine."
            )
        asked_for = {"public_keys": trusted, "max_bytes": max_bytes, "withdrawn": withdrawn, "approvers": approvers}
        return _verified_in_store(ObjectStore.at(directory, "directory"), asked_for)
    directory = Path(directory)
    place = directory.absolute()
    if place.is_symlink():
        place = place.parent / place.readlink()  # `latest` can lead elsewhere in the meantime.
    people = None if approvers is None else read_approvers(Path(approvers))
    listed = [*lists_above(directory), *([] if withdrawn is None else [Path(withdrawn)])]
    if withdrawn is not None and not Path(withdrawn).is_file():
        raise InvalidSettingError(f"There is no list of withdrawn releases {str(withdrawn)!r}. Nothing was checked.")
    try:
        data = read_manifest_bytes(place)
    except DamagedManifestError as error:
        return ReleaseVerification(directory, None, None, (str(error),))
    signature = find_signature(place, data, trusted)
    if trusted and signature.problems:
        return ReleaseVerification(directory, None, None, signature.problems, signature.key_id)
    received = Received(place, data, signature, max_bytes)
    try:
        if engine is not None:
            found = _verified_on_engine(engine, received)
        elif max_bytes is None:
            found = _verified(received)
        else:
            answer = in_limited_process(f"{__name__}.verified_as_json", received, max_bytes)
            found = ReleaseVerification(**answer | {"problems": tuple(answer["problems"])})
    except NoAnswerError as error:
        found = ReleaseVerification(directory, None, None, (*signature.problems, str(error)), signature.key_id)
    found = replace(found, directory=directory)
    if found.problems:
        return found
    manifest = parse_manifest(data)  # It was read within the limits.
    unattested = attestation_problems(place, manifest, data, trusted)
    if unattested:
        return replace(found, problems=tuple(unattested))
    return _with_decisions(found, manifest, listed, trusted, people)


def _verified_in_store(store: ObjectStore, asked: Mapping[str, Any]) -> ReleaseVerification:
    try:
        with store.downloaded(asked["max_bytes"]) as directory:
            return replace(verify_release(directory, **asked), directory=store.name)
    except (ReleaseStoreError, OSError) as error:
        problem = str(error) if isinstance(error, ReleaseStoreError) else f"no download ({type(error).__name__})"
        return ReleaseVerification(store.name, None, None, (problem,))


def _with_decisions(
    found: ReleaseVerification,
    manifest: Mapping[str, Any],
    listed: Sequence[Path],
    trusted: Sequence[PublicKey],
    approvers: Sequence[Approver] | None,
) -> ReleaseVerification:
    """Add what people decided about a release that matches its manifest."""
    try:
        entries = [entry for path in listed for entry in read_withdrawals(path, trusted)]
    except InvalidSettingError as error:
        return replace(found, problems=(str(error),))
    entry = withdrawal_of(manifest["digest"], entries)
    said, problems = (
        "" if entry is None else entry.in_words,
        [] if approvers is None else approval_problems(manifest, approvers),
    )
    approved = tuple(Approval.of(each).in_words for each in manifest.get("approvals", ())) if not problems else ()
    review = review_of(manifest.get("declaration", {}))
    return replace(found, problems=tuple(problems), withdrawn=said, review_by=review, approvals=approved)


def verified_as_json(received: Received) -> dict[str, Any]:
    """Verify a release in a process of its own."""
    return asdict(_verified(received)) | {"directory": None}


def check_as_json(asked: tuple[Received, int]) -> dict[str, Any]:
    """Make one check of a release in a process of its own."""
    received, number = asked
    return received.answer(number)


def _verified(received: Received) -> ReleaseVerification:
    return _as_found(received, lambda numbers: map(received.answer, numbers))


def _verified_on_engine(engine: "Engine", received: Received) -> ReleaseVerification:
    from privacy_assets.engine.tasks import tasks_on

    try:
        seen = _seen(received.directory, received.data)
    except OSError as error:
        raise NoAnswerError(f"a file cannot be read ({type(error).__name__})") from None
    task = _CheckOnWorker(received.directory, seen, received.signature, received.max_bytes)
    with tasks_on(engine) as run:

        def ask(numbers: Sequence[int]) -> list[dict[str, Any]]:
            answers = run(task, numbers)
            if None in answers:
                raise EngineError(
                    f"The executors see other files under {str(received.directory)!r}, or none. The release was not "
                    "verified. Expected a directory that they and this process see under the same absolute path."
                )
            return answers

        return _as_found(received, ask)


def _as_found(received: Received, ask: Callable[[Sequence[int]], Iterable[Mapping[str, Any]]]) -> ReleaseVerification:
    """Combine the answers of the checks; those after a last one, and not asked for yet, are not made."""
    (first,) = ask([0])
    signature, n_checks = received.signature, first["n_checks"]
    problems, n_more = [*signature.problems], 0
    later = [] if first["is_last"] else [ask(range(1, n_checks - 1))]
    for answer in chain([first], *later):
        problems += [each for each in answer["of_files"] if each not in problems] + answer["problems"]
        n_more += answer["n_more"]
        if answer["is_last"]:
            break
    if not problems:
        # The cards are made of a manifest without problems.
        (answer,) = ask([n_checks - 1])
        problems = answer["of_files"] + answer["problems"]
    return ReleaseVerification(
        received.directory,
        problems=_shown(problems, n_more),
        signing_key_id=signature.key_id,
        trusted_key=signature.trusted_key,
        **first["head"],
    )


def _seen(directory: Path, data: bytes) -> str:
    """Return a digest of a manifest, and of the names, kinds and sizes of all files, as somebody sees them."""
    found: list[tuple[str, int, int]] = []
    places = [str(directory)]
    for place in places:
        with os.scandir(place) as opened:
            entries = sorted(islice(opened, MAX_FILES), key=lambda entry: entry.name)
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            is_directory = stat.S_ISDIR(status.st_mode)
            found.append((entry.name, stat.S_IFMT(status.st_mode), 0 if is_directory else status.st_size))
            if is_directory and len(places) == 1 and entry.name.endswith(".parquet"):
                places.append(entry.path)  # The parts of a table.
    return hashlib.sha256(data + repr(found).encode()).hexdigest()


@dataclass(frozen=True)
class _CheckOnWorker:
    """Makes a check where a worker sees the release; None if it sees other files, or none."""

    directory: Path
    seen: str
    signature: SignatureFound
    max_bytes: int | None

    def __call__(self, number: int) -> Any:
        try:
            data = read_manifest_bytes(self.directory)
            seen = _seen(self.directory, data)
        except (DamagedManifestError, OSError):
            return None
        if seen != self.seen:
            return None
        received = Received(self.directory, data, self.signature, self.max_bytes, is_alone=True)
        if self.max_bytes is None:
            return received.answer(number)
        try:
            return in_limited_process(f"{__name__}.check_as_json", (received, number), self.max_bytes)
        except NoAnswerError as error:
            return as_answer([str(error)], is_last=True)


def _shown(problems: Sequence[str], n_more: int) -> tuple[str, ...]:
    """Return the first problems, so that a person can read them."""
    more = max(len(problems) - MAX_PROBLEMS, 0) + n_more
    return (*problems[:MAX_PROBLEMS], f"{more} more problems were found") if more else tuple(problems)
