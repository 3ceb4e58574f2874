"""A session of Spark, and how long it is waited for: a server that is gone must not hold a run for minutes."""

from __future__ import annotations

import logging
import os
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from functools import cached_property
from importlib.util import find_spec
from typing import Any
from uuid import uuid4
from weakref import WeakSet

import pyarrow as pa

from privacy_assets.engine.versions import reader_of_versions, require_same_versions
from privacy_assets.errors import EngineError, InvalidSettingError
from privacy_assets.kernels.compilation_progress import progress

ADDRESS = re.compile(r"sc://([\w.-]+|\[[\da-fA-F:.]+\])(:\d+)?/?(;[^;=\s]+=[^;=\s]*)*")
LOCAL = re.compile(r"local(-cluster)?(\[[\d*, ]+\])?")
CONDITION = re.compile(r"[A-Z][A-Z0-9_]*(\.[A-Z0-9_]+)*")
"""Names of Spark's error conditions, which are part of its documentation and do not quote data."""
SECONDS_TO_ANSWER, SECONDS_TO_CLEAN_UP, SECONDS_BETWEEN_QUESTIONS = 30.0, 10.0, 10.0
RETRIES: dict[str, Any] = {"max_retries": 6, "max_backoff": 8_000}
"""About 20 seconds; pyspark's own take more than ten minutes."""
_checked_addresses: set[str] = set()
_checked_sessions: WeakSet[Any] = WeakSet()


def require_address(remote: object) -> None:
    """Refuse what is not the address of a server, without showing it: it may contain a token."""
    if not isinstance(remote, str) or not (ADDRESS.fullmatch(remote) or LOCAL.fullmatch(remote)):
        raise InvalidSettingError(
            "`remote` is not the address of a Spark Connect server; it is not shown, because it may contain a token. "
            "Expected sc://HOST:PORT, sc://HOST:PORT/;use_ssl=true;token=TOKEN, or local[2] for a server on this "
            "machine. Write `=` and `;` in a value as %3D and %3B."
        )


def shown_address(remote: str) -> str:
    """Return the part of an address without its token and other parameters."""
    return remote.partition(";")[0].rstrip("/")


