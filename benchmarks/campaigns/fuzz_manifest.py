"""Mutate the manifests and signatures of releases, and count what verification makes of them.

    python -m benchmarks.campaigns.fuzz_manifest 2000

Four releases are written: synthetic, anonymized, with a waiver, and signed. Each mutation changes one place: by
structure (a value, a key, an entry of a list), or in the bytes. Two counts must be 0: tracebacks, and releases that
verify although the manifest (or the signature) says something else than was written. The signed release is checked
with its public key, and there not even a space may differ.

The second campaign is a forger who calculates the digest again after each change. On the signed release that never
verifies. On the others it does where nothing but a signature could show it; those places are listed.
"""

import base64
import copy
import json
import random
import re
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd

from privacy_assets.anonymity.verify import verify_anonymity
from privacy_assets.anonymization.anonymize import anonymize
from privacy_assets.release.files import ReleaseRecord, write_release
from privacy_assets.release.gate import Verdict
from privacy_assets.release.manifest import digest_of
from privacy_assets.release.policy import Limit, Policy
from privacy_assets.release.signing import SigningKey, generate_key_pair, load_signer
from privacy_assets.release.verification import verify_release
from privacy_assets.release.waivers import Waiver
from privacy_assets.storage.artifact import canonical_json
from privacy_assets.storage.fingerprint import fingerprint

FORGEABLE_ANYWHERE = (
    *(
        "release",
        "partition",
        "created_at",
        "run_id",
        "refusals_before",
        "options_compared",
        "versions",
        "settings",
        "columns[]",
    ),
    "columns_leaving_as_is[].leaves_as_is",
    *("policy.limits", "policy.required", "policy.known", "policy.use_case", "policy.changes", "verdicts", "waivers[]"),
)
"""What no table shows: a forger who calculates the digest again can change it, in a release that is not signed."""
OF_PEOPLE = tuple(f"figures.anonymity.{name}" for name in ("class_people", "k_people", "subject", "quasi_identifiers"))
"""People are not seen in the table, and of the quasi-identifiers the order is free."""
FORGEABLE = {
    "synthetic": (*FORGEABLE_ANYWHERE, "figures"),
    "anonymized": (*FORGEABLE_ANYWHERE, *OF_PEOPLE, "figures.statistics", "figures.model"),
    "waived": (*FORGEABLE_ANYWHERE, "figures"),
}
VALUES = (
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.0,
        -0.0,
        0.5,
        1e-320,
        1e308,
        10**18,
        10**400,
        "",
        "x",
        "latest",
        "../x",
        "/etc",
    ),
    *("\0", "\ud800", "n" * 5_000, "2026-01-01", "inf", [], {}, [[]], {"": None}, [None], {"kind": "exact"}),
)
RAW = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "1" + "0" * 5_000,
    "[" * 50_000,
    '{"a":' * 20_000,
    "// x",
    "0x10",
    "'x'",
)


@dataclass
class Counts:
    """What a campaign found."""

    n_mutations: int = 0
    n_without_meaning: int = 0
    n_refused: int = 0
    slowest_seconds: float = 0.0
    tracebacks: list[str] = field(default_factory=list)
    false_verified: list[str] = field(default_factory=list)
    forged: Counter[tuple[str, str]] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"{self.n_mutations:,} mutations: {self.n_refused:,} refused, {self.n_without_meaning:,} that change no "
            f'meaning, {len(self.tracebacks)} tracebacks, {len(self.false_verified)} false "Verified"; the slowest '
            f"verification took {self.slowest_seconds:.2f} s",
            *self.tracebacks[:3],
            *self.false_verified[:20],
        ]
        return "\n".join(lines)


@dataclass
class Release:
    """A release on disk, and what it says."""

    kind: str
    directory: Path
    public_keys: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
        self.original = {
            name: (self.directory / name).read_bytes()
            for name in ("manifest.json", "signature.json")
            if (self.directory / name).exists()
        }

    def restore(self) -> None:
        """Undo a mutation."""
        for name, data in self.original.items():
            (self.directory / name).write_bytes(data)


