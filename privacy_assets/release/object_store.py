"""Releases in an object store: uploaded object by object and read back, the manifest last; downloaded for verification.

A store cannot rename a directory, so its objects become a release when the manifest appears. Addresses may contain
credentials, and answers of a store anything: messages have only the address without credentials and the code of an
answer.
"""

import contextlib
import hashlib
import io
import json
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar, cast
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

import pyarrow as pa

from privacy_assets.columns.safe_names import class_name
from privacy_assets.errors import InvalidSettingError, ReleaseStoreError
from privacy_assets.release.manifest import LATEST, MANIFEST_FILE, RELEASE_NAME
from privacy_assets.release.received_files import BLOCK_BYTES
from privacy_assets.release.withdrawals import MAX_LIST_BYTES, MOST_DIRECTORIES, WITHDRAWN_FILE
from privacy_assets.setting_checks import is_in_store, is_printable
from privacy_assets.storage.durable_files import locked, replace_file, write_file
from privacy_assets.storage.temporary_directories import temporary_directory

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

STORE_FILE = ".privacy_assets_store"
"""In the local record of uploaded releases: the address of the store, without credentials."""
MOST_OBJECTS = 100_000
LONGEST_NAME = 200
_SECRET = re.compile(r"secret|key|password|token|sig", re.IGNORECASE)
_ANSWER = re.compile(r"AWS Error (?!UNKNOWN)([A-Z_]+)|(?:HTTP status|status code|http_status_code)\D{1,8}(\d{3})\b")

T = TypeVar("T")


