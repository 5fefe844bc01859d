"""What a rank that leaves its round does to the connections of its process groups.

C++ counterpart: tests/sdk/dist/group_sockets_test.cpp.
"""

import contextlib
import os
import socket
import sys

import pytest
from launches import ROOT

sys.path.insert(0, str(ROOT / 'worker_sdk' / 'python'))
from cpprun_worker import _elastic


@pytest.fixture
def ends():
    """A TCP connection: this rank's end, and that of its peer."""
    listener = socket.create_server(('127.0.0.1', 0))
    with listener, socket.create_connection(listener.getsockname(), timeout=60) as peer:
        own, _ = listener.accept()
        with own:
            yield own, peer


def test_peers_of_a_rank_that_leaves_go_on_writing(ends):
    own, peer = ends
    sockets = _elastic._Sockets()
    sockets._add({os.fstat(own.fileno()).st_ino})
    sockets.shut()
    assert own.recv(1) == b''
    own.close()  # Gloo closes what it can't read
    for _ in range(3):
        peer.sendall(b'x')
    sockets.forget()
    with contextlib.suppress(ConnectionResetError):
        assert peer.recv(1) == b''


def test_connections_that_appear_late_are_shut_down_too(ends):
    own, peer = ends
    sockets = _elastic._Sockets()
    sockets.shut()
    sockets._add({os.fstat(own.fileno()).st_ino})
    assert own.recv(1) == b''
    peer.sendall(b'x')
    sockets.forget()
