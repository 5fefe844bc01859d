"""Names and operations in a folder of snapshots: drafts, locks, renames.
docs/reference/snapshots.md describes the format; the C++ counterpart is snapshot_files/folders.

Errors are SnapshotFileError: path, the system's message and the cure.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import operator
import os
import re
import secrets
import socket
import stat
import threading
import time
import zlib

from .archive import BIG, BLOCK

CURES = {
    errno.ENOSPC: 'free some there, keep fewer snapshots, or name another folder',
    errno.EDQUOT: 'free some there, keep fewer snapshots, or name another folder',
    errno.EROFS: 'name a folder that can be written',
    errno.EACCES: 'give this user the right, or name another folder',
    errno.EPERM: 'give this user the right, or name another folder',
    errno.ENOENT: 'check the path',
    errno.EIO: "the disk has failed, so look at the kernel's log",
    errno.ESTALE: 'the file server is gone or has restarted, so mount it again',
    errno.ETIMEDOUT: 'the file server is gone or has restarted, so mount it again',
    errno.EMFILE: 'raise the limit of open files (ulimit -n)',
}
# Bytes of one write. At its end the disk wakes the writing thread, which interrupts the training: a
# save of 1 GiB by two ranks takes a fifth less CPU time of each writing thread than with 16 MiB.
WRITE_MOST = 64 << 20
PIECES_MOST = 1024  # of one write; the kernel takes no more (IOV_MAX)
# A sweep that looks at a draft holds its lock for microseconds, unless the sweep is suspended.
LOCK_TAKES, LOCK_PAUSE = 1.0, 0.001  # seconds: in all, between two attempts
DIRECT_FROM = 1 << 20  # smaller writes gain nothing by bypassing the page cache
_STEP_NAME = re.compile(r'step-(0|[1-9][0-9]{0,18})\Z')
_DRAFT_NAME = re.compile(r'\..+\.([0-9a-f]{16})\.tmp\Z')
_LEFT_NAME = re.compile(r'left-step-(?:0|[1-9][0-9]{0,18})\.[0-9a-f]{16}\Z')
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


class SnapshotFileError(Exception):
    """A snapshot cannot be written or read. The text names the path and the cure."""


# A file system that has not answered for so long is not waited for at the end of the training. A
# sync may take minutes, and the hang detector takes a worker for hung after 5 minutes.
ANSWER_TAKES = 240  # seconds
_pending: dict[int, tuple[float, str]] = {}  # of each thread: when its last call ended, and a path


@contextlib.contextmanager
def waiting_for(path):
    """Calls of the file system, which may never return: other threads see that in unanswered().
    Where blocks are nested, the end of an inner one counts as an answer for the outer one."""
    thread = threading.get_ident()
    outer = _pending.get(thread)
    _pending[thread] = time.monotonic(), path
    try:
        yield
    finally:
        if outer:
            _pending[thread] = time.monotonic(), outer[1]
        else:
            del _pending[thread]


def unanswered(thread):
    """The path for which this thread has waited too long; None if it does not."""
    since, path = _pending.get(thread, (time.monotonic(), ''))
    return path if time.monotonic() - since > ANSWER_TAKES else None


@contextlib.contextmanager
def errors_of(doing, path):
    """Turns an OSError into a SnapshotFileError: "can't write PATH: No space left on device"."""
    try:
        with waiting_for(path):
            yield
    except OSError as error:
        cure = CURES.get(error.errno)
        text = f"can't {doing} {path}: {error.strerror or error}{'; ' + cure if cure else ''}"
        raise SnapshotFileError(text) from error


def is_same_path(one, other):
    return os.path.realpath(one) == os.path.realpath(other)


def snapshot_name(step):
    return f'step-{step}'


def step_of_name(name):
    """12 of "step-12"; None for names of another form, such as "step-012"."""
    match = _STEP_NAME.match(name)
    return int(match[1]) if match else None


def _this_boot():
    """Identifies this boot of this machine, as in C++: writers from before it are dead."""
    try:
        with open('/proc/sys/kernel/random/boot_id', 'rb') as file:
            boot = file.read().split()[0]
    except (OSError, IndexError):
        boot = socket.gethostname().encode()
    return f'{zlib.crc32(boot):08x}'


def make_nonce():
    """16 hex digits: half identify this boot, half are random."""
    return _this_boot() + secrets.token_hex(4)


def draft_path(folder, name, nonce):
    return f'{folder}/.{name}.{nonce}.tmp'


def nonce_of_draft(name):
    match = _DRAFT_NAME.match(name)
    return match[1] if match else None


def left_path(folder, name, nonce):
    """The path of a snapshot that is set aside."""
    return f'{folder}/left-{name}.{nonce}'


def is_left_name(name):
    return bool(_LEFT_NAME.match(name))


def is_of_this_boot(nonce):
    return nonce.startswith(_this_boot())


def sync_folder(path):
    with errors_of('bring to the disk', path):
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def make_folders(path):
    """Creates a folder and its parents, and brings each to the disk."""
    if os.path.lexists(path):
        return
    above = os.path.dirname(path) or '.'
    if above != path:
        make_folders(above)
    with errors_of('create', path):
        try:
            os.mkdir(path)
        except FileExistsError:
            return  # another rank was first
    sync_folder(above)


def rename(old, new):
    with errors_of(f'rename {old} to', new):
        os.rename(old, new)


def exchange(one, other):
    """Exchanges the names atomically. False: the file system or the C library cannot."""
    call = getattr(ctypes.CDLL(None, use_errno=True), 'renameat2', None)
    if call is None:
        return False
    old, new = os.fsencode(one), os.fsencode(other)
    if call(_AT_FDCWD, old, _AT_FDCWD, new, _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    with errors_of(f'exchange {one} and', other):
        raise OSError(number, os.strerror(number))


def remove_tree(path):
    """Removes a file, or a folder of files. A missing one counts as removed."""
    with errors_of('remove', path), contextlib.suppress(FileNotFoundError):
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            os.unlink(path)
            return
        for name in os.listdir(path):
            with contextlib.suppress(IsADirectoryError, FileNotFoundError):
                os.unlink(f'{path}/{name}')
        os.rmdir(path)


def changed_at(path):
    """Seconds since 1970 of the last change of anything in a draft; None: gone or inaccessible."""
    try:
        info = os.lstat(path)
        newest = info.st_mtime
        if stat.S_ISDIR(info.st_mode):
            for name in os.listdir(path):
                with contextlib.suppress(FileNotFoundError):
                    newest = max(newest, os.lstat(f'{path}/{name}').st_mtime)
        return newest
    except OSError:
        return None


class Lock:
    """Marks a file or folder as in use, for all processes of this machine, until close(). Without
    effect on file systems that have no locks."""

    def __init__(self, path):
        self._descriptor = -1
        with contextlib.suppress(OSError):
            self._descriptor = os.open(path, os.O_RDONLY)
            deadline = time.monotonic() + LOCK_TAKES
            while not self._is_taken() and time.monotonic() < deadline:
                time.sleep(LOCK_PAUSE)

    def _is_taken(self):
        """False: a sweep looks at the lock, as is_locked() does."""
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def close(self):
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def is_locked(path):
    """True or False; None: the file system has no locks."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except BlockingIOError:
        return True
    except OSError:
        return None
    finally:
        os.close(descriptor)


