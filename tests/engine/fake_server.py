"""A server that speaks Spark's protocol as far as a job needs it, and then does not answer: no Java is needed.

As a program it prints its port; it is there to be killed.
"""

import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import grpc

VALUES = {"spark.sql.session.timeZone": "UTC", "spark.connect.session.planCompression.defaultAlgorithm": "NONE"}


def _handlers(heard, answers_calls):
    from pyspark.sql.connect.proto import base_pb2 as messages
    from pyspark.sql.connect.proto import base_pb2_grpc as services

    class Service(services.SparkConnectServiceServicer):
        def _hear(self, name, request, context):
            heard.append((name, request.session_id, dict(context.invocation_metadata()).get("authorization")))
            while not answers_calls and context.is_active():
                threading.Event().wait(0.1)
            return {"session_id": request.session_id, "server_side_session_id": "of the server"}

        def AnalyzePlan(self, request, context):  # noqa: N802
            response = messages.AnalyzePlanResponse(**self._hear("AnalyzePlan", request, context))
            kind = request.WhichOneof("analyze")
            getattr(response, kind).SetInParent()
            if kind == "schema":
                field = response.schema.schema.struct.fields.add(name="cell", nullable=True)
                field.data_type.binary.SetInParent()
            if kind == "spark_version":
                response.spark_version.version = "4.3.0"
            return response

        def Config(self, request, context):  # noqa: N802
            response = messages.ConfigResponse(**self._hear("Config", request, context))
            operation = request.operation
            asked = getattr(operation, operation.WhichOneof("op_type"))
            for key in getattr(asked, "keys", None) or [pair.key for pair in asked.pairs]:
                response.pairs.add(key=key, value=VALUES.get(key, "1000000"))
            return response

        def ExecutePlan(self, request, context):  # noqa: N802
            self._hear("ExecutePlan", request, context)
            # A job that goes on and on.
            while context.is_active():
                threading.Event().wait(0.1)
            yield from ()

        def Interrupt(self, request, context):  # noqa: N802
            return messages.InterruptResponse(**self._hear("Interrupt", request, context))

        def ReleaseSession(self, request, context):  # noqa: N802
            return messages.ReleaseSessionResponse(**self._hear("ReleaseSession", request, context))

        def ReleaseExecute(self, request, context):  # noqa: N802
            return messages.ReleaseExecuteResponse(**self._hear("ReleaseExecute", request, context))

    return services, Service()


@contextmanager
def fake_server(answers_calls=True):
    """Start a server in this process; yield its port, and the calls that it hears: name, session and credentials."""
    heard = []
    services, service = _handlers(heard, answers_calls)
    server = grpc.server(ThreadPoolExecutor(16))
    services.add_SparkConnectServiceServicer_to_server(service, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        yield port, heard
    finally:
        server.stop(None)


if __name__ == "__main__":
    with fake_server() as (own_port, _):
        print(own_port, flush=True)
        sys.stdin.read()