def make_releases(place: Path) -> list[Release]:
    """Write the four releases."""
    table = pd.DataFrame({"age": [31, 42], "plan": ["free", None]})
    limit = Limit("privacy_risk_score", 0.1)
    condition = Verdict("synthetic_is_as_recorded", True, "error", "the stored content is what the run recorded")
    held = Verdict(limit.check_name, True, "error", "0.05", "", limit.metric, 0.05, 0.1, "below")
    today = datetime.now(UTC).date()
    waiver = Waiver(
        *("w.yaml", "people", limit.metric, 0.1, 0.2, fingerprint(table), "Ada Lovelace", "Stays in an enclave."),
        today,
        today + timedelta(days=30),
    )
    synthetic = ReleaseRecord(
        *("people", "synthetic", None, "run", Policy((limit,)), (condition, held), {"split": {"fraction": 0.8}}),
        {"mpucc_assessment": {"privacy_risk_score": 0.05}},
        [{"column": "age", "role": "quasi_identifier"}, {"column": "plan", "role": "other"}],
        2,
    )
    waived = replace(
        synthetic,
        verdicts=(condition, replace(held, value=0.2, waived_by="w.yaml")),
        figures={"mpucc_assessment": {"privacy_risk_score": 0.2}},
        waivers=[waiver],
    )
    records, anonymized = _anonymized(synthetic)
    private, public, _ = generate_key_pair(place / "key.pem")
    signer = load_signer(SigningKey(private))
    demanding = replace(synthetic, policy=synthetic.policy.with_required(signature=True))

    def written(kind: str, record: ReleaseRecord, table: pd.DataFrame, **more: Any) -> Path:
        return write_release(place / kind, table, fingerprint(table), record, ("parquet", "csv"), **more)

    return [
        Release("synthetic", written("synthetic", synthetic, table)),
        Release("anonymized", written("anonymized", anonymized, records)),
        Release("waived", written("waived", waived, table)),
        Release("signed", written("signed", demanding, table, signer=signer), (public,)),
    ]


def _anonymized(like: ReleaseRecord) -> tuple[pd.DataFrame, ReleaseRecord]:
    source = pd.DataFrame(
        {"age": [20, 20, 21, 21, 30, 30, 31, 31], "illness": list("abcabcab"), "person": [1, 1, 2, 2, 3, 3, 4, 4]}
    )
    found = anonymize(source, quasi_identifiers=["age"], sensitive=["illness"], k=2, subject="person")
    people = source["person"].take(found.members["row"]).reset_index(drop=True)
    known = ["age", "age_low", "age_high"]
    report = verify_anonymity(found.table.assign(person=people), known, ["illness"], subject="person")
    limits = (Limit("smallest_class", 2), Limit("share_in_homogeneous_classes", 0.99))
    values = (report.k_people, report.share_in_homogeneous_classes)
    decided = [
        Verdict(limit.check_name, True, limit.severity, "held", "", limit.metric, value, limit.value, limit.direction)
        for limit, value in zip(limits, values, strict=True)
    ]
    record = replace(
        like,
        stage="anonymized",
        policy=Policy(limits),
        verdicts=(like.verdicts[0], *decided),
        settings={"anonymized": found.settings},
        figures={"anonymity": report.to_header(), "statistics": found.stats, "model": found.model.to_json()},
        columns=[
            *({"column": name, "role": "quasi_identifier"} for name in known),
            {"column": "illness", "role": "sensitive"},
        ],
    )
    return found.table, record


