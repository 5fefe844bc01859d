"""Workers written with the SDK end in every way, under cpprun and under the real torchrun.

tests/support/sdk_worker.cpp ends in the way of its first argument, on the rank of its second.
"""

import fcntl
import json
import os
import pathlib
import resource
import signal
import subprocess

import pytest
from conftest import BIN, has_no_traces, poll

WORKER = BIN / 'sdk_worker'
C_WORKER = BIN / 'c_worker'
TORCHRUN = pathlib.Path(__file__).parents[2] / '.venv' / 'bin' / 'torchrun'
SIGNALS = {
    'segfault': 'SIGSEGV: invalid access to memory at 0x10',
    'thread_segfault': 'SIGSEGV: invalid access to memory at 0x10',
    'two_threads': 'SIGSEGV: invalid access to memory at 0x10',
    'overflow': 'SIGSEGV: invalid access to memory at ',
    'broken_stack': 'SIGSEGV: invalid access to memory at ',
    'nowhere': 'SIGSEGV: invalid access to memory at 0x0',
    'abort': 'SIGABRT: abort() was called',
    'divide': 'SIGFPE: raised by the program itself',
    'terminate': 'std::terminate: (anonymous namespace)::OwnError: no handler catches this',
    'bare_terminate': 'std::terminate was called without an exception',
}
NAMED = {
    'segfault': 'write_through',
    'thread_segfault': 'write_through',
    'two_threads': 'write_through',
    'overflow': 'overflow_the_stack',
    'broken_stack': '(the stack could not be read)',
    'nowhere': 'jump_to_nowhere',
    'terminate': 'throw_own',
    'abort': 'cpprun::detail::run_main',
}


def number_of(end):
    return {'divide': 8, 'abort': 6, 'terminate': 6, 'bare_terminate': 6}.get(end, 11)


def root_cause_index(running):
    return running.err.split('Root Cause', 1)[1]


def alone(end, folder, extra=None, **options):
    """Runs it without a launcher. Returns its exit status, its stderr, its error file."""
    path = folder / 'error.json'
    own = {'TORCHELASTIC_ERROR_FILE': str(path), 'RANK': '0', 'WORLD_SIZE': '1'}
    command = [WORKER, *([end] if isinstance(end, str) else end)]
    done = subprocess.run(
        command, env={**os.environ, **own, **(extra or {})}, capture_output=True, check=False,
        timeout=60, text=True, **options,
    )
    return done, json.loads(path.read_text()) if path.exists() else None


def test_exception_reaches_the_summary(jobs):
    running = jobs.cpprun('--nproc-per-node=2', '--no-python', WORKER, 'exception', 1)
    assert running.done(30) == 1, running.output
    text = '(anonymous namespace)::OwnError: no data for this rank'
    assert f'traceback : {text}' in root_cause_index(running)
    assert 'rank      : 1 (' in root_cause_index(running)
    assert 'exitcode  : 1 (pid:' in root_cause_index(running)
    assert f'cpprun: rank 1: {text}\n' in running.err
    assert has_no_traces(running.err)


def test_exception_reaches_the_summary_through_the_agent_without_log_files(jobs):
    running = jobs.cpprun('--log-dir', '/dev/null', '--no-python', WORKER, 'exception')
    assert running.done(30) == 1, running.output
    assert 'error_file: <N/A>' in root_cause_index(running)
    text = '(anonymous namespace)::OwnError: no data for this rank'
    assert f'traceback : {text}' in root_cause_index(running)


@pytest.mark.parametrize('end', SIGNALS)
def test_signal_reaches_the_summary_with_its_message(jobs, end):
    running = jobs.cpprun('--nproc-per-node=2', '--no-python', WORKER, end, 0)
    assert running.done(30) == 1, running.output
    assert f'exitcode  : -{number_of(end)} (pid:' in root_cause_index(running)
    assert f'traceback : {SIGNALS[end]}' in root_cause_index(running)
    assert NAMED.get(end, '') in root_cause_index(running)
    assert f'cpprun: rank 0: {SIGNALS[end]}' in running.err
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('end', SIGNALS)
def test_kernel_still_sees_the_signal(end, tmp_path):
    done, report = alone(end, tmp_path)
    assert done.returncode == -number_of(end)
    assert report['message']['message'].startswith(SIGNALS[end])
    assert os.listdir(tmp_path) == ['error.json']


def test_without_an_error_file_the_stack_goes_to_stderr(tmp_path):
    done, report = alone('segfault', tmp_path, {'TORCHELASTIC_ERROR_FILE': ''})
    assert done.returncode == -signal.SIGSEGV
    assert report is None
    assert '#0 (anonymous namespace)::write_through at ' in done.stderr


def test_first_report_counts(tmp_path):
    done, report = alone('report', tmp_path)
    assert done.returncode == 1
    assert report['message']['message'] == 'first words'
    assert 'last words' in done.stderr


