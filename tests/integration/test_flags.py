"""Flags with bad values: one or two lines name the value and the cure, and no worker starts."""

import json
import os
import pathlib

import pytest
from conftest import BIN, has_no_traces

USAGE, VALUE = 2, 1

# The options before the script; the exit code; the text's required parts: the value and the cure.
BAD = [
    ('--nnodes=0', VALUE, '--nnodes=0', 'at least one'),
    ('--nnodes=3:2', VALUE, '--nnodes=3:2', 'minimum'),
    ('--nnodes=two', VALUE, '--nnodes=two', 'N or MIN:MAX'),
    ('--nproc-per-node=0', VALUE, '--nproc-per-node=0', 'from 1'),
    ('--nproc_per_node=many', VALUE, '--nproc_per_node=many', 'use a number'),
    ('--nproc-per-node=gpu', VALUE, '--nproc-per-node=gpu', 'use a number'),
    ('--nproc-per-node=99999', VALUE, '99999', 'from 1 to 4096'),
    ('--node-rank=x', USAGE, "'x'", '--node-rank'),
    ('--node-rank=1 --master-port=1', VALUE, '--node-rank=1', '0 to 0'),
    ('--virtual-local-rank=1', USAGE, '--virtual-local-rank', "'1'"),
    ('--numa-binding=moon', USAGE, "'moon'", 'core-complex'),
    ('--numa-binding=node', VALUE, '--numa-binding=node', 'leave the option out'),
    ('--standalone=yes', USAGE, '--standalone', "'yes'"),
    ('--rdzv-backend=pigeon', VALUE, 'pigeon', 'c10d'),
    ('--rdzv-backend=etcd', VALUE, '--rdzv-backend=etcd', '--rdzv-endpoint'),
    ('--rdzv-backend=etcd-v2 --rdzv-endpoint=h:1,', VALUE, 'h:1,', 'no name'),
    ('--rdzv-backend=etcd --rdzv-endpoint=h --rdzv-conf=password=x', VALUE, 'password',
     'CPPRUN_ETCD_PASSWORD'),
    ('--rdzv-backend=c10d --rdzv-endpoint=localhost:99999', VALUE, 'localhost:99999', '65535'),
    ('--rdzv-backend=c10d --rdzv-endpoint=http://h:1', VALUE, 'http://h:1', 'host:port'),
    ('--rdzv-id=a/b', VALUE, '--rdzv-id=a/b', '/'),
    ('--rdzv-backend=c10d --rdzv-conf=join_timeout', VALUE, 'join_timeout', '='),
    ('--rdzv-backend=c10d --rdzv-conf=join_timeout=soon', VALUE, 'soon', 'seconds|number'),
    ('--rdzv-backend=c10d --rdzv-conf=keep_alive_interval=0', VALUE, 'keep_alive_interval', '0'),
    ('--rdzv-backend=c10d --rdzv-conf=is_host=perhaps', VALUE, 'perhaps', 'true|false|1'),
    ('--rdzv-backend=c10d --rdzv-conf=store_type=file', VALUE, 'store_type=file', 'leave|tcp'),
    ('--rdzv-backend=c10d --rdzv-endpoint=/tmp/x --rdzv-conf=store_type=file', VALUE,
     'store_type=file', 'leave|tcp'),
    ('--local-addr=http://x', VALUE, 'http://x', 'host name'),
    ('--master-addr=a_b:5 --master-port=1', VALUE, 'a_b:5', '--master-port'),
    ('--master-port=65536', VALUE, '--master-port=65536', '65535'),
    ('--master-port=x', USAGE, "'x'", '--master-port'),
    ('-m --no-python', VALUE, '--no-python', 'leave one out'),
    ('--run-path=1', USAGE, '--run-path', "'1'"),
    ('--start-method=teleport', USAGE, "'teleport'", 'forkserver'),
    ('--max-restarts=-1', VALUE, '--max-restarts=-1', '0 for no restart'),
    ('--max-restarts=1.5', USAGE, "'1.5'", '--max-restarts'),
    ('--max-restarts=99999999999999999999', None, '99999999999999999999', '--max-restarts'),
    ('--monitor-interval=0', VALUE, '--monitor-interval', 'above 0'),
    ('--monitor-interval=nan', None, 'nan', '--monitor-interval'),
    ('--shutdown-timeout=-1', VALUE, '--shutdown-timeout=-1', '0 or more'),
    ('--shutdown-timeout=soon', USAGE, "'soon'", '--shutdown-timeout'),
    ('--redirects=7', VALUE, '--redirects=7', '0:3,1:1'),
    ('--tee=0:x', VALUE, '--tee=0:x', '0:3,1:1'),
    ('-t', USAGE, '-t', 'needs a value'),
    ('--local-ranks-filter=a', VALUE, "'a'", '0,2'),
    ('--logs-specs=mine', VALUE, '--logs-specs=mine', '--log-dir'),
    ('--event-log-handler=kafka', VALUE, 'kafka', 'console'),
    ('--print-completion=fish', USAGE, "'fish'", 'zsh'),
    ('--worker-store=moon', USAGE, "'moon'", 'rank0'),
    ('--nnodes=2 --worker-store=rank0', VALUE, '--worker-store=rank0', 'c10d'),
    ('--pass-local-rank=plus', USAGE, "'plus'", 'dash'),
    ('--nprocs-per-nod=2', USAGE, '--nprocs-per-nod', 'nproc'),
    ('--n=1', USAGE, '--n', '--nnodes'),
    ('--version=3', USAGE, '--version', "'3'"),
]


