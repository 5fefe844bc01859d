"""cpprun --faults: injects faults into real workers and agents, and checks a plan's expectations.
"""

import json
import pathlib
import re
import signal
import xml.etree.ElementTree as ET
import zlib

import pytest
from conftest import free_port
from launches import BIN, poll

MODULE = pathlib.Path(__file__).resolve().parents[2] / 'worker_sdk/python'

# Ten steps, a mark at each; only `first` survives from one attempt to the next.
STEPS = f"""
import os, sys, time
sys.path.insert(0, {str(MODULE)!r})
import cpprun_worker as w
rank, attempt = int(os.environ['RANK']), int(os.environ['TORCHELASTIC_RESTART_COUNT'])
"""

LOOP = """
for step in range(0 if attempt == 0 else 3, 10):
    w.fault_point(step // 5, step)
    w.heartbeat(step)
"""

# Waits until the test lets it end, so that a timed fault finds it.
UNTIL_RELEASED = """
import pathlib
marks = pathlib.Path(os.environ['MARKS'])
(marks / f'running-{rank}-{attempt}').write_text(str(os.getpid()))
end = time.monotonic() + 60
while not (marks / 'go').exists() and not ENDS and time.monotonic() < end:
    time.sleep(0.01)
"""


@pytest.fixture
def plan(tmp_path):
    def write(*faults, **rest):
        path = tmp_path / 'plan.json'
        path.write_text(json.dumps({'plan': list(faults), **rest}))
        return path

    return write


def launch(jobs, plan, code, *flags, n=2, **options):
    args = ('--standalone', f'--nproc-per-node={n}', '--max-restarts=3', f'--faults={plan}')
    return jobs.cpprun(*args, *flags, jobs.py(STEPS + code), **options)


def injected_faults(job):
    return re.findall(r'fault (\d+) is injected at (.*): ', job.err)


def test_step_fault_happens_once_per_job_and_is_reported(jobs, plan, tmp_path):
    expect = {'restarts': 1, 'max_recovery_s': 30, 'max_lost_steps': 3, 'max_lost_epochs': 1}
    path = plan({'do': 'kill', 'at': {'rank': 1, 'step': 6}}, expect=expect)
    junit = tmp_path / 'out.xml'
    job = launch(jobs, path, LOOP, f'--junit={junit}')
    assert job.done(60) == 0, job.err
    assert injected_faults(job) == [('1', 'rank 1 in round 1, training epoch 1, step 6')]
    assert 'lost steps: 3; lost training epochs: 1' in job.err
    assert 'cpprun: 6 held, 0 did not' in job.err
    cases = ET.parse(junit).getroot().findall('.//testcase')
    assert [case.get('name') for case in cases] == [
        'fault 1: kill rank 1 at step 6',
        'exit code',
        'restarts',
        'recovery',
        'lost steps',
        'lost training epochs',
    ]
    assert not any(case.findall('failure') for case in cases)


def test_failed_expectation_is_named_and_ends_with_3(jobs, plan, tmp_path):
    path = plan({'do': 'kill', 'at': {'rank': 1, 'step': 6}}, expect={'restarts': 0})
    junit = tmp_path / 'out.xml'
    job = launch(jobs, path, LOOP, f'--junit={junit}')
    assert job.done(60) == 3
    assert 'NOT OK  restarts: 1, expected 0' in job.err
    failures = ET.parse(junit).getroot().findall('.//failure')
    assert [failure.get('message') for failure in failures] == ['1, expected 0']


def test_fault_that_never_happens_fails(jobs, plan):
    job = launch(jobs, plan({'do': 'kill', 'at': {'step': 99}}, expect={}), LOOP)
    assert job.done(60) == 3
    assert 'NOT OK  fault 1: kill at step 99: never injected' in job.err


def test_without_expectations_the_exit_code_is_the_jobs(jobs, plan):
    job = launch(jobs, plan({'do': 'exit', 'at': {'step': 4}, 'code': 7, 'times': 9}), LOOP)
    assert job.done(60) == 1, job.err
    assert job.err.count('cpprun: fault exit:fault=0,step=4') >= 2  # once in each of the attempts


def test_programs_exit_throw_and_slow_down_themselves(jobs, plan):
    path = plan(
        {'do': 'exit', 'at': {'rank': 0, 'step': 4}, 'code': 13},
        {'do': 'throw', 'at': {'rank': 1, 'step': 7, 'attempt': 1}},
        {'do': 'slow', 'at': {'rank': 0, 'phase': 'starting', 'attempt': 2}, 'for_s': 0.01},
        expect={'restarts': 2},
    )
    job = launch(jobs, path, LOOP)
    assert job.done(60) == 0, job.err
    assert 'exited with code 13' in job.err
    assert 'FaultError: fault throw:' in job.err
    assert {number for number, _ in injected_faults(job)} == {'1', '2', '3'}