def test_nested_exceptions_are_reported_completely(tmp_path):
    done, report = alone('nested', tmp_path)
    message = '(anonymous namespace)::OwnError: training epoch 3 failed: "ö"\n\n' \
        '  caused by std::out_of_range: sample 7 of 5'
    assert report['message']['message'] == message
    assert done.stderr.count('\n') == 1


def test_lost_peer_is_a_consequence(tmp_path):
    done, report = alone('peer', tmp_path)
    assert report['message']['extraInfo']['consequence_of'] == 'peer'
    assert '(a peer has gone: look for its own error first)' in done.stderr
    assert 'consequence_of' not in alone('exception', tmp_path)[1]['message']['extraInfo']


def test_worker_that_lost_a_peer_is_not_the_root_cause(jobs):
    running = jobs.cpprun('--nproc-per-node=2', '--no-python', WORKER, 'lose_a_peer')
    assert running.done(30) == 1, running.output
    others, root = running.err.split('Root Cause', 1)
    assert 'traceback : (anonymous namespace)::OwnError: the cause of it all' in root
    assert 'traceback : Connection reset by peer' in others.split('Failures:', 1)[1]


def test_children_do_not_report_for_their_parent(tmp_path):
    done, report = alone('child', tmp_path)
    assert (done.returncode, report) == (0, None)


def test_missing_folder_is_named(tmp_path):
    gone = str(tmp_path / 'gone' / 'error.json')
    done, _ = alone('exception', tmp_path, {'TORCHELASTIC_ERROR_FILE': gone})
    assert done.returncode == 1
    assert f'the error file {gone} could not be written: No such file or directory' in done.stderr


def test_partially_written_file_is_removed(tmp_path):
    def limit_files():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20, 20))

    done, report = alone('exception', tmp_path, preexec_fn=limit_files, restore_signals=False)
    assert (done.returncode, report) == (1, None)
    assert 'could not be written: File too large' in done.stderr
    assert os.listdir(tmp_path) == []


def test_hanging_report_is_abandoned(tmp_path):
    ours, theirs = os.pipe()
    fcntl.fcntl(theirs, fcntl.F_SETPIPE_SZ, 4096)
    os.write(theirs, bytes(4096))  # the write to stderr blocks forever
    env = {**os.environ, 'TORCHELASTIC_ERROR_FILE': str(tmp_path / 'error.json')}
    with subprocess.Popen([WORKER, 'segfault'], env=env, stderr=theirs) as worker:
        assert worker.wait(60) == -signal.SIGSEGV
    assert 'SIGSEGV' in (tmp_path / 'error.json').read_text()
    os.close(ours)
    os.close(theirs)


def test_malloc_keeps_large_blocks(tmp_path):
    def faults(**env):
        return int(alone('fill_buffers', tmp_path, env)[0].stdout)

    assert faults() < 20_000  # the pages of one step, once
    assert faults(CPPRUN_MALLOC='default') > 100_000
    assert faults(MALLOC_TOP_PAD_='131072') > 100_000
    assert faults(GLIBC_TUNABLES='glibc.malloc.arena_max=2') > 100_000


def test_sigterm_is_a_request_to_stop(jobs):
    running = jobs.cpprun('--nproc-per-node=2', '--no-python', WORKER, 'serve')
    poll(lambda: running.out.count('serving') == 2, what=lambda: running.output)
    running.send(signal.SIGTERM)
    assert running.done(30) == 128 + signal.SIGTERM, running.output
    assert running.out.count('saved') == 2


def test_worker_without_the_handler_dies_of_sigterm(jobs):
    running = jobs.cpprun('--no-python', WORKER, 'sleep')
    poll(lambda: 'sleeping' in running.out, what=lambda: running.output)
    running.send(signal.SIGTERM)
    assert running.done(30) == 128 + signal.SIGTERM, running.output
    assert 'awake' not in running.out


@pytest.mark.parametrize(
    ('fault', 'code', 'text'),
    [
        ('kill:rank=1,epoch=2,attempt=0', -9, 'Signal 9 (SIGKILL) received'),
        ('exit:rank=1,step=1,code=7', 7, 'To enable traceback see'),
        ('throw:rank=1,epoch=3,step=1', 1, 'traceback : cpprun::worker::FaultError: fault throw:'),
    ],
)
def test_fault_happens_on_its_rank(jobs, fault, code, text):
    running = jobs.cpprun(
        '--nproc-per-node=2', '--no-python', WORKER, 'train', env={'CPPRUN_FAULTS': fault}
    )
    assert running.done(30) == 1, running.output
    assert 'rank      : 1 (' in root_cause_index(running)
    assert f'exitcode  : {code} (pid:' in root_cause_index(running)
    assert text in root_cause_index(running)
    assert running.err.count(f'\ncpprun: fault {fault} at rank 1, training epoch ') == 1