@pytest.mark.parametrize('args, code, value, cure', BAD, ids=[row[0] for row in BAD])
def test_bad_value_is_named_with_its_cure(jobs, args, code, value, cure):
    worker = jobs.sh('echo started >"$MARKS/started"')
    jobs.folder.joinpath('-t').touch()
    running = jobs.cpprun(*args.split(), worker) if args != '-t' else jobs.cpprun('-t')
    got = running.done(10)
    assert got == code or (code is None and got in (USAGE, VALUE)), running.output
    text = running.err
    lines = [line for line in text.splitlines() if line.startswith(('error: ', 'hint: '))]
    assert text.startswith('error: ') and 1 <= len(lines) <= 2, text
    assert ('\nusage: cpprun' in text) == (got == USAGE), text
    if got != USAGE:
        assert lines == text.splitlines(), text
    shown = '\n'.join(lines)
    assert value in shown, text
    assert any(word in shown for word in cure.split('|')), text
    assert has_no_traces(text)
    assert running.out == ''
    assert not list(jobs.marks.iterdir())
    assert not list(jobs.tmp.iterdir())


@pytest.mark.parametrize(
    'variable',
    ['PET_NPROC_PER_NODE=x', 'PET_MAX_RESTARTS=x', 'PET_STANDALONE=x', 'PET_TEE=9', 'PET_NNODES=0'],
)
def test_bad_variable_is_named(jobs, variable):
    name, value = variable.split('=')
    running = jobs.cpprun(jobs.sh(':'), env={name: value})
    assert running.done(10) in (USAGE, VALUE), running.output
    assert name in running.err
    assert value in running.err


@pytest.mark.parametrize('name', ['absent.py', './absent', 'no/such/folder/x.py'])
def test_missing_script_is_reported_once(jobs, name):
    running = jobs.cpprun('--nproc-per-node=8', name)
    assert running.done(10) == VALUE
    assert running.err.count(name) == 1, running.err
    assert [line.split(':')[0] for line in running.err.splitlines()] == ['error', 'hint']
    assert 'OMP_NUM_THREADS' not in running.err


