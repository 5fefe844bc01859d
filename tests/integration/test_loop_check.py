"""The check that no loop blocks (tests/support/loop_check.cpp) refuses what may block, and only on
loops. tools/test.sh runs other tests of this folder with a cpprun that it is linked into."""

import signal
import subprocess

import pytest
from conftest import BIN
from launches import SLOWEST

PROBE = (BIN if BIN.name == 'checked' else BIN / 'checked') / 'loop_probe'
REFUSED = ('open', 'rename', 'unlink', 'mkdir', 'stat', 'fsync', 'wait', 'sleep', 'write', 'lookup')
MADE = ('wait-nohang', 'unblocking', 'thread', 'child', 'unmarked', 'write-pipe', 'lookup-number')


def probe(call, folder):
    if not PROBE.exists():
        pytest.skip(f'{PROBE} is not built')
    return subprocess.run([PROBE, call, folder], capture_output=True, text=True,
                          timeout=30 * SLOWEST, check=False)


@pytest.mark.parametrize('call', REFUSED)
def test_refused_on_a_loop(call, tmp_path):
    done = probe(call, tmp_path)
    assert done.returncode == -signal.SIGABRT, done.stderr
    assert 'cpprun: loop check: a loop called ' in done.stderr
    assert 'main' in done.stderr, 'the backtrace names the caller'
    assert 'made' not in done.stdout


@pytest.mark.parametrize('call', MADE)
def test_calls_that_do_not_block_are_allowed(call, tmp_path):
    done = probe(call, tmp_path)
    assert (done.returncode, done.stdout) == (0, 'made\n'), done.stderr