def test_fault_of_the_first_attempt_spares_the_second(jobs):
    running = jobs.cpprun(
        '--nproc-per-node=2', '--max-restarts=1', '--no-python', WORKER, 'train',
        env={'CPPRUN_FAULTS': 'kill:rank=1,epoch=2,attempt=0'},
    )
    assert running.done(30) == 0, running.output
    assert running.out.count('trained') >= 2


def test_slow_rank_is_slow_at_each_matching_place(tmp_path):
    done, _ = alone('train', tmp_path, {'CPPRUN_FAULTS': 'slow:epoch=1,ms=1'})
    assert done.returncode == 0
    assert done.stderr.count('cpprun: fault slow:epoch=1,ms=1 at rank 0, training epoch 1') == 2


def test_stopped_worker_continues_after_sigcont(tmp_path):
    env = {**os.environ, 'CPPRUN_FAULTS': 'stop:epoch=1'}
    with subprocess.Popen([WORKER, 'train'], env=env, stdout=subprocess.PIPE) as worker:
        pid, status = os.waitpid(worker.pid, os.WUNTRACED)
        assert pid == worker.pid and os.WIFSTOPPED(status)
        worker.send_signal(signal.SIGCONT)
        assert worker.stdout.read() == b'trained\n'


def test_fault_without_a_place_happens_at_the_start(tmp_path):
    done, _ = alone('return', tmp_path, {'CPPRUN_FAULTS': 'exit:code=9'})
    assert done.returncode == 9


def test_invalid_fault_is_named(tmp_path):
    done, _ = alone('train', tmp_path, {'CPPRUN_FAULTS': 'explode'})
    assert done.returncode == 1
    assert "CPPRUN_FAULTS is 'explode': 'explode' is none of kill, stop" in done.stderr


@pytest.mark.parametrize('end', ['exception', 'segfault'])
def test_torchrun_shows_the_report(end, tmp_path):
    command = [TORCHRUN, '--standalone', '--nproc-per-node=2', '--no-python', WORKER, end, '1']
    done = subprocess.run(command, capture_output=True, check=False, timeout=120, text=True)
    shown = done.stderr.split('Root Cause', 1)[1]
    assert 'rank      : 1 (local_rank: 1)' in shown
    if end == 'exception':
        assert 'exitcode  : 1 ' in shown
        assert 'traceback : (anonymous namespace)::OwnError: no data for this rank' in shown
    else:
        assert 'exitcode  : -11 ' in shown
        assert 'traceback : SIGSEGV: invalid access to memory at 0x10' in shown
        assert '#0 (anonymous namespace)::write_through at ' in shown


def test_worker_in_c_meets_its_peer_in_the_store(jobs):
    running = jobs.cpprun('--nproc-per-node=2', '--no-python', C_WORKER, 'work')
    assert running.done(30) == 0, running.output
    for rank in (0, 1):
        text = f'rank {rank} of 2, local {rank} of 2, attempt 0: good, stop 0\n'
        assert text in running.out


def test_errors_in_c_are_texts(tmp_path):
    env = {**os.environ, 'RANK': '0'}
    done = subprocess.run([C_WORKER, 'errors'], env=env, capture_output=True, check=True, text=True)
    first, second = done.stdout.splitlines()
    assert first.startswith('open gives 5: ') and '127.0.0.1:1' in first
    assert second.startswith('WORLD_SIZE is not set, but RANK is; start the program with cpprun')
    assert done.returncode == 0


def test_report_from_c_reaches_the_summary(jobs):
    running = jobs.cpprun('--no-python', C_WORKER, 'report')
    assert running.done(30) == 1, running.output
    assert 'written: 1' in running.out
    assert 'traceback : no data here' in root_cause_index(running)
    assert 'exitcode  : 5 (pid:' in root_cause_index(running)


def test_crash_in_c_reaches_the_summary(jobs):
    running = jobs.cpprun('--no-python', C_WORKER, 'crash')
    assert running.done(30) == 1, running.output
    assert 'traceback : SIGABRT: abort() was called' in root_cause_index(running)
    assert '#3 main' in root_cause_index(running)


@pytest.mark.parametrize(
    ('how', 'fault', 'place'),
    [
        ('faults', 'throw:step=2', 'step 2'),
        ('snapshots', 'throw:phase=saving', 'step 20'),
    ],
)
def test_throwing_fault_in_c_ends_the_process_with_1(jobs, how, fault, place):
    running = jobs.cpprun('--no-python', C_WORKER, how, env={'CPPRUN_FAULTS': fault})
    assert running.done(30) == 1, running.output
    assert f'traceback : fault {fault} at rank 0, {place}' in root_cause_index(running)
    assert 'exitcode  : 1 (pid:' in root_cause_index(running)
