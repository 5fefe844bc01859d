"""The variables that a launcher sets. C++ counterpart: worker_sdk/cpprun/worker/environment.hpp."""

import os


def number(name, default):
    """ValueError: names the variable and its value."""
    try:
        return int(os.environ.get(name, default))
    except ValueError:
        raise ValueError(f'{name} is {os.environ[name]!r}, which is no number') from None
