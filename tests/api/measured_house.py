"""A measured application behind the gateway's own server, on free loopback ports."""

import io
import json
import os
import threading
import time
from http.client import HTTPConnection

from bankml.api.metrics_middleware import MetricsMiddleware
from bankml.http import server
from bankml.measure.usage import Watched
from tests.api.api_toys import toy_application
from tests.engine.engine_toys import ToyModel


class House:
    """Serves `application` (a toy's by default) for a `with` block."""

    def __init__(self, application=None):
        self.measured = MetricsMiddleware(application or toy_application(), [Watched("gateway", os.getpid())])
        self.log = io.StringIO()

    def __enter__(self):
        found, up = [], threading.Event()

        def ready(listening):
            found.append(listening)
            up.set()

        def run():
            free = ("127.0.0.1", 0)
            server.serve(
                self.measured,
                free,
                free,
                ready=ready,
                log=self.log,
                refused=self.measured.refused,
                at_once=self.measured.at_once,
            )

        self._thread = threading.Thread(target=run, daemon=True)
        self._thread.start()
        assert up.wait(10)
        self.listening = found[0]
        self.url = f"http://127.0.0.1:{self.listening.gateway[1]}"
        return self

    def __exit__(self, *_):
        self.listening.stop()
        self._thread.join(6)
        assert not self._thread.is_alive()

    def client(self, address="gateway"):
        """A kept connection: what is asked next over it is asked when the answer before has been counted."""
        return Client(*getattr(self.listening, address))


class Client:
    def __init__(self, host, port):
        self._connection = HTTPConnection(host, port, timeout=30)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._connection.close()

    def ask(self, method, path, body=None, **headers):
        """(status, headers in lower case, body)."""
        data = None if body is None else json.dumps(body).encode()
        kind = {} if body is None else {"Content-Type": "application/json"}
        self._connection.request(method, path, data, kind | headers)
        answer = self._connection.getresponse()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read()

    def get(self, path):
        status, _, body = self.ask("GET", path)
        assert status == 200, body
        return json.loads(body)


def paced_model(next_token, seconds):
    """A toy model that takes so long for each forward pass."""
    model = ToyModel(next_token)
    model.before = lambda: time.sleep(seconds)
    return model