class OutputFile:
    """A file of a draft that this process writes. Big writes bypass the page cache where the file
    system allows it: a copy into the cache costs a training as much as the copy of its state."""

    def __init__(self, path, is_new):
        self.path = path
        self._direct = None  # the same file with O_DIRECT; -1: not supported
        flags = os.O_RDWR | (os.O_CREAT | os.O_EXCL if is_new else os.O_NOFOLLOW)
        with errors_of('create' if is_new else 'open', path):
            self._descriptor = os.open(path, flags, 0o666)

    def reserve(self, size):
        """Reserves the space, so that a full disk fails here and not between the writes."""
        with errors_of(f'reserve {size} bytes for', self.path):
            if size and not _allocate(self._descriptor, size):
                os.ftruncate(self._descriptor, size)

    def write_at(self, offset, content):
        self.write_all([(offset, content)])

    def write_all(self, pieces):
        """Writes (offset, bytes) in the order of the offsets; what lies without gaps, together:
        calls for a thousand small pieces cost more than their bytes."""
        run, begin, size = [], 0, 0
        for offset, content in sorted(pieces, key=operator.itemgetter(0)):
            if offset != begin + size or size >= WRITE_MOST or len(run) == PIECES_MOST:
                self._write_run(begin, run)
                run, begin, size = [], offset, 0
            run.append(memoryview(content))
            size += len(content)
        self._write_run(begin, run)

    def _write_run(self, offset, run):
        """Writes memoryviews one behind the other."""
        if offset % BLOCK == 0 and sum(map(len, run)) >= DIRECT_FROM:
            done = self._write_directly(offset, _whole_blocks(run))
            offset, run = offset + done, _behind(run, done)
        while run:
            with errors_of('write', self.path):
                done = os.pwritev(self._descriptor, _first(run, WRITE_MOST), offset)
            offset, run = offset + done, _behind(run, done)

    def _write_directly(self, offset, run):
        """The bytes written. An error ends it early, for example with memory or a file system that
        does not support it: the ordinary write continues there, and reports the error."""
        if self._direct is None:
            try:
                self._direct = os.open(self.path, os.O_WRONLY | os.O_DIRECT | os.O_NOFOLLOW)
            except OSError:
                self._direct = -1
        done = 0
        while self._direct >= 0 and run:
            try:
                with waiting_for(self.path):
                    put = os.pwritev(self._direct, _first(run, WRITE_MOST), offset + done)
            except OSError:
                return done
            done += put
            if put % BLOCK or not put:
                return done
            run = _behind(run, put)
        return done

    def sync(self):
        with errors_of('bring to the disk', self.path):
            os.fdatasync(self._descriptor)

    def close(self):
        direct, self._direct = self._direct, -1
        descriptor, self._descriptor = self._descriptor, -1
        for each in (direct, descriptor):
            if each is not None and each >= 0:
                os.close(each)


