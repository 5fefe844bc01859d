"""cpprun by the name torchrun, and the link that cpprunctl makes."""

import os
import shutil
import signal
import subprocess

import pytest
from conftest import BIN, poll, skip_unless_built


@pytest.fixture
def home(tmp_path):
    """A folder with both programs."""
    skip_unless_built()
    for name in ('cpprun', 'cpprunctl'):
        shutil.copy(BIN / name, tmp_path / name)
    return tmp_path


def install(home, *args):
    command = [home / 'cpprunctl', 'install-as', 'torchrun', *args]
    return subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)


def test_link_is_made_again_and_removed(home):
    for _ in range(2):
        assert install(home).returncode == 0
        assert os.readlink(home / 'torchrun') == str(home / 'cpprun')
    assert install(home, '--undo').returncode == 0
    assert not (home / 'torchrun').exists()
    again = install(home, '--undo')
    assert again.returncode == 1
    assert 'is not a link that cpprunctl install-as has made' in again.stderr


def test_file_of_another_package_stays(home):
    (home / 'torchrun').write_text('#!/bin/sh\n')
    for args in ((), ('--undo',)):
        refused = install(home, *args)
        assert refused.returncode == 1 and refused.stderr.startswith('error: '), refused.stderr
    assert (home / 'torchrun').read_text() == '#!/bin/sh\n'
    other = home / 'other'
    other.mkdir()
    assert install(home, '--dir', other).returncode == 0
    assert (other / 'torchrun').resolve() == home / 'cpprun'


def test_other_names_are_refused(home):
    command = [home / 'cpprunctl', 'install-as', 'python']
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    assert done.returncode == 2 and 'torchrun' in done.stderr


def torchrun(jobs, home, *args):
    assert install(home).returncode == 0
    return jobs.start(home / 'torchrun', *args, is_split=True)


def test_torchruns_block_alone_is_printed(jobs, home):
    job = torchrun(jobs, home, '--standalone', '--no-python', jobs.sh('exit 7'))
    assert job.done(60) == 1, job.output
    assert 'Root Cause (first observed failure):' in job.err
    assert 'error: ' not in job.err, 'no summary of our own'


def test_the_agent_serves_the_store(jobs, home):
    worker = jobs.sh('echo "store $TORCHELASTIC_USE_AGENT_STORE"')
    job = torchrun(jobs, home, '--standalone', '--no-python', worker)
    assert job.done(60) == 0, job.output
    assert job.out == 'store True\n'


def test_exit_code_after_a_signal_is_1(jobs, home):
    worker = jobs.sh('echo $$ >"$MARKS/up"; exec sleep 600')
    job = torchrun(jobs, home, '--standalone', '--no-python', worker)
    jobs.mark('up')
    job.send(signal.SIGTERM)
    assert job.done(60) == 1, job.output
    poll(lambda: jobs.wait_until_gone() == [], 20, 'all processes are gone')
