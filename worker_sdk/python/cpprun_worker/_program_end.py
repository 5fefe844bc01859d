"""The end of a program that has saved on a stop request."""

import atexit
import os
import sys
import threading

_exit_codes = []  # not empty after end_program()


def end_program(code):
    """Ends it as sys.exit() does, with the handlers of the program. Then the process ends without
    the interpreter's tear-down, in which torch sometimes aborts while Gloo's threads still run: the
    exit code would be lost. Handlers of atexit run if they were registered after the import of
    cpprun_worker."""
    _exit_codes.append(code)
    if threading.current_thread() is not threading.main_thread():
        _leave()  # the exception would end this thread only
    sys.exit(code)


@atexit.register
def _leave():
    if not _exit_codes:
        return
    from ._snapshot.background import wait_for_all

    wait_for_all()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass  # closed
    os._exit(_exit_codes[-1])