def places_of(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything below a JSON value."""
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in entries:
        yield (*path, key)
        yield from places_of(inner, (*path, key))


def mutate_structure(manifest: dict[str, Any], chance: random.Random) -> tuple[Any, tuple[Any, ...]]:
    """Change one place of a JSON value; return the value and the place."""
    changed = copy.deepcopy(manifest)
    path = chance.choice(list(places_of(changed)))
    parent = changed
    for key in path[:-1]:
        parent = parent[key]
    key = path[-1]
    value = parent[key]
    kind = chance.choice(["replace", "replace", "near", "near", "delete", "add", "repeat", "rename"])
    if kind == "delete":
        del parent[key]
    elif kind == "add" and isinstance(value, dict):
        value[chance.choice(["more", "", "signed_by", "policy", "metric"])] = copy.deepcopy(chance.choice(VALUES))
    elif kind == "add" and isinstance(value, list):
        value.insert(chance.randint(0, len(value)), copy.deepcopy(chance.choice(VALUES)))
    elif kind == "repeat" and isinstance(parent, list):
        parent.insert(key, copy.deepcopy(value))
    elif kind == "rename" and isinstance(parent, dict):
        parent[f"{key}_"] = parent.pop(key)
    elif kind == "near":
        parent[key] = _near(value, chance)
    else:
        parent[key] = copy.deepcopy(chance.choice(VALUES))
    return changed, path


def _near(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return chance.choice([value + 1, value - 1, -value, value * 2, float(value), value / 3, 0, 10 * value])
    if isinstance(value, str):
        position = chance.randint(0, len(value))
        return chance.choice([value[:position], value[:position] + "é" + value[position:], value.upper(), value + " "])
    if isinstance(value, list):
        return chance.choice([value[::-1], value[1:], value + value])
    if isinstance(value, dict):
        return dict(list(value.items())[1:])
    return chance.choice(VALUES)


def mutate_bytes(data: bytes, chance: random.Random, others: list[bytes]) -> bytes:
    """Change one place in bytes."""
    start = chance.randrange(len(data))
    stop = min(len(data), start + chance.choice([1, 2, 8, 100]))
    kind = chance.randrange(8)
    if kind == 0:
        return data[:start] + bytes([data[start] ^ 1 << chance.randrange(8)]) + data[start + 1 :]
    if kind == 1:
        return data[:start] + data[stop:]
    if kind == 2:
        return data[:stop] + data[start:]
    if kind == 3:
        return data[:start] + chance.randbytes(chance.randint(1, 8)) + data[start:]
    if kind == 4:
        return data[:start]
    if kind == 5:
        return data[:start] + chance.choice(others)[start:]
    numbers = list(re.finditer(rb"(?<=[ :\[])-?[0-9.]+(?=[,\n\]])", data))
    if kind == 6 and numbers:
        number = chance.choice(numbers)
        return data[: number.start()] + chance.choice(RAW).encode() + data[number.end() :]
    lines = data.splitlines(keepends=True)
    line = chance.randrange(len(lines))
    return b"".join([*lines[: line + 1], lines[line] if chance.random() < 0.5 else b" \n", *lines[line + 1 :]])


def meaning(data: bytes) -> str | None:
    """Return what a file says, whatever it looks like; None if it is not JSON, or not one object without repeats."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise ValueError
        return dict(pairs)

    try:
        return canonical_json(json.loads(data.decode(), object_pairs_hook=once))
    except (ValueError, RecursionError):
        return None


def campaign(n_mutations: int, seed: int = 0, releases: list[Release] | None = None) -> Counts:
    """Mutate single places, and verify after each."""
    if releases is None:
        with tempfile.TemporaryDirectory() as place:
            return campaign(n_mutations, seed, make_releases(Path(place)))
    chance, counts = random.Random(seed), Counts()
    manifests = [release.original["manifest.json"] for release in releases]
    while counts.n_mutations < n_mutations:
        release = releases[counts.n_mutations % len(releases)]
        name = "manifest.json"
        if release.kind == "signed" and chance.random() < 0.4:
            name = "signature.json"
        original = release.original[name]
        if chance.random() < 0.6:
            mutated = json.dumps(mutate_structure(json.loads(original), chance)[0], indent=2).encode() + b"\n"
        else:
            mutated = mutate_bytes(original, chance, manifests)
        if mutated == original:
            continue
        counts.n_mutations += 1
        (release.directory / name).write_bytes(mutated)
        is_verified = _verified(release, counts)
        release.restore()
        says_the_same = meaning(mutated) == meaning(original)
        if release.kind == "signed" and name == "manifest.json":
            says_the_same = False
        counts.n_refused += not is_verified
        counts.n_without_meaning += is_verified and says_the_same
        if is_verified and not says_the_same:
            counts.false_verified.append(f"{release.kind} {name}: {mutated[:2_000]!r}")
    return counts


def forge(n_mutations: int, seed: int = 0, releases: list[Release] | None = None) -> Counts:
    """Mutate single places of manifests and calculate the digests again, and for a signed one try to replace it all."""
    if releases is None:
        with tempfile.TemporaryDirectory() as place:
            return forge(n_mutations, seed, make_releases(Path(place)))
    chance, counts = random.Random(seed), Counts()
    while counts.n_mutations < n_mutations:
        release = releases[counts.n_mutations % len(releases)]
        original = json.loads(release.original["manifest.json"])
        changed, path = mutate_structure(original, chance)
        changed["digest"] = digest_of(changed)
        if canonical_json(changed) == canonical_json(original):
            continue
        counts.n_mutations += 1
        data = json.dumps(changed, indent=2).encode() + b"\n"
        (release.directory / "manifest.json").write_bytes(data)
        if release.kind == "signed":
            _forge_signature(release, changed, chance)
        if not _verified(release, counts):
            counts.n_refused += 1
        elif release.kind == "signed":
            counts.false_verified.append(f"signed {path}")
        else:
            counts.forged[release.kind, _written(path)] += 1
        release.restore()
    return counts


def _forge_signature(release: Release, manifest: dict[str, Any], chance: random.Random) -> None:
    """Take the signature away, correct what it says of the manifest, or sign with another key."""
    from privacy_assets.release.signing import write_signature

    path = release.directory / "signature.json"
    kind = chance.choice(["strip", "correct", "another key"])
    data = (release.directory / "manifest.json").read_bytes()
    if kind == "strip":
        path.unlink()
        manifest["signed_by"], manifest["digest"] = None, ""
        manifest["digest"] = digest_of(manifest)
        (release.directory / "manifest.json").write_text(json.dumps(manifest))
    elif kind == "correct":
        import hashlib

        signature = json.loads(release.original["signature.json"])
        signature["manifest_sha256"] = hashlib.sha256(data).hexdigest()
        if chance.random() < 0.5:
            signature["signature"] = base64.b64encode(chance.randbytes(64)).decode()
        path.write_text(json.dumps(signature))
    else:
        with tempfile.TemporaryDirectory() as place:
            signer = load_signer(SigningKey(generate_key_pair(Path(place) / "other.pem")[0]))
        path.unlink()
        write_signature(path, data, signer, 0o644)


def is_listed(kind: str, path: str) -> bool:
    """Whether a place is listed as one that only a signature protects: itself, or what it lies in.

    A change of `figures` as a whole that verifies has added one that nothing asks for.
    """
    return path == "figures" or any(
        path == listed or path.startswith((f"{listed}.", f"{listed}[")) for listed in FORGEABLE[kind]
    )


def _verified(release: Release, counts: Counts) -> bool:
    started = time.perf_counter()
    try:
        found = [verify_release(release.directory, public_keys=release.public_keys, max_bytes=None).verified]
        if release.public_keys:
            verify_release(release.directory, max_bytes=None)
    except Exception:  # noqa: BLE001
        counts.tracebacks.append(traceback.format_exc())
        found = [False]
    counts.slowest_seconds = max(counts.slowest_seconds, time.perf_counter() - started)
    return found[0]


def _written(path: tuple[Any, ...]) -> str:
    return "".join("[]" if isinstance(key, int) else f".{key}" for key in path).removeprefix(".")


def main(n_mutations: int, seed: int = 0) -> int:
    """Run both campaigns and print what they found; 0 if nothing is wrong."""
    place = Path(tempfile.mkdtemp())
    try:
        releases = make_releases(place)
        slips = campaign(n_mutations, seed, releases)
        forged = forge(n_mutations, seed, releases)
    finally:
        shutil.rmtree(place)
    print(f"Slips. {slips}")
    print(f"Forgeries with a digest of their own. {forged}")
    print(f"Of these, {forged.forged.total():,} verify in releases that are not signed, at:")
    by_place: dict[str, set[str]] = {}
    for kind, path in forged.forged:
        by_place.setdefault(path, set()).add(kind)
    for path, kinds in sorted(by_place.items()):
        unexpected = [kind for kind in kinds if not is_listed(kind, path)]
        print(
            f"  {path}  ({', '.join(sorted(kinds))}){'  NOT LISTED for ' + ', '.join(unexpected) if unexpected else ''}"
        )
    return int(any(each.tracebacks or each.false_verified for each in (slips, forged)))


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["2000"])))
