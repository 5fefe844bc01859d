"""Scripted failures: the failure summary names the right root cause in all of them.

Each row is a worker in shell: its ranks' behaviour, and the expected failure summary. CPPRUN_ALL
runs each row twenty times.
"""

import json
import pathlib
import re
import uuid

import pytest
from conftest import free_port
from long_tests import RUN_LONG
from process_info import LISTENING, tcp_sockets

RUNS = range(20 if RUN_LONG else 1)

SLEEP = 'exec sleep 60'
# A shell function that prints the same output as Python.
SHELL = 'print() { echo "Traceback (most recent call last):" >&2; echo "$1" >&2; }\n'
# Waits for a file of another rank.
WAIT = 'wait_for() { while [ ! -e "$MARKS/$1" ]; do sleep 0.01; done; }\n'
# Waits until the process with the pid in a file is gone: its agent has reaped it by then.
GONE = (
    'gone() { wait_for $1; while [ -e "/proc/$(cat "$MARKS/$1")" ]; do sleep 0.01; done; }\n'
)
PEER = 'RuntimeError: [gloo/transport/tcp/pair.cc:534] Connection closed by peer [127.0.0.1]:4711'
REMOTE = 'ncclRemoteError: A call failed, perhaps due to a network error or a remote process'
STORE = 'DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed.'


def error_file(message):
    """Words that write an error file as torchelastic's @record does."""
    extra = {'py_callstack': message, 'timestamp': '%s'}
    body = json.dumps({'message': {'message': message, 'extraInfo': extra}})
    return f"printf '{body}' $(date +%s) >\"$TORCHELASTIC_ERROR_FILE\""


def ranks(**actions):
    """A worker in which rank N runs r<N>; the others sleep until they are stopped."""
    cases = ''.join(f'  {name[1:]}) {code};;\n' for name, code in actions.items())
    return SHELL + WAIT + GONE + f'case $RANK in\n{cases}  *) {SLEEP};;\nesac'


def prints(text, code=1):
    return ranks(r1=f"print '{text}'; exit {code}")


