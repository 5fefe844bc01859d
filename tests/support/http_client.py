"""Pages of an HTTP server on this machine."""

import urllib.request


def page(port, path, host='127.0.0.1', seconds=100):
    """The text of a page that is there."""
    with urllib.request.urlopen(f'http://{host}:{port}{path}', timeout=seconds) as answer:
        assert answer.status == 200
        return answer.read().decode()
