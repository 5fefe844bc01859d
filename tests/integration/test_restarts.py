"""Repeated restarts: the budget is exact, and no resource grows."""

import os
import time

import pytest
from conftest import free_port, has_no_traces, kill, poll, read_bytes
from process_info import memory_kib


def descriptors(pid):
    """The minimum of several counts: sometimes it has a part of /proc open."""
    return min(len(os.listdir(f'/proc/{pid}/fd')) for _ in poll_often(50))


def poll_often(count):
    """That many iterations, a hundredth of a second apart."""
    for turn in range(count):
        end = time.monotonic() + 0.01
        poll(lambda end=end: time.monotonic() >= end, 5)
        yield turn


def test_fifty_restarts_of_a_worker_that_fails_immediately(jobs, ground):
    worker = jobs.sh('echo "try $TORCHELASTIC_RESTART_COUNT"; exit 3')
    args = ('--nproc-per-node=2', '--max-restarts=50')
    running = jobs.cpprun(*args, worker, wrap=ground)
    assert running.done(60) == 1, running.output
    tries = {int(line.split()[1]) for line in running.out.splitlines()}
    assert tries <= set(range(51))
    assert {0, 50} <= tries, 'each round had at least the worker that failed'
    assert '  restarts  50 of 50 used' in running.err
    assert running.err.count('Root Cause') == 1
    assert has_no_traces(running.err)
    assert jobs.wait_until_gone() == []


@pytest.mark.parametrize('args', [(), ('--tee=3', '--log-dir=logs')], ids=['plain', 'tee'])
def test_memory_and_descriptors_stay_flat(jobs, args):
    """Measured in an early round, and fifty rounds later."""
    worker = jobs.sh(
        'case $TORCHELASTIC_RESTART_COUNT in\n'
        '  5|55) echo up >"$MARKS/at$TORCHELASTIC_RESTART_COUNT.$RANK"; exec sleep 60;;\n'
        'esac\nsetsid sleep 60 & exit 1'
    )
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=56', *args, worker)
    seen = []
    for restart in (5, 55):
        for rank in (0, 1):
            jobs.mark(f'at{restart}.{rank}', 60)
        sleepers = poll(lambda: sleeping(jobs, 2), what='both workers, and nothing else')
        seen.append((descriptors(running.pid), memory_kib(running.pid)))
        kill(sleepers[0])
    running.done(30)
    (fds, memory), (later_fds, later_memory) = seen
    assert later_fds <= fds + 1, seen
    assert later_memory <= memory + 1024, seen
    assert jobs.wait_until_gone() == []


def sleeping(jobs, count):
    found = [p for p in jobs.alive() if read_bytes(f'/proc/{p}/comm') == b'sleep\n']
    return found if len(found) == count else None


@pytest.mark.parametrize('budget', [0, 1, 3])
def test_budget_is_exact(jobs, budget):
    worker = jobs.sh('[ "$RANK" = 1 ] || exec sleep 60; echo "try"; exit 3')
    running = jobs.cpprun('--nproc-per-node=2', f'--max-restarts={budget}', worker)
    assert running.done(30) == 1, running.output
    assert running.out.count('try') == budget + 1
    assert f'  restarts  {budget} of {budget} used' in running.err


def test_simultaneous_failures_cost_one_restart(jobs):
    worker = jobs.sh(
        'r=$TORCHELASTIC_RESTART_COUNT; echo up >"$MARKS/up$r.$RANK"\n'
        'while [ ! -e "$MARKS/go$r" ]; do :; done; [ "$r" = 3 ] || kill -9 $$'
    )
    running = jobs.cpprun('--nproc-per-node=4', '--max-restarts=3', worker)
    for restart in range(4):
        for rank in range(4):
            jobs.mark(f'up{restart}.{rank}')
        (jobs.marks / f'go{restart}').touch()
    assert running.done(20) == 0, running.output
    assert jobs.wait_until_gone() == []


def test_finished_workers_run_again_with_the_others(jobs):
    worker = jobs.sh(
        'echo "ran $RANK"; [ "$TORCHELASTIC_RESTART_COUNT" = 0 ] || exit 0\n'
        'if [ "$RANK" = 1 ]; then echo $$ >"$MARKS/one"; exit 0; fi\n'
        'while [ ! -s "$MARKS/one" ] || kill -0 "$(cat "$MARKS/one")"; do sleep 0.01; done\n'
        'exit 3'
    )
    running = jobs.cpprun('--nproc-per-node=2', '--max-restarts=1', worker)
    assert running.done(20) == 0, running.output
    assert sorted(running.out.split()) == ['0', '0', '1', '1', *['ran'] * 4]


def test_restart_has_its_own_port_and_store(jobs):
    worker = jobs.sh('echo "$MASTER_PORT $CPPRUN_STORE"; exit 1')
    running = jobs.cpprun('--max-restarts=5', worker)
    assert running.done(20) == 1
    seen = running.out.splitlines()
    assert len(seen) == 6
    assert len(set(seen)) == 6, seen


def test_fixed_port_stays_over_restarts(jobs):
    port = free_port()
    worker = jobs.sh('echo $MASTER_PORT; exit 1')
    running = jobs.cpprun(f'--master-port={port}', '--max-restarts=5', worker)
    assert running.done(20) == 1
    assert running.out.split() == [str(port)] * 6


def test_attempt_without_a_folder_continues_without_files(jobs):
    """As on a full disk: output for files goes to the console, with one message."""
    logs = jobs.folder / 'logs'
    worker = jobs.sh(f'case $TORCHELASTIC_RESTART_COUNT in 0) rm -rf {logs}/*; exit 3;; '
                     '1) exit 3;; esac; echo "it continues"; echo "to both" >&2')
    running = jobs.cpprun('--max-restarts=2', f'--log-dir={logs}', '--redirects=1', '--tee=2',
                          worker)
    assert running.done(20) == 0, running.output
    assert running.out == 'it continues\n'
    assert 'to both' in running.err
    assert running.err.count('keep no log and error files') == 1, running.err
