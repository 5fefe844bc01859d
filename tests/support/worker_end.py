"""How workers with a process group over gloo end."""

import os
import sys


def end_worker():
    """Exit code 0, without Python's tear-down: torch 2.11 sometimes aborts while gloo's threads
    still run."""
    sys.stdout.flush()
    os._exit(0)
