"""A thread for work that training does not wait for."""

from __future__ import annotations

import atexit
import os
import queue
import signal
import threading
import weakref
from typing import Any, Callable

from .files import unanswered

_LOOK_S = 1.0
_NICE = 10  # training comes first
_all: weakref.WeakSet[BackgroundThread] = weakref.WeakSet()


def in_background(call: Callable[..., Any], *args: Any) -> None:
    """The work of a thread. Handlers of the program run in other threads."""
    signal.pthread_sigmask(signal.SIG_SETMASK, signal.valid_signals())
    try:
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICE)
    except OSError:
        pass  # not allowed to: at the same priority then
    call(*args)


class BackgroundThread:
    """Runs one call at a time. The thread stays for the next call, because starting one takes
    milliseconds, for which training would wait. The process ends after the running call."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._is_idle = threading.Event()
        self._is_idle.set()
        self._thread: threading.Thread | None = None
        self._process = os.getpid()
        weakref.finalize(self, self._calls.put, None)  # ends the thread
        _all.add(self)

    def start(self) -> None:
        """Makes the thread, if it is not there."""
        if self._thread is None or not self._thread.is_alive():
            work = (_run_calls, self._calls, self._is_idle)
            self._thread = threading.Thread(
                target=in_background, args=work, name=self._name, daemon=True
            )
            self._thread.start()

    def run(self, call: Callable[..., Any], *args: Any) -> None:
        """Requires: it is not busy."""
        self.start()
        self._is_idle.clear()
        self._calls.put((call, args))

    @property
    def is_busy(self) -> bool:
        return not self._is_idle.is_set()

    def wait(self) -> str | None:
        """Until it is idle, or waits for a file system that does not answer: then the path."""
        if self._process != os.getpid():  # the thread is another process's
            return None
        while not self._is_idle.wait(_LOOK_S):
            path = self._thread and unanswered(self._thread.ident)
            if path:
                return path
        return None


def _run_calls(calls, is_idle):
    while (each := calls.get()) is not None:
        call, args = each
        try:
            call(*args)
        finally:
            each = call = args = None  # a waiting thread keeps no tensor
            is_idle.set()


@atexit.register
def wait_for_all() -> None:
    """Until no call runs, but for those that wait for a file system that does not answer."""
    for _ in range(2):  # a call may begin one in another thread
        for each in list(_all):
            each.wait()