@pytest.mark.parametrize(
    'make, named',
    [
        (lambda path: path.mkdir(), 'it is a folder'),
        (lambda path: path.write_bytes(b'\x7fELF junk'), 'neither a binary'),
        (lambda path: path.write_text('#!/no/such/shell\n'), 'interpreter'),
        (lambda path: path.write_text('text\n'), '#!'),
    ],
    ids=['folder', 'broken-elf', 'no-interpreter', 'no-first-line'],
)
def test_unstartable_program_is_reported_once_and_not_retried(jobs, make, named):
    path = jobs.folder / 'thing'
    make(path)
    path.chmod(0o755)
    running = jobs.cpprun('--nproc-per-node=4', '--max-restarts=3', '--no-python', path)
    assert running.done(10) == VALUE, running.output
    assert running.err.count(str(path)) == 1, running.err
    shown = ' '.join(running.err.split())
    assert any(word in shown for word in named.split('|')), running.err
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


def test_missing_script_argument_is_a_usage_error(jobs):
    running = jobs.cpprun('--standalone')
    assert running.done(10) == USAGE
    assert 'usage: cpprun' in running.err
    assert 'script' in running.err


def test_missing_module_is_reported_by_python_with_our_exit_code(jobs):
    running = jobs.cpprun('-m', 'no_such_module_of_ours')
    assert running.done(20) == 1
    assert 'no_such_module_of_ours' in running.err


@pytest.mark.parametrize('name', ['SIGNOPE', 'SIGKILL', '15'])
def test_unhandleable_signal_warns_as_torchrun_does(jobs, name):
    running = jobs.cpprun(f'--signals-to-handle={name}', jobs.sh(':'))
    assert running.done(20) == 0, running.output
    assert name in running.err


@pytest.mark.parametrize('place', ['x:y', '127.0.0.1:99999', 'http://x'])
def test_cpprunctl_rejects_invalid_endpoints(jobs, place):
    running = jobs.start(BIN / 'cpprunctl', 'serve', '--listen', place, is_split=True)
    assert running.done(10) in (VALUE, USAGE), running.output
    assert place in running.err
    assert has_no_traces(running.err)


def test_more_workers_than_visible_gpus_warns(jobs):
    args = ('--standalone', '--nproc_per_node=3', '--no-python', jobs.sh('true'))
    job = jobs.cpprun(*args, env={'CPPRUN_TEST_GPUS': '2'})
    assert job.done() == 0
    assert job.err.count('3 workers but 2 visible GPUs') == 1


def test_workers_run_on_the_cpus_near_their_gpus(jobs):
    node0 = pathlib.Path('/sys/devices/system/node/node0/cpulist')
    if not node0.exists():
        pytest.skip('no NUMA in /sys')
    worker = jobs.py('import os; os.write(1, f"{sorted(os.sched_getaffinity(0))}\\n".encode())')
    args = ('--standalone', '--nproc_per_node=2', '--numa-binding=exclusive', worker)
    job = jobs.cpprun(*args, env={'CPPRUN_TEST_GPUS': '2'})
    if job.done() == 1 and 'near a NUMA node with 1 core' in job.err:
        pytest.skip('one core')
    sets = [set(json.loads(line)) for line in job.out.splitlines()]
    assert len(sets) == 2
    assert not sets[0] & sets[1]
    assert sets[0] | sets[1] <= os.sched_getaffinity(0)


def test_threads_are_divided_among_workers(jobs):
    worker = jobs.sh('echo "threads $OMP_NUM_THREADS"')
    args = ('--standalone', '--nproc_per_node=2', '--no-python', worker)
    job = jobs.cpprun('--omp-threads=auto', *args, env={'OMP_NUM_THREADS': None})
    assert job.done() == 0
    assert job.out.count(f'threads {max(1, os.cpu_count() // 2)}') == 2
    assert 'OMP_NUM_THREADS' not in job.err
    job = jobs.cpprun('--omp-threads=7', *args, env={'OMP_NUM_THREADS': '3'})
    assert job.done() == 0
    assert job.out.count('threads 7') == 2