class Connection:
    """A session that its first use opens at an address, or a given one, or an object with a ``spark_session``."""

    def __init__(self, address: str | None, session: Any) -> None:
        self._address, self._given = address, session
        self._own: Any = None
        self._channel: Any = None
        self._is_lost = False

    @cached_property
    def spark(self) -> Any:
        """The session, whose workers were found to have this package."""
        if find_spec("pyspark") is None:
            raise InvalidSettingError(
                "`SparkEngine` needs the extra `spark`: pip install 'privacy-assets[spark]'. Nothing was assessed."
            )
        if self._address is None:
            spark = getattr(self._given, "spark_session", self._given)
            if spark is None:
                raise EngineError("The Spark resource has no session yet. Nothing was sent. Open one before the run.")
            _bound_retries(spark)
        else:
            spark = self._try(lambda: self._open(str(self._address)), "be reached")
        if self._address not in _checked_addresses and spark not in _checked_sessions:
            numbers, answer = spark.range(0, 64, 1, 16), spark_types(pa.schema([("version", pa.string())]))
            ask = numbers.mapInArrow(reader_of_versions(), answer)
            with self._watched():
                found = self._try(ask.toArrow, "ask its workers for the version of this package")
            require_same_versions(set(found.column("version").to_pylist()))
            _checked_sessions.add(spark)
            _checked_addresses.update([self._address] if self._address else [])
        return spark

    def _open(self, address: str) -> Any:
        from pyspark.sql import SparkSession
        from pyspark.sql.connect.client.core import DefaultChannelBuilder
        from pyspark.sql.connect.session import SparkSession as ConnectSession

        is_local = LOCAL.fullmatch(address) is not None
        if is_local:
            # Starts the server of this process, unless it runs; at its end, the process waits for this session.
            _bound_retries(SparkSession.builder.remote(address).getOrCreate())
        builder = DefaultChannelBuilder("sc://localhost" if is_local else address)
        if not is_local and "SPARK_LOCAL_REMOTE" in os.environ:
            # By default, the token of the server of this process is sent to every other server.
            builder.set("token", builder.getDefault("token", None))
        self._channel = channel = builder.toChannel()
        builder.toChannel = lambda: channel
        self._own = ConnectSession(connection=builder)
        _bound_retries(self._own)
        _within(SECONDS_TO_ANSWER, lambda: self._own.version)
        progress.tell(logging.INFO, f"Tasks run on Spark at {shown_address(address)}.")
        return self._own

    @contextmanager
    def named_jobs(self, tag: str) -> Iterator[Any]:
        """Tag the jobs of this thread, and cancel them if anything ends the work early."""
        spark = self.spark
        tags = [tag, f"{tag} {uuid4().hex}"]
        is_done = False
        try:
            for each in tags:
                spark.addTag(each)
            with self._watched():
                yield spark
            is_done = True
        finally:
            if not is_done:
                self.clean_up(lambda: spark.interruptTag(tags[1]))
            with suppress(Exception):
                for each in tags:
                    spark.removeTag(each)

    @contextmanager
    def _watched(self) -> Iterator[None]:
        """Close the channel of an own session once the server does not answer: of a machine that stopped, nobody tells.

        Work that waits for it then ends with an error.
        """
        ended = threading.Event()

        def watch() -> None:
            while not (ended.wait(SECONDS_BETWEEN_QUESTIONS) or self._is_lost):
                # Other errors are met by the work itself.
                with suppress(Exception):
                    try:
                        _within(SECONDS_TO_ANSWER, lambda: self._own.conf.get("spark.sql.session.timeZone"))
                    except TimeoutError:
                        self._is_lost = True
                        self._channel.close()

        if self._own is not None:
            threading.Thread(target=watch, daemon=True).start()
        try:
            yield
        finally:
            ended.set()

    def attempt(self, work: Callable[[], Any]) -> tuple[Any, str | None]:
        """Return the result of work with Spark, or the kind of its error, whose text may quote a worker's data."""
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001 - Spark raises errors of many libraries
            self._is_lost |= isinstance(error, TimeoutError)
            with suppress(Exception):
                self._is_lost |= error.getGrpcStatusCode().name == "UNAVAILABLE"  # type: ignore[attr-defined]
            return None, _kind_of(error)

    def run(self, tag: str, work: Callable[[], Any], task: str = "run the tasks") -> Any:
        """Do work with the session; of Spark's error, only the kind is passed on."""
        with self.named_jobs(tag):
            return self._try(work, task)

    def _try(self, work: Callable[[], Any], task: str) -> Any:
        made, failure = self.attempt(work)
        self.refuse(failure, task)
        return made

    def refuse(self, failure: str | None, task: str) -> None:
        """Raise an error without Spark's error, not even as its context."""
        if failure is not None:
            place = "" if self._address is None else f" at {shown_address(self._address)}"
            raise EngineError(
                f"Spark{place} could not {task} ({failure}). No results were kept. Check that the server answers. Its "
                "log has other causes, such as a lost worker, too little memory, or a file that cannot be read."
            )

    def clean_up(self, work: Callable[[], Any]) -> None:
        """Do work that a lost server would not answer, and do not wait long for it."""
        if not self._is_lost:
            self.attempt(lambda: _within(SECONDS_TO_CLEAN_UP, work))

    def close(self) -> None:
        """End the session, if it was opened here."""
        if self._own is not None:
            self.clean_up(self._own.client.release_session)
            # `stop` of a session also ends the server of this process. Closing the channel ends what still waits.
            self.attempt(lambda: _within(0.0 if self._is_lost else SECONDS_TO_CLEAN_UP, self._own.client.close))


def _within(seconds: float, work: Callable[[], Any]) -> Any:
    """Return the result of work in a thread that does not keep the process alive; if it takes longer, TimeoutError."""
    made: Future[Any] = Future()

    def do() -> None:
        try:
            made.set_result(work())
        except Exception as error:  # noqa: BLE001 - passed on
            made.set_exception(error)

    threading.Thread(target=do, daemon=True).start()
    return made.result(seconds)


def _bound_retries(spark: Any) -> None:
    """Bound how often a request is repeated, unless the session is classic, or has other policies than the default."""
    if ".connect." in type(spark).__module__:
        from pyspark.sql.connect.client.retries import DefaultPolicy

        if [type(policy) for policy in spark.client.get_retry_policies()] == [DefaultPolicy]:
            spark.client.set_retry_policies([DefaultPolicy(**RETRIES)])


def spark_types(schema: pa.Schema) -> Any:
    """Return a schema as Spark's types; of text, pyspark makes them with the server of any active session."""
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


def _kind_of(error: Exception) -> str:
    """Return the class of an error, and the name of Spark's condition, such as TABLE_OR_VIEW_NOT_FOUND."""
    condition = None
    with suppress(Exception):
        condition = error.getCondition()  # type: ignore[attr-defined]
    is_name = isinstance(condition, str) and CONDITION.fullmatch(condition)
    return f"{type(error).__name__}, {condition}" if is_name else type(error).__name__
