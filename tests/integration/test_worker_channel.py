"""The connection between agent and worker with real processes: channel_worker uses the SDK's side
of it, small Python workers misuse it."""

import re
import signal
import time

import pytest
from channel_workers import WORKER, built, workers  # noqa: F401
from conftest import kill, poll
from process_info import cpu_seconds, environment_of

INFO = {'LOGLEVEL': 'INFO'}

# Connects to the agent's socket as often as requested, and sends arbitrary bytes.
HOSTILE = """
import os, socket, time
name = '\\0' + os.environ['CPPRUN_AGENT']
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.settimeout(5)
    s.connect(name)
    return s
def mark(name):
    open(os.environ['MARKS'] + '/' + name, 'w').write('x')
def marked(name):
    return os.path.exists(os.environ['MARKS'] + '/' + name)
"""


def agents_name(jobs):
    """CPPRUN_AGENT of the worker that left its mark."""
    worker = int(jobs.mark('worker'))
    return environment_of(worker)['CPPRUN_AGENT']


def test_all_ready_is_recorded_with_the_time(jobs):
    job = workers(jobs, 3, 'agent', 'ready', env=INFO)
    assert job.done() == 0
    assert sorted(job.out.splitlines()) == [f'rank {r}: agent' for r in range(3)]
    assert len(re.findall(r'all 3 workers are ready, 0\.\d{3} s after', job.err)) == 1
    assert workers(jobs, 1, 'agent').done() == 0


def test_incomplete_readiness_is_not_recorded(jobs):
    job = workers(jobs, 2, 'agent', 'only=1', 'ready', 'ready', env=INFO)
    assert job.done() == 0
    assert 'ready' not in job.err


def test_successful_run_prints_nothing(jobs):
    job = workers(jobs, 2, 'beat=3', 'ready', env={'OMP_NUM_THREADS': '1'})
    assert job.done() == 0
    assert job.output == ''


def test_without_an_agent_nothing_happens(jobs):
    args = ('agent', 'beat=3', 'ready', 'report=x', 'exit=0')
    assert jobs.run(WORKER, *args) == (0, 'rank 0: no agent\n')
    name = {'CPPRUN_AGENT': 'cpprun/agent/none'}
    assert jobs.run(WORKER, *args, env=name) == (0, 'rank 0: no agent\n')


def test_last_heartbeat_of_a_failed_worker_is_reported(jobs):
    job = workers(jobs, 2, 'only=1', 'beat=41', 'beat=42', 'exit=3', env=INFO)
    assert job.done() == 1
    assert 'local rank 1 was at step 42 after 0 collectives; its last heartbeat came 0.' in job.err
    assert 'local rank 0 was' not in job.err


def test_final_report_is_in_the_summary(jobs):
    job = workers(jobs, 2, 'only=1', 'report=ValueError: no such sample', 'exit=3')
    assert job.done() == 1
    assert '  cause     ValueError: no such sample' in job.err
    assert re.search(r'error_file: <N/A>\n  traceback : ValueError: no such sample', job.err)


def test_error_file_overrides_the_final_report(jobs):
    code = f'echo \'{{"message": "from the file"}}\' > $TORCHELASTIC_ERROR_FILE; exec {WORKER} "$@"'
    script = jobs.sh(code)
    args = ('--standalone', '--no-python', script, 'report=from the channel', 'exit=3')
    job = jobs.cpprun(*args)
    assert job.done() == 1
    assert 'from the file' in job.err
    assert 'from the channel' not in job.err


def test_stop_request_precedes_sigterm(jobs):
    args = ('ignore-term', 'agent', 'mark=worker', 'await-stop', 'await-term')
    job = workers(jobs, 2, *args)
    job.wait_for_all('agent', 2)
    job.send(signal.SIGTERM)
    assert job.done(20) == 128 + signal.SIGTERM
    assert job.out.count('TERM, asked before') == 2
    assert job.out.count('stopping') == 2


