"""GroupSockets: the connections of the process groups of a round, so that another thread can end
them. Gloo has no call that wakes a thread in a collective, nor has torch's store; the end of a
connection does. NCCL has one: its communicators are aborted at the same time.

C++ counterpart: worker_sdk/cpprun/dist/group/group_sockets.hpp.
"""

import contextlib
import functools
import os
import socket
import stat
import threading
import time

from . import _nccl

PAUSE = 0.02  # seconds between two checks of the connections of a group that is being made


class GroupSockets:
    """A connection is known by its inode, because descriptors are used again. It is shut down for
    reading only and stays open for its peer until forget(): Gloo (pair.cc) loses an error of a
    write, and a peer that wrote to a closed connection would wait until its timeout. Any thread."""

    def __init__(self):
        self._lock = threading.Lock()
        self._of_groups = set()
        self._of_store = set()
        self._before = []  # the connections before each group that is being made
        self._is_shut = False
        self._held = {}  # by inode: the connections that this process reads no more

    def follow_groups(self):
        """From now on the sockets that appear while torch makes a process group count."""
        from torch.distributed import distributed_c10d as c10d

        make = c10d._new_process_group_helper
        make = getattr(make, 'followed', make)  # an earlier training function of this process

        @functools.wraps(make)
        def follow(*args, **options):
            with self.appearing_of_groups():
                return make(*args, **options)

        follow.followed = make
        c10d._new_process_group_helper = follow

    def appearing_of_groups(self):
        return self.appearing(self._of_groups)

    def appearing_of_store(self):
        """While init_process_group() runs. Its connection to the store is shut down only while a
        group is being made."""
        return self.appearing(self._of_store)

    @contextlib.contextmanager
    def appearing(self, kind):
        """The connections that appear in the block, in whatever thread, become known as `kind`."""
        before = _inodes()
        with self._lock:
            self._before.append(before)
        try:
            yield
        finally:
            appeared = _inodes() - before
            with self._lock:
                self._before.remove(before)
                kind |= appeared - self._of_groups
                is_late = self._is_shut
                if is_late:
                    self._end_reading()
            if is_late:
                _nccl.abort_all()

    def shut(self):
        """No thread reads from the known connections any more, nor from those that become known
        until forget(). If a group is being made, which may wait for a worker that has died, returns
        when that has ended: the agent stops a process in which it does not."""
        _nccl.abort_all()
        while True:
            with self._lock:
                self._is_shut = True
                self._end_reading()
                if not self._before:
                    return
            time.sleep(PAUSE)

    def forget(self):
        """Another round begins: closes what was shut down, and no connection is known."""
        with self._lock:
            for duplicate in self._held.values():
                duplicate.close()
            self._held = {}
            self._of_groups.clear()
            self._of_store.clear()
            self._is_shut = False

    def _end_reading(self):
        for inode, duplicate in _connections():
            if inode not in self._held and self._is_to_end(inode):
                shut_down(duplicate, socket.SHUT_RD)
                self._held[inode] = duplicate
            else:
                duplicate.close()

    def _is_to_end(self, inode):
        if inode in self._of_groups:
            return True
        return any(inode in self._of_store or inode not in before for before in self._before)


def shut_down(connection, how=socket.SHUT_RDWR):
    try:
        connection.shutdown(how)
    except OSError:
        pass  # the peer has closed it


def _inodes():
    found = set()
    for inode, duplicate in _connections():
        found.add(inode)
        duplicate.close()
    return found


def _connections():
    """Yields (inode, a duplicate) of each TCP connection of this process. Listening sockets are
    left out: Gloo ends the process if one is shut down."""
    for name in os.listdir('/proc/self/fd'):
        duplicate = _duplicate(int(name))
        if duplicate is None:
            continue
        try:
            is_listening = duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
            duplicate.getpeername()
            inode = os.fstat(duplicate.fileno()).st_ino
        except OSError:
            is_listening = True  # or not connected
        if is_listening:
            duplicate.close()
        else:
            yield inode, duplicate


def _duplicate(descriptor):
    """Of a TCP socket; None for anything else."""
    try:
        if not stat.S_ISSOCK(os.fstat(descriptor).st_mode):
            return None
        copy = os.dup(descriptor)
    except OSError:
        return None
    made = socket.socket(fileno=copy)
    is_tcp = made.family in (socket.AF_INET, socket.AF_INET6) and made.type == socket.SOCK_STREAM
    if not is_tcp:
        made.close()
    return made if is_tcp else None