@dataclass(frozen=True)
class ObjectStore:
    """The place of releases, or of one release, in an object store; made by `ObjectStore.at`."""

    uri: str = field(repr=False)

    @classmethod
    def at(cls, uri: str, setting: str) -> "ObjectStore":
        """Return the place with an address, or raise InvalidSettingError; the store is not asked."""
        from pyarrow.fs import FileSystem

        is_right = False
        with contextlib.suppress(ValueError, OSError, pa.ArrowException):
            split = urlsplit(uri)
            given = dict(parse_qsl(split.query, keep_blank_values=True))
            # Without a region, pyarrow would ask the store for that of the bucket.
            asks = split.scheme == "s3" and not given.keys() & {"region", "endpoint_override"}
            region = f"{'&' if split.query else '?'}region=us-east-1" if asks else ""
            _, path = FileSystem.from_uri(uri.partition("#")[0] + region)
            parts = path.strip("/").split("/")
            # A password with a slash that is not escaped would be taken for a part of the path.
            is_right = is_printable(uri) and not any("@" in own for own in (path, *given.values()))
            is_right &= "#" not in uri and not {"", ".", ".."} & set(parts)
        if not is_right:
            raise InvalidSettingError(
                f"{setting} is not the address of an object store that pyarrow can use. Expected for example "
                "s3://bucket/prefix?region=eu-west-1, with a path without '@' and empty parts, and with the query "
                "parameters of pyarrow.fs.FileSystem.from_uri. Nothing was read or written."
            )
        return cls(uri)

    @property
    def name(self) -> str:
        """The address without credentials and parameters."""
        split = urlsplit(self.uri)
        user, _, host = split.netloc.rpartition("@")
        # In addresses of Azure, the container precedes the account.
        container = user.partition(":")[0] if split.scheme.startswith("abfs") else ""
        return f"{split.scheme}://{container}{'@' if container else ''}{host}{split.path.rstrip('/')}"

    @property
    def without_credentials(self) -> str:
        """The address with those parameters that are no secret."""
        given = parse_qsl(urlsplit(self.uri).query, keep_blank_values=True)
        kept = urlencode([(name, value) for name, value in given if not _SECRET.search(name)])
        return f"{self.name}?{kept}" if kept else self.name

    def address_of(self, place: str, name: str) -> str:
        """Return the address of a release below a place, for people and `verify_release`."""
        return f"{self.name}/{quote(f'{place}/{name}')}"

    def local_record(self, private_path: Path) -> Path:
        """Return the local directory of the releases uploaded here: next to the private one, and different for each."""
        endpoint = dict(parse_qsl(urlsplit(self.uri).query)).get("endpoint_override", "")
        digest = hashlib.sha256(f"{self.name}\n{endpoint}".encode()).hexdigest()[:12]
        return private_path.with_name(f"{private_path.name}.uploaded") / digest

    def keep_address(self, root: Path) -> None:
        """Write the address into the local record, where a withdrawal finds it."""
        replace_file(root / STORE_FILE, f"{self.without_credentials}\n".encode())

    @classmethod
    def of_record(cls, root: Path) -> "ObjectStore | None":
        """Return the store of which a directory is the local record; None for one of releases that stay local."""
        path = root / STORE_FILE
        if not path.is_file():
            return None
        uri = path.read_text(encoding="utf-8").strip()
        if not is_in_store(uri):
            raise ReleaseStoreError(
                f"{str(path)!r} has no address of an object store. Write it there, "
                "or remove the file if the releases stay here."
            )
        return cls.at(uri, str(path))

    @contextlib.contextmanager
    def uploaded(self, place: str, directory: Path, name: str) -> Iterator[None]:
        """Upload a release below a place, and its manifest after the block; if either fails, remove everything again.

        The block makes the release appear in the local record: if the process is killed, it counts as published there,
        rather than being in the store without being in the record.
        """
        paths = [path for path in sorted(directory.rglob("*")) if path.is_symlink() or path.is_file()]
        files = {path.relative_to(directory).as_posix(): path for path in paths}
        manifest = files.pop(MANIFEST_FILE).read_bytes()
        verified = {each: own["sha256"] for each, own in json.loads(manifest)["files"].items()}
        begun: list[str] = []
        problem, n_left = cast("ReleaseStoreError | None", None), 0
        try:
            store, base = self._opened()
            for each, path in files.items():
                # The signature and what it attests are not listed.
                if path.is_symlink() or (each in verified and _digest_of(path) != verified[each]):
                    raise ReleaseStoreError(f"{each!r} is not the file that was verified.")
                begun.append(f"{base}/{place}/{name}/{each}")
                with path.open("rb") as file:
                    self._put(store, begun[-1], file)
            yield
            begun.append(f"{base}/{place}/{name}/{MANIFEST_FILE}")
            self._put(store, begun[-1], io.BytesIO(manifest))
        except ReleaseStoreError as error:
            problem, n_left = error, self._removed(begun)
        except BaseException:
            n_left = self._removed(begun)
            if not n_left:
                raise
            problem = ReleaseStoreError("The upload was interrupted.")
        if problem is not None:
            there = f"{n_left} objects below {self.address_of(place, name)} could not be removed; if {MANIFEST_FILE} "
            left = f"{there}is among them, remove it, and without it they are not a release. " if n_left else ""
            raise ReleaseStoreError(
                f"{problem} Nothing was released, and an earlier release stays unchanged. {left}Check the address, the "
                "credentials, and whether the store is available; then materialize the release again: its tables and "
                "evidence are kept."
            )

    def follow_latest(self, root: Path, directory: Path) -> None:
        """Let the object ``latest`` name what the link in the local record names at this moment, or remove it."""
        place, link = directory.relative_to(root).as_posix(), directory / LATEST
        with locked(directory):
            if link.is_symlink():
                self.point_to(place, link.readlink().name)
                return
            if self._removed([f"{self._opened()[1]}/{place}/{LATEST}"]):
                raise ReleaseStoreError(f"{self.name}/{place}/{LATEST} could not be removed.")

    def point_to(self, place: str, name: str) -> None:
        """Write the name of a release into the object ``latest`` next to it."""
        store, base = self._opened()
        self._put(store, f"{base}/{place}/{LATEST}", io.BytesIO(f"{name}\n".encode()))

    def withdraw(self, root: Path) -> None:
        """Upload the list of withdrawn releases of the local record, unless it lacks entries."""
        store, base = self._opened()
        key = f"{base}/{WITHDRAWN_FILE}"
        # Another withdrawal would upload its list in the meantime.
        with locked(root):
            listed = (root / WITHDRAWN_FILE).read_bytes()
            if not listed.startswith(self._get(store, key, MAX_LIST_BYTES) or b""):
                raise ReleaseStoreError(
                    f"{self.name}/{WITHDRAWN_FILE} has entries that {str(root / WITHDRAWN_FILE)!r} lacks. Restore the "
                    "newest copy of the list there. Nothing was uploaded."
                )
            self._put(store, key, io.BytesIO(listed))

    @contextlib.contextmanager
    def downloaded(self, max_bytes: int | None) -> Iterator[Path]:
        """Download a release into a temporary directory, one object at a time, with the lists of withdrawn releases."""
        store, path = self._opened()
        above, _, name = path.rpartition("/")
        if name == LATEST:
            name = (self._get(store, path, LONGEST_NAME) or b"").decode("ascii", "replace").strip()
            if RELEASE_NAME.fullmatch(name) is None:
                raise ReleaseStoreError(f"{self.name} does not name a release. Expected the name of one next to it.")
            path = f"{above}/{name}"
        with temporary_directory(Path(tempfile.gettempdir())) as temporary:
            sizes = self._sizes(store, path)
            free = shutil.disk_usage(temporary).free
            if max(sizes.values(), default=0) > (max_bytes or free) or sum(sizes.values()) > free:
                raise ReleaseStoreError(
                    f"{self.name} has {len(sizes):,} objects of {sum(sizes.values()):,} bytes, the largest of "
                    f"{max(sizes.values()):,}, which is more than max_bytes or the free space of the temporary "
                    "directory. If you trust its sender, allow more: max_bytes, or --max-gib, and TMPDIR."
                )
            # The lists are looked for in the directories above.
            local = temporary.joinpath(*map(str, range(MOST_DIRECTORIES + 1)), "release")
            local.mkdir(parents=True)
            for each, n_bytes in sizes.items():
                self._ask(f"{self.name} could not be read", _copy, store, f"{path}/{each}", local / each, n_bytes)
            for up in range(1, min(MOST_DIRECTORIES + 1, path.count("/")) + 1):
                listed = self._get(store, f"{path.rsplit('/', up)[0]}/{WITHDRAWN_FILE}", MAX_LIST_BYTES)
                if listed is not None:
                    (local.parents[up - 1] / WITHDRAWN_FILE).write_bytes(listed)
            yield local

    def _opened(self) -> "tuple[FileSystem, str]":
        from pyarrow.fs import FileSystem

        store, path = self._ask(f"{self.name} could not be opened", FileSystem.from_uri, self.uri)
        return store, path.strip("/")

    def _put(self, store: "FileSystem", key: str, file: BinaryIO) -> None:
        """Write an object, read it back, and compare both."""
        what = f"The object {key!r} could not be uploaded"
        if not self._ask(what, _is_put, store, key, file):
            raise ReleaseStoreError(f"{what}: read back, it differs.")

    def _get(self, store: "FileSystem", key: str, most: int) -> bytes | None:
        """Return a small object; None if there is none."""
        data = self._ask(f"The object {key!r} could not be read", _read, store, key, most)
        if data is not None and len(data) > most:
            raise ReleaseStoreError(f"The object {key!r} has more than {most:,} bytes.")
        return data

    def _sizes(self, store: "FileSystem", path: str) -> dict[str, int]:
        """Return the bytes of each object of a release."""
        from pyarrow.fs import FileSelector, FileType

        what, selector = f"{self.name} could not be read", FileSelector(path, recursive=True, allow_not_found=True)
        found = self._ask(what, store.get_file_info, selector)
        sizes = {each.path[len(path) + 1 :]: each.size for each in found if each.type == FileType.File}
        parts = [each.split("/") for each in sizes]
        if len(parts) > MOST_OBJECTS or any(len(each) > 2 or {"", ".", ".."} & set(each) for each in parts):
            raise ReleaseStoreError(f"{what}: it has objects that are not the files of a release.")
        return sizes

    def _removed(self, keys: list[str]) -> int:
        """Remove objects, the last first, until the store does not answer; return how many are left."""
        left = list(keys)
        with contextlib.suppress(ReleaseStoreError, OSError, pa.ArrowException):
            store, _ = self._opened()
            while left:
                with contextlib.suppress(FileNotFoundError):
                    store.delete_file(left[-1])
                left.pop()
        return len(left)

    def _ask(self, what: str, call: Callable[..., T], *given: Any) -> T:
        """Call a function that asks the store; an error has only the code of its answer."""
        try:
            return call(*given)
        except (OSError, ValueError, pa.ArrowException) as error:
            found = _ANSWER.search(str(error))
            answer = class_name(type(error)) if found is None else found[1] or f"HTTP {found[2]}"
        raise ReleaseStoreError(f"{what}: {answer}.")


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _is_put(store: "FileSystem", key: str, file: BinaryIO) -> bool:
    written, read = hashlib.sha256(), hashlib.sha256()
    with store.open_output_stream(key, compression=None) as copy:
        while block := file.read(BLOCK_BYTES):
            written.update(block)
            copy.write(block)
    with store.open_input_stream(key, compression=None) as again:
        while block := again.read(BLOCK_BYTES):
            read.update(block)
    return written.digest() == read.digest()


def _read(store: "FileSystem", key: str, most: int) -> bytes | None:
    try:
        with store.open_input_stream(key, compression=None) as file:
            return bytes(file.read(most + 1))
    except FileNotFoundError:
        return None


def _copy(store: "FileSystem", key: str, path: Path, n_bytes: int) -> None:
    """Copy an object of a known size into a new file."""

    def write(file: BinaryIO) -> None:
        left = n_bytes
        with store.open_input_stream(key, compression=None) as stream:
            while left >= 0 and (block := stream.read(BLOCK_BYTES)):
                left -= len(block)
                file.write(block)
        if left:
            raise OSError("its size changed")

    path.parent.mkdir(exist_ok=True)
    write_file(path, write)
