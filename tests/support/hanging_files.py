"""File systems that misbehave. For /usr/bin/python3 with python3-fusepy; ends with its mount or by
SIGTERM.

    hanging_files.py FOLDER
        has two files, as on a file server that does not answer: `stuck` can be opened and never
        read, `sink` can be read and never written. SIGKILL does not end a process inside write()
        of `sink`
    hanging_files.py FOLDER BEHIND OPERATION...
        shows the folder BEHIND, and never answers the OPERATIONs (unlink, rmdir). A file that is
        removed while it is open stays as .fuse_hidden... until its last close
    hanging_files.py FOLDER BEHIND slow:SECONDS
        answers every operation after SECONDS while the file BEHIND.slow exists, else at once. If
        that file names operations, these only
"""

import errno
import os
import stat
import sys
import threading
import time

import fusepy as fuse  # as Debian names it


class StuckFiles(fuse.Operations):
    def getattr(self, path, fh=None):
        if path == '/':
            return {'st_mode': stat.S_IFDIR | 0o755, 'st_nlink': 2}
        if path in ('/stuck', '/sink'):
            return {'st_mode': stat.S_IFREG | 0o644, 'st_nlink': 1, 'st_size': 1 << 20}
        raise fuse.FuseOSError(errno.ENOENT)

    def readdir(self, path, fh):
        return ['.', '..', 'stuck', 'sink']

    def read(self, path, size, offset, fh):
        if path == '/sink':
            return bytes(size)
        threading.Event().wait()

    def write(self, path, data, offset, fh):
        threading.Event().wait()


class ShownFolder(fuse.Operations):
    SHOWN = tuple(f'st_{name}' for name in 'mode nlink uid gid size atime mtime ctime'.split())

    def __init__(self, behind, unanswered):
        self.behind = behind
        self.unanswered = unanswered
        self.seconds = sum(int(w[5:]) for w in unanswered if w.startswith('slow:'))

    def __call__(self, operation, path, *rest):
        if operation in self.unanswered:
            threading.Event().wait()
        if self.seconds and self.is_slow(operation):
            time.sleep(self.seconds)
        return super().__call__(operation, self.behind + path, *rest)

    def is_slow(self, operation):
        try:
            with open(self.behind + '.slow', encoding='utf-8') as names:
                named = names.read().split()
        except FileNotFoundError:
            return False
        return not named or operation in named

    def getattr(self, path, fh=None):
        found = os.lstat(path)
        return {name: getattr(found, name) for name in self.SHOWN}

    def readdir(self, path, fh):
        return ['.', '..', *os.listdir(path)]

    def mkdir(self, path, mode):
        os.mkdir(path, mode)

    def rmdir(self, path):
        os.rmdir(path)

    def unlink(self, path):
        os.unlink(path)

    def rename(self, old, new):
        os.rename(old, self.behind + new)

    def symlink(self, target, source):
        os.symlink(source, target)

    def readlink(self, path):
        return os.readlink(path)

    def chmod(self, path, mode):
        os.chmod(path, mode)

    def truncate(self, path, length, fh=None):
        os.truncate(path, length)

    def utimens(self, path, times=None):
        os.utime(path, times)

    def open(self, path, flags):
        return os.open(path, flags & ~os.O_APPEND)  # writes carry their offset

    def create(self, path, mode, fi=None):
        return os.open(path, os.O_RDWR | os.O_CREAT, mode)

    def read(self, path, size, offset, fh):
        return os.pread(fh, size, offset)

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def release(self, path, fh):
        os.close(fh)


if __name__ == '__main__':
    folder, *rest = map(os.path.abspath, sys.argv[1:3])
    files = ShownFolder(rest[0], sys.argv[3:]) if rest else StuckFiles()
    fuse.FUSE(files, folder, foreground=True, allow_other=True)