# name: worker, expected fields of the failure summary
ROWS = {
    'exit code': (ranks(r1='exit 13'), {'class': 'user_error', 'exit_code': 13, 'hint': ''}),
    'exit code 255': (ranks(r1='exit 255'), {'class': 'user_error', 'exit_code': 255}),
    'exception': (
        prints('ValueError: no such sample'),
        {'class': 'user_error', 'error': 'ValueError: no such sample'},
    ),
    'error file': (
        ranks(r1=error_file('KeyError: lr') + '; exit 1'),
        {'class': 'user_error', 'error': 'KeyError: lr'},
    ),
    'segmentation fault': (
        ranks(r1='kill -SEGV $$'), {'class': 'crash', 'signal': 'SIGSEGV', 'hint': 'crash'}),
    'segmentation fault in Python': (
        ranks(r1="exec python3 -X faulthandler -c 'import ctypes; ctypes.string_at(0)'"),
        {'class': 'crash', 'error': 'Fatal Python error: Segmentation fault'},
    ),
    'abort': (ranks(r1='kill -ABRT $$'), {'class': 'crash', 'signal': 'SIGABRT'}),
    'division by zero': (ranks(r1='kill -FPE $$'), {'class': 'crash', 'signal': 'SIGFPE'}),
    'bus error': (
        ranks(r1='kill -BUS $$'), {'class': 'crash', 'hint': 'shared_memory'}),
    'killed': (
        ranks(r1='kill -KILL $$'), {'class': 'killed', 'signal': 'SIGKILL', 'hint': 'killed'}),
    'terminated from outside': (
        ranks(r1='kill -TERM $$'), {'class': 'killed', 'signal': 'SIGTERM'}),
    'CUDA out of memory': (
        prints('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'),
        {'class': 'user_error', 'hint': 'gpu_out_of_memory'},
    ),
    'port in use': (
        prints('RuntimeError: EADDRINUSE: address already in use'), {'hint': 'port_in_use'}),
    'missing module': (
        prints("ModuleNotFoundError: No module named 'transformers'"), {'hint': 'missing_module'}),
    'missing library': (
        prints('train: error while loading shared libraries: libx.so: cannot open', 127),
        {'hint': 'missing_library', 'exit_code': 127},
    ),
    'wrong arguments': (
        prints('train.py: error: unrecognized arguments: --lrr', 2), {'hint': 'wrong_arguments'}),
    'no GPU': (prints('RuntimeError: No CUDA GPUs are available'), {'hint': 'no_gpu'}),
    'GPU fault': (
        prints('RuntimeError: CUDA error: device-side assert triggered'), {'hint': 'gpu_fault'}),
    'mismatch': (
        prints('RuntimeError: Detected mismatch between collectives on ranks'),
        {'hint': 'collective_mismatch'},
    ),
    'store timeout': (
        prints('DistStoreError: Timed out after 61 seconds waiting for clients'),
        {'hint': 'rendezvous_timeout'},
    ),
    'disk full': (prints('OSError: [Errno 28] No space left on device'), {'hint': 'disk_full'}),
    'too many files': (
        prints('OSError: [Errno 24] Too many open files'), {'hint': 'too_many_files'}),
    'wrong weights': (
        prints('RuntimeError: Error(s) in loading state_dict for Net'), {'hint': 'bad_weights'}),
    'a Gloo peer error comes first': (
        ranks(
            r0=f"wait_for printed; print '{PEER}'; echo $$ >\"$MARKS/pid\"; exit 1",
            r1='trap : TERM; print "ValueError: the cause"; exec 2>&-;'
            ' touch "$MARKS/printed"; gone pid; exit 1',
        ),
        {'rank': 1, 'error': 'ValueError: the cause'},
    ),
    'a NCCL peer error comes first': (
        ranks(
            r0=f"wait_for printed; print '{REMOTE}'; echo $$ >\"$MARKS/pid\"; exit 1",
            r1='trap : TERM; print "TypeError: the cause"; exec 2>&-;'
            ' touch "$MARKS/printed"; gone pid; exit 1',
        ),
        {'rank': 1, 'error': 'TypeError: the cause'},
    ),
    'a store error comes first': (
        ranks(
            r0=f"wait_for printed; print '{STORE}'; echo $$ >\"$MARKS/pid\"; exit 1",
            r1='trap : TERM; print "KeyError: cause"; exec 2>&-;'
            ' touch "$MARKS/printed"; gone pid; exit 1',
        ),
        {'rank': 1, 'error': 'KeyError: cause'},
    ),
    'peers fail because one was killed': (
        ranks(
            r1='echo $$ >"$MARKS/pid"; kill -KILL $$',
            r2=f"gone pid; print '{PEER}'; exit 1",
        ),
        {'rank': 1, 'class': 'killed'},
    ),
    'only peer errors are known': (
        prints(PEER), {'class': 'lost_peer', 'hint': 'peer_lost', 'rank': 1}),
    'the error was written before another died': (
        ranks(
            r1='trap : TERM; ' + error_file('ValueError: early') + '; touch "$MARKS/wrote";'
            ' gone pid; exit 1',
            r2='wait_for wrote; sleep 0.1; echo $$ >"$MARKS/pid"; exit 3',
        ),
        {'rank': 1, 'error': 'ValueError: early'},
    ),
    'the error was written after another died': (
        ranks(
            r1='trap : TERM; gone pid; ' + error_file('ValueError: late') + '; exit 1',
            r2='echo $$ >"$MARKS/pid"; exit 3',
        ),
        {'rank': 2, 'exit_code': 3},
    ),
    'two ends in a row': (
        ranks(r1='gone pid; exit 5', r2='echo $$ >"$MARKS/pid"; exit 4'),
        {'rank': 2, 'exit_code': 4},
    ),
    'a stopped worker exits with a code': (
        ranks(r0='trap "exit 9" TERM; touch "$MARKS/up"; while :; do sleep 0.01; done',
              r1='wait_for up; exit 4'),
        {'rank': 1, 'exit_code': 4},
    ),
    'another had ended well': (
        ranks(r0='echo $$ >"$MARKS/pid"; exit 0', r1='gone pid; exit 6'),
        {'rank': 1, 'exit_code': 6},
    ),
}


def failure_summary_of(jobs, folder):
    (path,) = (jobs.folder / folder).glob('*/failure_summary.json')
    return json.loads(path.read_text())


