"""cpprunctl with the agents of this machine: display and commands."""

import json
import os
import pathlib
import pty
import signal
import socket
import struct
import subprocess
import termios
import time

import pytest
from conftest import free_port, is_alive, poll
from cpprunctl import CTL, TAKES, ctl, output_of

ROOT = pathlib.Path(__file__).resolve().parents[2]

SLEEPER = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: open(os.environ['MARKS'] + '/usr1-' + os.environ['RANK'],
                                              'w').write('got it'))
print('line 1\\nline 2\\nline 3')
open(os.environ['MARKS'] + '/up-' + os.environ['RANK'], 'w').write(str(os.getpid()))
while True:
    time.sleep(60)
"""


def agents(run_id):
    found = json.loads(output_of('ps', '--json'))['agents']
    return [agent for agent in found if agent['run_id'] == run_id]


def sleepers(jobs, n=2, *flags):
    """A job of workers that sleep, which its agent lists: a worker may run before the agent's loop
    knows it. Returns the job, its run id and the workers' pids."""
    run_id = f'ctl-{os.getpid()}-{time.monotonic_ns()}'
    job = jobs.cpprun('--standalone', f'--rdzv-id={run_id}', f'--nproc-per-node={n}', *flags,
                      *jobs.py(SLEEPER))
    pids = jobs.numbers([f'up-{rank}' for rank in range(n)], TAKES)
    poll(lambda: len(own_agent(job)['workers']) == n)
    return job, run_id, pids


def test_agents_that_do_not_answer_delay_only_once(jobs):
    """Each is asked for 2 s, all at the same time."""
    job, _, _ = sleepers(jobs, 1)
    run_id = own_run_id(job)
    silent = [socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) for _ in range(60)]
    for number, agent in enumerate(silent):
        agent.bind(f'\0cpprun/ctl/{os.getpid()}.silent{number}')
        agent.listen()
    begin = time.monotonic()
    found = agents(run_id)
    assert time.monotonic() - begin < 60, 'one after the other they take 120 s'
    assert len(found) == 1
    for agent in silent:
        agent.close()


def own_agent(job):
    agent, = [a for a in json.loads(output_of('ps', '--json'))['agents'] if a['pid'] == job.pid]
    return agent


def own_run_id(job):
    """--standalone may choose a run id of its own."""
    return own_agent(job)['run_id']


def test_job_is_found_without_an_address(jobs):
    job, _, pids = sleepers(jobs)
    run_id = own_run_id(job)
    assert run_id in output_of('ps')
    agent, = agents(run_id)
    assert agent['state'] == 'running' and agent['world_size'] == 2 and agent['is_host']
    assert [worker['pid'] for worker in agent['workers']] == pids
    assert output_of('pid', 1, '--job', run_id) == f'{pids[1]}\n'
    assert output_of('pid', '--rank', 0, '--job', run_id) == f'{pids[0]}\n'
    text = output_of('status', run_id)
    assert f'job {run_id}\nrunning, round 1' in text and str(pids[0]) in text
    whole = json.loads(output_of('status', '--json', run_id))
    assert whole['status']['jobs'][run_id]['phase'] == 'running'
    assert whole['status']['jobs'][run_id]['state'] == 'running'
    assert output_of('ps').count(run_id) == 1 and agent['job_state'] == 'running'
    assert f'job {run_id}\n' in output_of('status', run_id[:-1]), 'a unique beginning is enough'
    assert f"job '{run_id}' begins" in output_of('events', run_id)
    elsewhere = output_of('status', run_id, '--rdzv-endpoint', agent['coordinator'])
    assert 'running, round 1' in elsewhere and 'workers here' not in elsewhere


def test_missing_targets_are_reported(jobs):
    job, _, _ = sleepers(jobs, 1)
    run_id = own_run_id(job)
    refused = ctl('pid', 7, '--job', run_id)
    assert refused.returncode != 0 and 'these do: 0' in refused.stderr
    refused = ctl('status', 'no-such-job')
    assert refused.returncode != 0 and "no job 'no-such-job' runs here" in refused.stderr
    refused = ctl('signal', 'NONSENSE', '--job', run_id)
    assert refused.returncode == 2 and 'is no signal' in refused.stderr
    refused = ctl('logs', run_id)
    assert refused.returncode != 0 and '--tee 3' in refused.stderr
    assert ctl('nonsense').returncode == 2


