"""What a rank that leaves its round does to the connections of its process groups.

C++ counterpart: tests/sdk/dist/group_sockets_test.cpp.
"""

import contextlib
import os
import socket
import sys
import threading

import pytest
from launches import ROOT

sys.path.insert(0, str(ROOT / 'worker_sdk' / 'python'))
from cpprun_worker._group_sockets import GroupSockets


@pytest.fixture
def listener():
    with socket.create_server(('127.0.0.1', 0)) as made:
        yield made


@pytest.fixture
def ends(listener):
    own, peer = connect(listener)
    with own, peer:
        yield own, peer


def test_peers_of_a_rank_that_leaves_continue_to_write(ends):
    own, peer = ends
    sockets = knowing(own)
    sockets.shut()
    assert own.recv(1) == b''
    own.close()  # Gloo closes what it can't read
    for _ in range(3):
        peer.sendall(b'x')
    sockets.forget()
    with contextlib.suppress(ConnectionResetError):
        assert peer.recv(1) == b''


def knowing(connection):
    """GroupSockets that know the connection, as one of a group."""
    sockets = GroupSockets()
    sockets._of_groups.add(os.fstat(connection.fileno()).st_ino)
    return sockets


def connect(listener):
    """This rank's end of a new connection, and that of its peer."""
    peer = socket.create_connection(listener.getsockname(), timeout=60)
    return listener.accept()[0], peer


def test_connections_that_appear_late_are_shut_down_too(listener):
    sockets = GroupSockets()
    sockets.shut()
    with sockets.appearing(sockets._of_groups):
        own, peer = connect(listener)
    with own, peer:
        assert own.recv(1) == b''
        peer.sendall(b'x')
        sockets.forget()


def test_a_thread_that_makes_a_group_is_woken(listener):
    sockets = GroupSockets()
    with sockets.appearing_of_store():
        own, peer = connect(listener)  # of the store
        waker = threading.Thread(target=sockets.shut)
        waker.start()
        with own, peer:
            assert own.recv(1) == b''
            late, peer_of_late = connect(listener)
            with late, peer_of_late:
                assert late.recv(1) == b''
        assert waker.is_alive()  # until the group is made, or has failed
    waker.join(60)
    assert not waker.is_alive()
    sockets.forget()


def test_the_connection_to_the_store_ends_while_a_group_is_made_only(listener):
    sockets = GroupSockets()
    with sockets.appearing_of_store():
        own, peer = connect(listener)
    with own, peer:
        sockets.shut()
        peer.sendall(b'x')
        assert own.recv(1) == b'x'
        with sockets.appearing(sockets._of_groups):
            waker = threading.Thread(target=sockets.shut)
            waker.start()
            assert own.recv(1) == b''
        waker.join(60)
        sockets.forget()
