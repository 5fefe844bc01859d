"""Files and processes after a launch: none after success, logs after a failure."""

import pathlib
import re
import signal

import pytest
from conftest import BIN, cgroup_folders, free_port, poll, read_bytes

TRACE = 'echo "port $MASTER_PORT token $CPPRUN_TOKEN"\n'


def expect_no_traces(jobs, running):
    port, token = re.search(r'port (\d+) token (\w+)', running.out).groups()
    assert jobs.wait_until_gone() == []
    poll(lambda: not cgroup_folders(token), 2, f'the end of the cgroup of {token}')
    assert f'@cpprun/port/{port}\n' not in read_bytes('/proc/net/unix').decode(errors='replace')
    assert not pathlib.Path('/dev/shm', token).exists()


def test_nothing_after_success(jobs):
    running = jobs.cpprun('--nproc-per-node=2', '--tee=3', jobs.sh(TRACE + 'echo err >&2'))
    assert running.done(20) == 0, running.output
    assert list(jobs.tmp.iterdir()) == []
    assert 'kept' not in running.err
    expect_no_traces(jobs, running)


def test_logs_of_a_failure_are_kept_and_named(jobs):
    worker = jobs.sh(TRACE + 'echo reason >&2; exit 3')
    running = jobs.cpprun('--nproc-per-node=2', '--tee=3', worker)
    assert running.done(20) == 1, running.output
    folder = pathlib.Path(re.search(r'^  logs +(\S+)', running.err, re.M)[1])
    assert jobs.tmp in folder.parents
    logs = [(folder / 'latest' / str(rank) / 'stderr.log').read_text() for rank in range(2)]
    assert 'reason\n' in logs, 'the worker that failed later may have been stopped before'
    assert len(list(jobs.tmp.iterdir())) == 1
    expect_no_traces(jobs, running)


def test_error_file_of_a_failure_is_kept_and_named(jobs):
    code = """printf '{"message": "boom"}' >"$TORCHELASTIC_ERROR_FILE"; exit 3"""
    running = jobs.cpprun(jobs.sh(TRACE + code))
    assert running.done(20) == 1, running.output
    named = re.search(r'error_file: (\S+)', running.err)[1]
    assert 'boom' in pathlib.Path(named).read_text()
    assert re.search(r'^  logs +\S+', running.err, re.M)


def node_check(jobs, end):
    check = jobs.sh(f'setsid sleep 60 & sleep 60 & echo x >"$MARKS/up"; {end}')
    return f'--node-check={check}'


def test_nothing_after_a_node_check_that_fails(jobs):
    running = jobs.cpprun('--standalone', node_check(jobs, 'exit 3'), jobs.sh('exit 0'))
    assert running.done(20) == 1, running.output
    assert 'the node check (--node-check) failed' in running.err
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_nothing_after_a_signal_during_a_node_check(jobs, number):
    running = jobs.cpprun('--standalone', node_check(jobs, 'exec sleep 60'), jobs.sh('exit 0'))
    jobs.mark('up')
    running.send(number)
    assert running.done(20) != 0, running.output
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('end', ['exit 3', 'kill -9 $$'])
def test_failure_without_logs_leaves_no_folder(jobs, end):
    running = jobs.cpprun(jobs.sh(TRACE + end))
    assert running.done(20) == 1, running.output
    assert list(jobs.tmp.iterdir()) == []
    assert 'kept' not in running.err
    expect_no_traces(jobs, running)


def test_folder_of_the_user_is_kept_and_not_named(jobs):
    running = jobs.cpprun('--log-dir=logs', '--tee=3', jobs.sh(TRACE + 'exit 3'))
    assert running.done(20) == 1, running.output
    assert list(jobs.folder.glob('logs/*/attempt_0/0/stdout.log'))
    assert list(jobs.tmp.iterdir()) == []


def test_nothing_after_a_signal(jobs):
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(TRACE + 'sleep 60'))
    running.wait_for_all('^port', 2)
    running.send(signal.SIGTERM)
    assert running.done(20) == 128 + signal.SIGTERM
    assert list(jobs.tmp.iterdir()) == []
    expect_no_traces(jobs, running)


def test_only_files_after_sigkill(jobs):
    running = jobs.cpprun('--nproc-per-node=2', jobs.sh(TRACE + 'sleep 60'))
    running.wait_for_all('^port', 2)
    running.process.kill()
    running.process.wait()
    expect_no_traces(jobs, running)


def test_nothing_when_a_port_is_taken(jobs):
    port = free_port()
    server = jobs.start(BIN / 'cpprunctl', 'serve', '--listen', f'127.0.0.1:{port}')
    server.wait_for('serving')
    meet = ('--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{port}', '--rdzv-conf=is_host=1')
    for args in (meet, (f'--master-port={port}',)):
        running = jobs.cpprun(*args, jobs.sh(':'))
        assert running.done(20) == 1, running.output
        assert list(jobs.tmp.iterdir()) == []


def test_nothing_when_the_program_cannot_be_started(jobs):
    path = jobs.folder / 'broken'
    path.write_bytes(b'\x7fELF junk')
    path.chmod(0o755)
    running = jobs.cpprun('--nproc-per-node=2', path)
    assert running.done(20) == 1, running.output
    assert list(jobs.tmp.iterdir()) == []


def test_successful_run_prints_nothing(jobs):
    running = jobs.cpprun(jobs.sh('echo words'))
    assert running.done(20) == 0
    assert running.out == 'words\n'
    assert running.err == ''