def jobs_title(running):
    (title,) = set(re.findall(r'^error: (\S+) (?:failed|hung) on rank', running.err, re.M))
    return title


def fields(failure_summary, wanted):
    return {name: failure_summary.get(name) for name in wanted}


@pytest.mark.parametrize('run', RUNS)
@pytest.mark.parametrize('name', ROWS)
def test_root_cause_is_named(jobs, name, run):
    worker, wanted = ROWS[name]
    args = ('--nproc-per-node=3', '--shutdown-timeout=20', f'--log-dir={jobs.folder}/logs')
    running = jobs.cpprun(*args, jobs.sh(worker))
    assert running.done(60) == 1, running.output
    failure_summary = failure_summary_of(jobs, 'logs')
    wanted = {'rank': 1, **wanted}
    assert fields(failure_summary, wanted) == wanted, failure_summary
    text = failure_summary['text']
    assert f'error: {jobs_title(running)} failed on rank {wanted["rank"]} (node' in text
    assert text in running.err
    assert running.err.index(text) < running.err.index('ChildFailedError')
    if wanted.get('hint'):
        assert f'[{wanted["hint"]}]' in text.replace('\n      ', ' ')
    assert '  others    ' in text


@pytest.mark.parametrize('form', ['summary', 'torchrun', 'both'])
def test_failure_format_chooses_the_blocks(jobs, form):
    running = jobs.cpprun(f'--failure-format={form}', jobs.sh('exit 3'))
    assert running.done(60) == 1, running.output
    assert ('  cause     exited with code 3' in running.err) == (form != 'torchrun')
    assert ('ChildFailedError' in running.err) == (form != 'summary')


