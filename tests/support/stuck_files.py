"""A file system whose one file, `stuck`, can be opened and never read: as that of a file server
which has gone. For /usr/bin/python3 with python3-fusepy; ends with its mount or by SIGTERM.

    stuck_files.py FOLDER
"""

import errno
import os
import stat
import sys
import threading

import fusepy as fuse  # as Debian names it


class StuckFiles(fuse.Operations):
    def getattr(self, path, fh=None):
        if path == '/':
            return {'st_mode': stat.S_IFDIR | 0o755, 'st_nlink': 2}
        if path == '/stuck':
            return {'st_mode': stat.S_IFREG | 0o644, 'st_nlink': 1, 'st_size': 1 << 20}
        raise fuse.FuseOSError(errno.ENOENT)

    def readdir(self, path, fh):
        return ['.', '..', 'stuck']

    def read(self, path, size, offset, fh):
        threading.Event().wait()


if __name__ == '__main__':
    fuse.FUSE(StuckFiles(), os.path.abspath(sys.argv[1]), foreground=True, allow_other=True)