def test_snapshot_commit_is_a_fault_place(jobs, plan):
    code = LOOP + 'assert w.request_commit(10)\n'
    path = plan({'do': 'kill', 'at': {'phase': 'saving', 'step': 10}}, expect={'restarts': 1})
    job = launch(jobs, path, code, n=1)
    assert job.done(60) == 0, job.err
    assert injected_faults(job) == [('1', 'rank 0 in round 1, step 10')]


def test_timed_fault_hits_any_program(jobs, plan):
    fault = {'do': 'kill', 'at': {'rank': 'any', 'after_s': [0.05, 0.1]}}
    path = plan(fault, expect={'restarts': 1})
    job = launch(jobs, path, UNTIL_RELEASED.replace('ENDS', 'attempt == 1'))
    assert job.done(60) == 0, job.err
    assert len(injected_faults(job)) == 1


def test_same_seed_gives_the_same_faults(jobs, plan):
    path = plan({'do': 'kill', 'at': {'rank': 'any', 'step': [0, 9]}}, expect={'restarts': 1})
    whole = LOOP.replace('0 if attempt == 0 else 3', '0')

    def injected_with(seed):
        job = launch(jobs, path, whole, f'--seed={seed}', n=3)
        assert job.done(60) == 0, job.err
        return injected_faults(job)

    assert injected_with(4) == injected_with(4)


def test_random_faults_happen_until_the_job_ends(jobs, plan):
    """Two faults may happen within one round: restarts are fewer then."""
    path = plan({'do': 'kill', 'at': {'every_s': 0.05}, 'times': 3}, expect={'restarts': [1, 3]})
    job = launch(jobs, path, UNTIL_RELEASED.replace('ENDS', 'False'))
    poll(
        lambda: len(injected_faults(job)) == 3 or job.process.poll() is not None,
        60,
        lambda: job.err,
    )
    (jobs.marks / 'go').touch()
    assert job.done(60) == 0, job.err
    assert len(injected_faults(job)) == 3


def test_stopped_worker_continues_after_its_time(jobs, plan):
    path = plan({'do': 'stop', 'at': {'rank': 0, 'step': 3}, 'for_s': 0.1}, expect={'restarts': 0})
    job = launch(jobs, path, LOOP)
    assert job.done(60) == 0, job.err
    assert 'the round continued' in job.err


def test_full_disk_fails_writes_for_its_time(jobs, plan):
    code = """
path = os.environ['MARKS'] + f'/data-{rank}'
refused = 0
for step in range(10):
    w.fault_point(0, step)
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            with open(path, 'a') as file:
                file.write('x')
            break
        except OSError as error:
            refused += 1
            time.sleep(0.01)
print(f'rank {rank}: refused {refused > 0}', flush=True)
"""
    path = plan({'do': 'disk-full', 'at': {'rank': 1, 'step': 5}, 'for_s': 0.2}, expect={})
    job = launch(jobs, path, code)
    assert job.done(60) == 0, job.err
    assert sorted(job.out.splitlines()) == ['rank 0: refused False', 'rank 1: refused True']


def test_dropped_connection_is_restored_and_workers_stay(jobs, plan):
    path = plan({'do': 'drop-coordinator', 'at': {'rank': 0, 'step': 3}}, expect={})
    job = launch(jobs, path, LOOP, env={'LOGLEVEL': 'INFO'})
    assert job.done(60) == 0, job.err
    assert 'the connection to the coordinator broke' in job.err


def test_killed_agent_ends_its_workers(jobs, plan):
    path = plan({'do': 'kill-agent', 'at': {'after_s': 0}})
    job = launch(jobs, path, UNTIL_RELEASED.replace('ENDS', 'False'))
    assert job.done(60) == -9
    assert 'fault 1 is injected at node 0 in round 1' in job.err