def _first(run, size):
    """At most `size` bytes of memoryviews, from the front."""
    taken = []
    for view in run:
        if size <= 0:
            break
        taken.append(view[:size])
        size -= len(view)
    return taken


def _behind(run, size):
    """Memoryviews without their first `size` bytes."""
    for i, view in enumerate(run):
        if size < len(view):
            return [view[size:], *run[i + 1 :]]
        size -= len(view)
    return []


def _whole_blocks(run):
    """The whole blocks at the front of memoryviews. O_DIRECT needs aligned memory, as big storages
    have in an arena: copies what is smaller, such as the headers between them."""
    copies = sum(len(view) for view in run if len(view) < BIG)
    memory = memoryview(mmap.mmap(-1, copies)) if copies else memoryview(bytearray())
    blocks, used = [], 0
    for view in run:
        size = len(view) // BLOCK * BLOCK
        whole = view[:size]
        if size < BIG:
            memory[used : used + size] = whole
            whole = memory[used : used + size]
            used += size
        blocks.append(whole)
        if size < len(view):
            break
    return blocks


def _allocate(descriptor, size):
    """False: the file system has no fallocate. glibc's posix_fallocate would write the zeros."""
    call = getattr(ctypes.CDLL(None, use_errno=True), 'fallocate', None)
    if call is None:
        return False
    call.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
    if call(descriptor, 0, 0, size) == 0:
        return True
    number = ctypes.get_errno()
    if number in (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP):
        return False
    raise OSError(number, os.strerror(number))
