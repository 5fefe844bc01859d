"""A program on a terminal of its own."""

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios

from launches import poll


def set_size(terminal, rows, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack('HHHH', rows, columns, 0, 0))


class Terminal:
    """The program and its output. Options: those of Popen, such as another stderr."""

    def __init__(self, command, columns=111, **options):
        self.terminal, other = pty.openpty()
        set_size(self.terminal, 33, columns)
        self.shown = b''
        streams = {'stdin': subprocess.DEVNULL, 'stdout': other, 'stderr': other}
        self.process = subprocess.Popen(command, start_new_session=True, **{**streams, **options})
        os.close(other)

    def read(self):
        """All output so far; ended programs show nothing new."""
        while select.select([self.terminal], [], [], 0)[0]:
            try:
                self.shown += os.read(self.terminal, 65536)
            except OSError:  # EIO: no writer is left
                break
        return self.shown

    def wait_for(self, text):
        poll(lambda: text in self.read(), 60, lambda: f'{text} in {self.shown}')

    def done(self):
        poll(lambda: self.read() is not None and self.process.poll() is not None, 60, 'its end')
        self.read()
        return self.process.returncode

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.terminal)
