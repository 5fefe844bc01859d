"""What /proc shows of a process: children, sockets, memory, CPU time, environment."""

import os
import pathlib
import re

from launches import poll, read_bytes

ESTABLISHED, LISTENING = '01', '0A'  # states in /proc/net/tcp


def children_of(pid):
    """Process ids of its children, of all threads."""
    found = []
    for path in pathlib.Path(f'/proc/{pid}/task').glob('*/children'):
        found += [int(word) for word in read_bytes(path).split()]
    return found


def is_reaper(pid):
    return read_bytes(f'/proc/{pid}/comm') == b'cpprun-reaper\n'


def reaper_of(pid):
    """The reaper process of a launcher, as soon as it runs."""
    return poll(lambda: next(filter(is_reaper, children_of(pid)), None), what='its reaper process')


def tcp_sockets(pid, state):
    """Local addresses as (address in hex, port) of the TCP sockets that the process holds."""
    inodes = set()
    for name in os.listdir(f'/proc/{pid}/fd'):
        try:
            inodes.update(re.findall(r'socket:\[(\d+)\]', os.readlink(f'/proc/{pid}/fd/{name}')))
        except OSError:
            pass
    found = []
    for table in ('tcp', 'tcp6'):
        for line in read_bytes(f'/proc/{pid}/net/{table}').decode().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                address, port = fields[1].split(':')
                found.append((address, int(port, 16)))
    return found


def memory_kib(pid, field='VmRSS'):
    """A field of /proc/PID/status; by default the resident memory."""
    status = read_bytes(f'/proc/{pid}/status').decode()
    return int(re.search(rf'^{field}:\s+(\d+) kB', status, re.MULTILINE)[1])


def cpu_seconds(pid):
    fields = read_bytes(f'/proc/{pid}/stat').rsplit(b')', 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf('SC_CLK_TCK')


def environment_of(pid):
    """The variables with which its program was started."""
    entries = read_bytes(f'/proc/{pid}/environ').decode().split('\0')
    return dict(entry.split('=', 1) for entry in entries if '=' in entry)