def test_signal_reaches_the_addressed_rank(jobs):
    job, _, _ = sleepers(jobs)
    run_id = own_run_id(job)
    assert 'sent SIGUSR1 to 1 worker' in output_of('signal', 'USR1', '--rank', 1, '--job', run_id)
    jobs.mark('usr1-1', TAKES)
    assert not (jobs.marks / 'usr1-0').exists()
    assert 'sent SIGUSR1 to 2 workers' in output_of('signal', '10', '--job', run_id)
    jobs.mark('usr1-0', TAKES)


def test_logs_are_shown_and_followed(jobs):
    job, _, _ = sleepers(jobs, 2, f'--log-dir={jobs.folder}/logs', '--redirects=3')
    run_id = own_run_id(job)
    assert output_of('logs', '--rank', 0, '-n', 2, run_id) == 'line 2\nline 3\n'
    both = output_of('logs', run_id)
    assert '[0]: line 1\n' in both and '[1]: line 3\n' in both
    follower = subprocess.Popen([CTL, 'logs', '-f', '--rank', '1', run_id],
                                stdout=subprocess.PIPE, text=True)
    try:
        assert [follower.stdout.readline() for _ in range(3)][2] == 'line 3\n'
        path = next(agent['workers'][1]['stdout'] for agent in agents(run_id))
        with open(path, 'a', encoding='utf-8') as out:
            out.write('one more\nhalf')
        assert follower.stdout.readline() == 'one more\n'
        job.send(2)
        assert 'half' in follower.stdout.read(), 'and it ends with the job'
        assert follower.wait(TAKES) == 0
    finally:
        follower.kill()
        follower.wait()
        follower.stdout.close()


def test_stacks_show_what_workers_do(jobs):
    job, _, pids = sleepers(jobs)
    run_id = own_run_id(job)
    both = output_of('stacks', run_id)
    for rank, pid in enumerate(pids):
        assert f'rank {rank} (local rank {rank}, pid {pid}): no heartbeats' in both
    assert both.count('kernel: waits in ') == 2
    assert 'ptrace' not in both, 'what the kernel shows while py-spy or gdb is attached'
    found, = json.loads(output_of('stacks', '--json', '--rank', 1, run_id))['stacks']
    assert (found['rank'], found['pid']) == (1, pids[1]) and 'kernel: ' in found['text']
    refused = ctl('stacks', '--rank', 9, run_id)
    assert refused.returncode != 0 and 'these do: ' in refused.stderr
    assert all(is_alive(pid) for pid in pids)


def test_worker_with_the_helper_writes_its_own_stack(jobs):
    code = f"""
import os, sys
sys.path.insert(0, {str(ROOT / 'worker_sdk/python')!r})
import cpprun_worker
def here_it_waits():
    open(os.environ['MARKS'] + '/up-0', 'w').write(str(os.getpid()))
    while True:
        import time; time.sleep(60)
cpprun_worker.report_ready()
here_it_waits()
"""
    job = jobs.cpprun('--standalone', '--nproc-per-node=1', *jobs.py(code))
    jobs.numbers(['up-0'], TAKES)
    assert 'here_it_waits' in output_of('stacks', own_run_id(job))


def test_top_without_a_terminal_prints_tables(jobs):
    job, _, _ = sleepers(jobs, 1)
    run_id = own_run_id(job)
    text = output_of('top', '-n', 2, '-d', 0.1, run_id)
    assert text.count(f'job {run_id}\n') == 2 and '\x1b' not in text


def test_top_that_a_signal_ends_restores_the_terminal(jobs):
    job, _, _ = sleepers(jobs, 1)
    main, other = pty.openpty()
    before = termios.tcgetattr(other)
    command = [CTL, 'top', own_run_id(job)]
    top = subprocess.Popen(command, stdin=other, stdout=subprocess.DEVNULL)
    poll(lambda: not termios.tcgetattr(other)[3] & termios.ECHO)
    top.terminate()
    assert top.wait(TAKES) == -signal.SIGTERM
    assert termios.tcgetattr(other) == before
    for end in (main, other):
        os.close(end)


def test_top_shows_memory_and_gpus(jobs):
    """With an nvidia-smi that reports one GPU; then with one that never answers, and without one.
    """
    job, _, _ = sleepers(jobs, 1)
    run_id = own_run_id(job)
    tool = jobs.folder / 'bin/nvidia-smi'
    tool.parent.mkdir()
    tool.write_text('#!/bin/sh\necho "0, NVIDIA H100 80GB HBM3, 98, 70012, 81559"\n')
    tool.chmod(0o755)
    env = {**os.environ, 'PATH': f'{tool.parent}:/usr/bin:/bin'}
    text = ctl('top', '-n', 1, run_id, env=env).stdout
    assert ' MEMORY\n' in text and ' MiB\n' in text.split('GPUs here')[0]
    assert '0    98 %  70012 of 81559 MiB  NVIDIA H100 80GB HBM3\n' in text
    tool.write_text('#!/bin/sh\nexec sleep 60\n')
    assert 'GPUs' not in ctl('top', '-n', 1, run_id, env=env).stdout
    assert 'GPUs' not in ctl('top', '-n', 1, run_id, env={**env, 'PATH': '/nowhere'}).stdout
    assert 'GPUs' not in output_of('status', run_id)


