"""Traces a process and holds it at its exit: not even SIGKILL ends it before this tracer ends.

    exit_tracer.py PID

Prints `seized`, then `held` once PID is at its exit. Ends when its stdin does.
"""

import ctypes
import os
import signal
import sys
import threading

PTRACE_CONT = 7
PTRACE_SEIZE = 0x4206
PTRACE_LISTEN = 0x4208
PTRACE_O_TRACEEXIT = 1 << 6
PTRACE_EVENT_EXIT = 6
PTRACE_EVENT_STOP = 128
WALL = 0x40000000

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
libc.ptrace.restype = ctypes.c_long


def ptrace(request, pid, data=0):
    if libc.ptrace(request, pid, None, data) < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def trace(pid):
    """Forwards signals until the process is at its exit, and leaves it there."""
    ptrace(PTRACE_SEIZE, pid, PTRACE_O_TRACEEXIT)
    print('seized', flush=True)
    while True:
        _, status = os.waitpid(pid, WALL)
        if not os.WIFSTOPPED(status):
            return
        event = status >> 16
        if event == PTRACE_EVENT_EXIT:
            print('held', flush=True)
            return
        if event == PTRACE_EVENT_STOP and os.WSTOPSIG(status) != signal.SIGTRAP:
            ptrace(PTRACE_LISTEN, pid)  # a group stop
        else:
            ptrace(PTRACE_CONT, pid, 0 if event else os.WSTOPSIG(status))


def end_with_stdin():
    sys.stdin.read()
    os._exit(0)


if __name__ == '__main__':
    threading.Thread(target=end_with_stdin, daemon=True).start()
    trace(int(sys.argv[1]))
    threading.Event().wait()
