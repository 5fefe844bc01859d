"""Jobs whose workers are channel_worker (tests/support/channel_worker.cpp), a program that uses the
worker library as its arguments name it."""

import pytest
from launches import BIN

WORKER = BIN / 'channel_worker'


@pytest.fixture(autouse=True)
def built():
    if not WORKER.exists():
        pytest.skip(f'{WORKER} is not built')


def workers(jobs, n, *args, flags=(), **options):
    """Starts n workers with these arguments."""
    command = ('--standalone', f'--nproc-per-node={n}', *flags, '--no-python', WORKER, *args)
    return jobs.cpprun(*command, **options)
