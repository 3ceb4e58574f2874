"""An S3 server on this machine, in a thread: it keeps what it was asked, and can fail, lose objects or vanish."""

import threading
from contextlib import contextmanager
from uuid import uuid4

import pyarrow.fs
import pytest

SECRET = "sEcReT0wn/Key"
"""A part of the address of every test; it may be shown nowhere."""


class Server:
    """A server with one bucket for each use.

    ``asked`` are method, key and query of each request that is none of a test. ``answers`` takes the first two, and
    returns a status and a body to answer with instead, or None.
    """

    def __init__(self):
        # Asks the application without the network, also while the server answers.
        Client = pytest.importorskip("werkzeug.test").Client  # noqa: N806
        moto = pytest.importorskip("moto.moto_server.werkzeug_app")
        serving = pytest.importorskip("werkzeug.serving")

        class Silent(serving.WSGIRequestHandler):
            def log(self, *_):
                pass

        application = moto.DomainDispatcherApplication(moto.create_backend_app)
        self._application, self._inside = application, Client(application)
        self._server = serving.make_server("127.0.0.1", 0, self._serve, threaded=True, request_handler=Silent)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        self._thread.start()
        self.asked, self.answers, self._is_test = [], lambda method, key: None, False
        self.bucket = f"bucket-{uuid4().hex[:8]}"
        with self.aside():
            self.files.create_dir(self.bucket)

    def _serve(self, environ, start_response):
        method, path = environ["REQUEST_METHOD"], environ["PATH_INFO"].lstrip("/")
        if not self._is_test:
            self.asked.append((method, path, environ.get("QUERY_STRING", "")))
            if answer := self.answers(method, path):
                status, body = answer
                environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
                start_response(status, [("Content-Length", str(len(body))), ("Content-Type", "application/xml")])
                return [body]
        return self._application(environ, start_response)

    @contextmanager
    def aside(self):
        """Let requests of the test itself pass, and forget them."""
        self._is_test = True
        try:
            yield
        finally:
            self._is_test = False

    @property
    def port(self):
        return self._server.server_address[1]

    @property
    def files(self):
        return pyarrow.fs.S3FileSystem(
            access_key="id",
            secret_key="other",
            endpoint_override=f"127.0.0.1:{self.port}",
            scheme="http",
            allow_bucket_creation=True,
        )

    def uri(self, path="releases"):
        query = f"endpoint_override=127.0.0.1:{self.port}&scheme=http"
        return f"s3://AKIASENTINEL:{SECRET.replace('/', '%2F')}@{self.bucket}/{path}?{query}"

    def objects(self):
        """Return the content of each object below the bucket, by key."""
        with self.aside():
            selector = pyarrow.fs.FileSelector(self.bucket, recursive=True)
            found = self.files.get_file_info(selector)
            keys = [each.path for each in found if each.type == pyarrow.fs.FileType.File]
            return {key.removeprefix(f"{self.bucket}/"): self.read(key) for key in keys}

    def read(self, key):
        with self.files.open_input_stream(key) as file:
            return file.read()

    def write(self, key, content):
        assert self._inside.put(f"/{self.bucket}/{key}", data=content).status_code == 200

    def delete(self, key):
        assert self._inside.delete(f"/{self.bucket}/{key}").status_code == 204

    def uploaded(self):
        """Return the names of the objects in the order in which they were complete."""
        return [
            key.rpartition("/")[2]
            for method, key, query in self.asked
            if (method == "POST" and "uploadId=" in query) or (method == "PUT" and "partNumber=" not in query)
        ]

    def vanish(self):
        """Refuse all connections from now on."""
        threading.Thread(target=self.stop, daemon=True).start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


SLOW_DOWN = ("503 Slow Down", b"<Error><Code>SlowDown</Code><Message>sentinel-of-the-store</Message></Error>")


@contextmanager
def served():
    server = Server()
    try:
        yield server
    finally:
        server.stop()
