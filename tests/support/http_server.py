"""An HTTP server of a test, on a thread of its own."""

import contextlib
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    """Without lines on stderr for each request."""

    def log_message(self, *_):
        pass


@contextlib.contextmanager
def serving(handler):
    """Yields the server; its `url` has no path."""
    server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
    server.url = f'http://127.0.0.1:{server.server_port}'
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join(60)