def test_final_file_must_equal_the_fault_free_one(jobs, plan, tmp_path):
    code = 'open(os.environ["MARKS"] + "/final", "w").write("done")\n'
    for crc, wanted in (('7bcb9ba9', 3), ('', 1)):
        hash_of = {'file': str(tmp_path / 'marks/final'), **({'is': crc} if crc else {})}
        job = launch(jobs, plan(expect={'final_hash': hash_of}), code, n=1)
        assert job.done(60) == wanted, job.err
    assert 'expect.final_hash has no' in job.err
    good = f'{zlib.crc32(b"done"):08x}'
    hash_of = {'file': str(tmp_path / 'marks/final'), 'is': good}
    job = launch(jobs, plan(expect={'final_hash': hash_of}), code, n=1)
    assert job.done(60) == 0, job.err


def test_variable_may_name_the_plan(jobs, plan):
    path = plan({'do': 'kill', 'at': {'rank': 1, 'step': 6}}, expect={'restarts': 1})
    env = {'CPPRUN_FAULTS': str(path)}
    args = ('--standalone', '--nproc-per-node=2', '--max-restarts=3')
    job = jobs.cpprun(*args, jobs.py(STEPS + LOOP), env=env)
    assert job.done(60) == 0, job.err
    assert len(injected_faults(job)) == 1


def test_two_nodes_share_one_plan(jobs, plan, tmp_path):
    """A fault that matches both nodes happens once in the job; both report it."""
    path = plan({'do': 'kill', 'at': {'step': 5}}, expect={'restarts': 1})
    flags = ('--nnodes=2', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{free_port()}')
    args = (*flags, '--nproc-per-node=2', '--max-restarts=3', f'--faults={path}')
    script = jobs.py(STEPS + LOOP)
    both = [jobs.cpprun(*args, script) for _ in range(2)]
    assert [job.done(90) for job in both] == [0, 0], [job.err for job in both]
    assert sum(len(injected_faults(job)) for job in both) == 1
    assert all('ok      fault 1: kill at step 5: rank' in job.err for job in both)


@pytest.mark.parametrize(
    ('args', 'text'),
    [
        (['--faults=/nowhere.json'], "the fault plan '/nowhere.json' can't be read"),
        (['--seed=1'], '--seed goes with a fault plan\nhint: name one with --faults'),
        (['--junit=x'], '--junit goes with a fault plan'),
    ],
)
def test_impossible_faults_are_reported(jobs, args, text):
    job = jobs.cpprun('--standalone', *args, jobs.py('pass'))
    assert job.done() == 1
    assert text in job.err


def test_chaos_names_the_failed_seeds(jobs, plan):
    fault = {'do': 'kill', 'at': {'rank': 'any', 'step': [0, 9]}}
    whole = LOOP.replace('0 if attempt == 0 else 3', '0')
    script = jobs.py(STEPS + whole)
    args = ['--standalone', '--nproc-per-node=2', '--max-restarts=1', *script]
    path = plan(fault, expect={'restarts': 0})
    command = [BIN / 'cpprunctl', 'chaos', '--seeds=2', '--first=5', path, '--', BIN / 'cpprun']
    job = jobs.start(*command, *args, is_split=True)
    assert job.done(120) == 3
    assert re.findall(r'seed (\d+): NOT HELD \(restarts: 1, expected 0\)', job.out) == ['5', '6']
    assert 'again: --first 5 --seeds 1' in job.out
    assert re.search(r'^kill +2 +2 ', job.out, re.M)
    assert '0 of 2 seeds held' in job.out


def test_chaos_gives_each_seed_its_own_folder(jobs, plan, tmp_path):
    code = 'open(sys.argv[1], "w").write("done")\n'
    name = str(tmp_path / 'final-{seed}')
    path = plan(expect={'final_hash': {'file': name}})
    args = [BIN / 'cpprun', '--standalone', *jobs.py(STEPS + code), name]
    job = jobs.start(BIN / 'cpprunctl', 'chaos', '--seeds=2', path, '--', *args, is_split=True)
    assert job.done(60) == 0, job.err
    made = sorted(path.name for path in tmp_path.glob('final-*'))
    assert made == ['final-0', 'final-1', 'final-fault-free']
    assert 'without faults: final hash' in job.out


@pytest.mark.parametrize('number', [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_chaos_leaves_nothing_behind_after_a_signal(jobs, plan, number):
    args = [BIN / 'cpprun', '--standalone', jobs.sh('echo begun; exec sleep 3600')]
    job = jobs.start(BIN / 'cpprunctl', 'chaos', plan(), '--', *args, is_split=True)
    job.wait_for('begun')
    job.send(number)
    assert job.done() == 128 + number
    assert jobs.wait_until_gone() == []
    assert list(jobs.tmp.glob('cpprun-chaos-*')) == []
    assert 'held' not in job.out
