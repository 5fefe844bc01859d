"""Time, processes and ports of this machine; independent of what is measured."""

import collections
import os
import pathlib
import re
import select
import signal
import socket
import time


def outer_environment():
    """The environment without what sets up a launcher that may run this program. Python may write
    bytecode: without it each process compiles what it imports, which users' processes do not."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(('PET_', 'CPPRUN_'))}
    kept.pop('PYTHONDONTWRITEBYTECODE', None)
    return kept


def now():
    """Nanoseconds of the clock that the stamps use."""
    return time.monotonic_ns()


def ms(begin, end):
    return (end - begin) / 1e6


def wait_until(check, seconds, step=0.003):
    """Polls check(); returns its first true result, or None after `seconds`."""
    end = time.monotonic() + seconds
    while not (got := check()):
        if time.monotonic() > end:
            return None
        time.sleep(step)
    return got


def read(path):
    """The file's text; '' if it is missing or not readable."""
    try:
        return pathlib.Path(path).read_text(errors='replace')
    except OSError:
        return ''


def stat_fields(pid):
    """The fields of /proc/PID/stat after the name: state, parent, ...; empty if it is gone."""
    return read(f'/proc/{pid}/stat').rpartition(')')[2].split()


def is_alive(pid):
    fields = stat_fields(pid)
    return bool(fields) and fields[0] not in 'ZX'


def kill_program(pid, program, number=signal.SIGKILL):
    """Signals a process only if it still runs this program: pids are reused."""
    try:
        if os.readlink(f'/proc/{pid}/exe') == str(program):
            os.kill(pid, number)
    except OSError:
        pass


def with_descendants(roots):
    """These processes and all their descendants."""
    children = collections.defaultdict(list)
    for name in os.listdir('/proc'):
        if name.isdigit() and (fields := stat_fields(name)):
            children[int(fields[1])].append(int(name))
    found, queue = [], list(roots)
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue += children[pid]
    return found


def rss_mib(pid):
    found = re.search(r'^VmRSS:\s+(\d+) kB', read(f'/proc/{pid}/status'), re.MULTILINE)
    return int(found[1]) / 1024 if found else 0


def cpu_us(pid):
    """CPU time so far of a process' running threads, in µs."""
    files = pathlib.Path(f'/proc/{pid}/task').glob('*/schedstat')
    return sum(int(words[0]) for file in files if (words := read(file).split())) / 1000


def wake_ups(pids):
    """The number of voluntary context switches of their threads so far."""
    files = [file for pid in pids for file in pathlib.Path(f'/proc/{pid}/task').glob('*/status')]
    pattern = re.compile(r'^voluntary_ctxt_switches:\s+(\d+)', re.MULTILINE)
    return sum(int(number) for file in files for number in pattern.findall(read(file)))


# The end of a child: exit code (None: still running), the time when it was seen, and the CPU time
# in ms of itself and of all children that it has waited for.
End = collections.namedtuple('End', 'code ns cpu_ms')


def wait_for_end(process, seconds):
    """The End of a child that has not been waited for."""
    fd, poll = os.pidfd_open(process.pid), select.poll()  # Popen.wait(timeout) polls too rarely
    poll.register(fd, select.POLLIN)
    has_ended, seen = poll.poll(seconds * 1000), now()
    os.close(fd)
    if not has_ended:
        return End(None, seen, 0)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return End(process.returncode, seen, (usage.ru_utime + usage.ru_stime) * 1000)


def stop(process):
    if process.poll() is None:
        process.kill()
        process.wait()


def free_port():
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def answers(port, host='127.0.0.1'):
    try:
        socket.create_connection((host, port), 1).close()
        return True
    except OSError:
        return False