def test_every_node_reports_a_restart_and_its_reason(jobs):
    worker = jobs.sh('[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0\n'
                     '[ $RANK = 0 ] || { echo "ValueError: bad batch" >&2; exit 5; }\n' + SLEEP)
    args = ('--nnodes=2', '--rdzv-backend=c10d', '--rdzv-id=two', '--max-restarts=2',
            f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    nodes = [jobs.cpprun(*args, f'--node-rank={n}', worker) for n in range(2)]
    assert [node.done(90) for node in nodes] == [0, 0], [node.output for node in nodes]
    for node in nodes:
        (line,) = [line for line in node.err.splitlines() if line.startswith('cpprun: rank 1 (')]
        assert line.endswith('exited with code 5: ValueError: bad batch; '
                             'restarting all 2 workers (restart 1 of 2)'), line


def test_one_worker_has_a_hint_and_its_last_lines(jobs):
    error = 'OSError: [Errno 98] Address already in use'
    worker = jobs.sh(SHELL + f'echo out; print "{error}"; exit 1')
    running = jobs.cpprun('--nproc-per-node=1', worker)
    assert running.done(60) == 1, running.output
    assert '[port_in_use]' in running.err
    assert f'  cause     {error}\n' in running.err
    assert 'the last' not in running.err, 'they are just above'
    assert running.err.startswith('Traceback (most recent call last):\n' + error + '\n')
    assert running.out == 'out\n'


def test_redirected_stderr_has_the_cause_its_hint_and_the_last_lines(jobs):
    error = "ModuleNotFoundError: No module named 'transformers'"
    worker = jobs.sh(SHELL + f'echo out; print "{error}"; exit 1')
    running = jobs.cpprun('--redirects=3', f'--log-dir={jobs.folder}/logs', worker)
    assert running.done(60) == 1, running.output
    assert running.out == ''
    assert f'  cause     {error}\n' in running.err
    assert '[missing_module]' in running.err
    lines = ('the last 2 lines of rank 0 on stderr:', 'Traceback (most recent call last):', error)
    assert '\n  '.join(lines) + '\n' in running.err


def test_abort_at_the_end_of_a_gloo_program_has_its_own_hint(jobs):
    code = 'echo "terminate called without an active exception" >&2; kill -ABRT $$'
    running = jobs.cpprun('--nproc-per-node=1', jobs.sh(code))
    assert running.done(60) == 1, running.output
    assert '[unjoined_thread]' in running.err
    assert 'destroy_process_group()' in running.err


def test_repeated_start_up_failure(jobs):
    lines = '; '.join(f'echo line {i} >&2' for i in range(30))
    worker = ranks(r0='exit 0', r1=f'{lines}; exit 3')
    running = jobs.cpprun('--nproc-per-node=3', '--max-restarts=1', jobs.sh(worker))
    assert running.done(60) == 1, running.output
    assert '  cause     line 29\n' in running.err
    assert 'the last 20 lines' not in running.err, 'they are just above'
    assert '  restarts  1 of 1 used\n' in running.err
    assert 'in the same way in 2 attempts in a row' in running.err
    assert 'restarting all 3 workers (restart 1 of 1)' in running.err


def test_program_that_cannot_be_started(jobs):
    script = jobs.script('exit 0', '/no/such/interpreter')
    running = jobs.cpprun('--nproc-per-node=2', f'--log-dir={jobs.folder}/logs', script)
    assert running.done(60) == 1, running.output
    failure_summary = failure_summary_of(jobs, 'logs')
    wanted = {'class': 'start_failure', 'hint': 'program_not_found'}
    assert fields(failure_summary, wanted) == wanted
    assert script.name in failure_summary['why']
    assert 'no worker could be started on' in running.err


MEMORY = pathlib.Path('/sys/fs/cgroup/memory')


@pytest.fixture
def little_memory():
    """A prefix that gives a launcher and its workers 64 MiB."""
    folder = MEMORY / f'cpprun-test-{uuid.uuid4().hex}'
    try:
        folder.mkdir()
        (folder / 'memory.limit_in_bytes').write_text(str(64 << 20))
    except OSError:
        pytest.skip('no cgroup with a limit of memory can be made here')
    yield ('sh', '-c', f'echo $$ >{folder}/cgroup.procs; exec "$@"', 'sh')
    folder.rmdir()


def test_out_of_memory_killer(jobs, little_memory):
    _, worker = jobs.py(
        'import os, time\n'
        'if os.environ["RANK"] == "1": hog = b"x" * (300 << 20)\n'
        'time.sleep(60)'
    )
    args = ('--nproc-per-node=2', '--no-python', f'--log-dir={jobs.folder}/logs')
    running = jobs.cpprun(*args, worker, wrap=little_memory)
    assert running.done(60) == 1, running.output
    wanted = {'rank': 1, 'class': 'out_of_memory', 'is_oom_kill': True, 'hint': 'out_of_memory'}
    assert fields(failure_summary_of(jobs, 'logs'), wanted) == wanted


def test_different_failures_are_not_repetitions(jobs):
    worker = jobs.sh('echo "Error in try $((TORCHELASTIC_RESTART_COUNT % 2 ))x" >&2;'
                     'exit $((TORCHELASTIC_RESTART_COUNT % 2 + 1))')
    args = ('--nproc-per-node=2', '--max-restarts=3', '--startup-failures=2')
    running = jobs.cpprun(*args, f'--log-dir={jobs.folder}/logs', worker)
    assert running.done(60) == 1, running.output
    failure_summary = failure_summary_of(jobs, 'logs')
    assert fields(failure_summary, ['same_startup_failures', 'restarts_used']) == {
        'same_startup_failures': 1, 'restarts_used': 3}


def test_repeated_failures_at_startup_end_the_job_early(jobs):
    worker = jobs.sh('echo "Error of process $$" >&2; exit 3')
    args = ('--nproc-per-node=2', '--max-restarts=50', '--startup-failures=3')
    running = jobs.cpprun(*args, f'--log-dir={jobs.folder}/logs', worker)
    assert running.done(60) == 1, running.output
    failure_summary = failure_summary_of(jobs, 'logs')
    assert fields(failure_summary, ['same_startup_failures', 'exit_code']) == {
        'same_startup_failures': 3, 'exit_code': 3}
    assert failure_summary['restarts_used'] < 50
    assert 'in the same way in 3 attempts in a row' in running.err


def test_timing_shows_the_phases(jobs):
    worker = jobs.sh('exit $((1 - TORCHELASTIC_RESTART_COUNT))')
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=1', '--timing', worker)
    assert running.done(60) == 0, running.output
    start = 'exec options prepare listen join world spawn-first spawn-last'
    names = '[\\d.]+, '.join(f'{name} ' for name in start.replace('-', '.').split())
    assert running.find(rf'^timing: start [\d.]+ ms: {names}[\d.]+$'), running.err
    again = 'detect stop form spawn-first spawn-last'
    names = '[\\d.]+, '.join(f'{name} ' for name in again.replace('-', '.').split())
    assert running.find(rf'^timing: recovery \(failure\) [\d.]+ ms: {names}[\d.]+$'), running.err


# ---------------------------------------------------------------- two nodes

# As ROWS, for ranks 0 and 1 on one node, 2 and 3 on the other.
NODES = {
    'the second node fails': (ranks(r2='exit 5'), {'rank': 2, 'exit_code': 5}),
    'the first node fails': (ranks(r1='exit 5'), {'rank': 1, 'exit_code': 5}),
    'one after the other': (
        ranks(r0='gone pid; exit 5', r3='echo $$ >"$MARKS/pid"; exit 4'),
        {'rank': 3, 'exit_code': 4},
    ),
    'the other way round': (
        ranks(r3='gone pid; exit 5', r0='echo $$ >"$MARKS/pid"; exit 4'),
        {'rank': 0, 'exit_code': 4},
    ),
    'a peer error on one, its cause on the other': (
        ranks(
            r0=f"wait_for printed; print '{PEER}'; echo $$ >\"$MARKS/pid\"; exit 1",
            r3='trap : TERM; print "ValueError: the cause"; exec 2>&-;'
            ' touch "$MARKS/printed"; gone pid; exit 1',
        ),
        {'rank': 3, 'error': 'ValueError: the cause'},
    ),
    'killed on one, peer errors on the other': (
        ranks(r2='echo $$ >"$MARKS/pid"; kill -KILL $$', r0=f"gone pid; print '{PEER}'; exit 1"),
        {'rank': 2, 'class': 'killed'},
    ),
}


@pytest.mark.parametrize('run', RUNS)
@pytest.mark.parametrize('name', NODES)
def test_root_cause_is_named_on_every_node(jobs, name, run):
    worker, wanted = NODES[name]
    script = jobs.sh(worker)
    args = ('--nnodes=2', '--nproc-per-node=2', '--rdzv-backend=c10d', '--rdzv-id=two',
            f'--rdzv-endpoint=127.0.0.1:{free_port()}', '--shutdown-timeout=20')
    nodes = [
        jobs.cpprun(*args, f'--node-rank={n}', f'--log-dir={jobs.folder}/logs{n}', script)
        for n in range(2)
    ]
    assert [node.done(90) for node in nodes] == [1, 1], [node.output for node in nodes]
    for number, node in enumerate(nodes):
        failure_summary = failure_summary_of(jobs, f'logs{number}')
        assert fields(failure_summary, wanted) == wanted, failure_summary
        assert f'failed on rank {wanted["rank"]} (node' in node.err
        assert '  others    ' in node.err
    if name == 'a peer error on one, its cause on the other':
        text = 'the last 2 lines of rank 3 on stderr:\n  Traceback'
        assert [text in node.err for node in nodes] == [True, False], 'it ran on the other node'


def test_lost_node_without_replacement_is_the_cause(jobs):
    script = jobs.sh('echo $$ >"$MARKS/up$RANK"; exec sleep 60')
    args = ('--nnodes=2', '--rdzv-backend=c10d', '--rdzv-id=two', '--rdzv-conf=join_timeout=2',
            f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    first = jobs.cpprun(*args, f'--log-dir={jobs.folder}/logs', script)
    second = jobs.cpprun(*args, f'--log-dir={jobs.folder}/logs-2', script)
    jobs.numbers(['up0', 'up1'], 60)
    agents = [node for node in (first, second) if not tcp_sockets(node.pid, LISTENING)]
    agents[0].send(9)
    (left,) = [node for node in (first, second) if node not in agents]
    assert left.done(60) == 1, left.output
    assert 'the agent on' in left.err
    failure_summary = failure_summary_of(jobs, 'logs' if left is first else 'logs-2')
    assert (failure_summary['class'], failure_summary['max_restarts']) == ('lost_node', 0)
    assert 'the agent on' in failure_summary['why']
    assert failure_summary['text'] in left.err