def test_others_are_asked_to_stop_when_one_fails(jobs):
    script = jobs.sh(
        f'[ $LOCAL_RANK = 0 ] || exec {WORKER} ignore-term agent mark=ready await-stop\n'
        'while [ ! -s $MARKS/ready ]; do sleep 0.01; done; exit 7'
    )
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', '--no-python', script)
    assert job.done(20) == 1
    assert 'rank 1: stopping' in job.out


def test_restarted_worker_is_not_asked_to_stop(jobs):
    script = jobs.sh(
        f'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then {WORKER} beat=5; exit 3; fi\n'
        f'exec {WORKER} agent ignore-term mark=second await=go exit=0'
    )
    flags = ('--standalone', '--max-restarts=1', '--nproc-per-node=2', '--no-python')
    job = jobs.cpprun(*flags, script, env=INFO)
    jobs.mark('second')
    (jobs.marks / 'go').write_text('x')
    assert job.done() == 0
    assert 'at step 5' in job.err
    assert 'TERM' not in job.out


def test_children_are_accepted_and_foreign_processes_are_not(jobs):
    job = workers(jobs, 1, 'spawn=child', 'spawn=foreign', 'mark=worker', 'await=go')
    name = agents_name(jobs)
    assert job.wait_for_all('rank 0: (.*)', 2) == ['agent', 'no agent']
    outside = jobs.run(WORKER, 'agent', env={'CPPRUN_AGENT': name, 'LOCAL_RANK': '0'})
    assert outside == (0, 'rank 0: no agent\n')
    (jobs.marks / 'go').write_text('x')
    assert job.done() == 0


def test_socket_name_is_removed_with_the_agent(jobs):
    job = workers(jobs, 1, 'agent', 'mark=worker', 'await=never')
    name = agents_name(jobs)
    sockets = '/proc/net/unix'
    with open(sockets) as file:
        assert name in file.read()
    kill(job.pid)

    def is_gone():
        with open(sockets) as file:
            return name not in file.read()

    poll(is_gone, 5, 'the end of the name')


FLOODS = {
    'connections': 'connect().close()',
    'garbage': "s = connect(); s.send(b'x' * 100); s.close()",
    'long datagrams': "s = connect(); s.send(b'CPRW' + b'x' * 60000); s.close()",
    'held connections': 'held.append(connect()); held = held[-200:]',
    'never reads': (
        's = connect()\n'
        '    for _ in range(50): s.send(b"CPRW" + bytes(4) + (1).to_bytes(4, "little"))'
    ),
}


@pytest.mark.parametrize('flood', FLOODS)
def test_flood_harms_only_its_sender(jobs, flood):
    hostile = (
        HOSTILE
        + f"""
held = []
mark('flooding')
while not marked('done'):
    try:
        {FLOODS[flood].replace(chr(10), chr(10) + '    ')}
    except OSError:
        pass
"""
    )
    flooder = jobs.py(hostile)[1]
    script = jobs.sh(
        f'[ $LOCAL_RANK = 0 ] || exec {flooder}\n'
        'while [ ! -s $MARKS/flooding ]; do sleep 0.01; done\n'
        f'exec {WORKER} agent beat=9 mark=good await=go exit=0'
    )
    job = jobs.cpprun('--standalone', '--nproc-per-node=2', '--no-python', script, env=INFO)
    jobs.mark('good')
    assert job.wait_for('rank 0: (.*)')[1] == 'agent'
    before, start = cpu_seconds(job.pid), time.monotonic()
    time.sleep(1)
    used = (cpu_seconds(job.pid) - before) / (time.monotonic() - start)
    assert used < 0.25, f'the agent spent {used:.0%} of a processor on it'
    (jobs.marks / 'go').write_text('x')
    (jobs.marks / 'done').write_text('x')
    assert job.done(20) == 0