def test_stop_works_like_a_signal(jobs):
    for args, code in (['--resumable'], 143), ([], 130):
        job, _, pids = sleepers(jobs, 1)
        run_id = own_run_id(job)
        assert 'asked 1 node to' in output_of('stop', run_id, *args)
        assert job.done(TAKES) == code, 'this worker can save nothing'
        assert not is_alive(pids[0])
        (jobs.marks / 'up-0').unlink()


def test_drained_node_leaves_and_the_others_continue(jobs):
    run_id = f'drain-{os.getpid()}-{time.monotonic_ns()}'
    flags = (f'--rdzv-id={run_id}', '--rdzv-backend=c10d', '--nnodes=1:2', '--nproc-per-node=1',
             f'--rdzv-endpoint=127.0.0.1:{free_port()}', '--rdzv-conf=last_call_timeout=60')
    both = [jobs.cpprun(*flags, *jobs.py(SLEEPER)) for _ in range(2)]
    jobs.numbers(['up-0', 'up-1'], TAKES)
    refused = ctl('drain', socket.gethostname(), '--job', run_id)
    assert refused.returncode != 0 and 'by its group rank' in refused.stderr
    guest = next(agent for agent in agents(run_id) if not agent['is_host'])
    assert 'save and leave' in output_of('drain', guest['group_rank'], '--job', run_id)
    assert next(job for job in both if job.pid == guest['pid']).done(TAKES) == 143
    poll(lambda: [(a['round'], a['state'], len(a['workers'])) for a in agents(run_id)]
         == [(2, 'running', 1)], TAKES, lambda: str(agents(run_id)))


def operator_sockets():
    lines = open('/proc/net/unix', encoding='utf-8').read().split('\n')
    return {line.rsplit('@', 1)[1] for line in lines if '@cpprun/ctl/' in line}


def socket_of(job):
    return poll(lambda: [name for name in operator_sockets() if f'/{job.pid}.' in name],
                TAKES, lambda: f'no socket of {job.pid}')[0]


def answer_to(name, frame):
    """An agent's answer to these bytes, until it disconnects."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(TAKES)
        s.connect('\0' + name)
        s.sendall(frame)
        got = b''
        while piece := s.recv(65536):
            got += piece
        return got


def test_invalid_requests_end_only_their_connection(jobs):
    job, _, pids = sleepers(jobs, 1)
    name = socket_of(job)
    for frame in (b'\0\0\0\0', b'\xff\xff\xff\xff', struct.pack('<I', 65537)):
        assert answer_to(name, frame) == b''
    for body in (b'[' * 60000, b'{"verb":"nonsense"}', b'\xff' * 9, b'{"verb":"signal"}'):
        assert b'refused' in answer_to(name, struct.pack('<I', len(body)) + body)
    run_id = own_run_id(job)  # while the agent is full, `ps` does not find it
    idle = [socket.socket(socket.AF_UNIX) for _ in range(64)]
    for s in idle:
        s.connect('\0' + name)
    for s in idle:
        s.close()
    poll(lambda: f'{pids[0]}' in ctl('pid', 0, '--job', run_id).stdout, TAKES, lambda: '')
    assert is_alive(pids[0]) and job.process.poll() is None


@pytest.mark.skipif(os.geteuid() != 0, reason='only root can be another user')
def test_other_users_are_disconnected(jobs):
    job, _, pids = sleepers(jobs, 1)
    name = socket_of(job)
    body = b'{"verb":"signal","signal":"9"}'
    frame = struct.pack('<I', len(body)) + body
    code = (f'import socket,sys\ns=socket.socket(socket.AF_UNIX)\ns.connect("\\0{name}")\n'
            f'try:\n s.sendall({frame!r})\n sys.exit(len(s.recv(9)))\nexcept OSError: sys.exit(0)')
    done = subprocess.run(['/usr/bin/python3', '-c', code], user=65534, group=65534,
                          extra_groups=[], timeout=TAKES, check=False)
    assert done.returncode == 0, 'it got an answer'
    assert is_alive(pids[0])
