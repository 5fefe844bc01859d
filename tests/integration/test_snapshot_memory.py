"""Memory that outlives workers, and messages about snapshots between workers and agent, with real
processes."""

import os
import pathlib
import re
import signal
import sys

import pytest
from channel_workers import WORKER, built  # noqa: F401
from conftest import BIN, is_alive, kill, poll
from launches import ROOT
from snapshot_folders import make_snapshot



def workers(jobs, code, n=2, flags=(), **options):
    """Runs a shell script as each worker; $WORKER in it is channel_worker."""
    script = jobs.sh(f'WORKER={WORKER}\nR=$LOCAL_RANK\nA=$TORCHELASTIC_RESTART_COUNT\n{code}')
    command = ('--standalone', f'--nproc-per-node={n}', *flags, '--no-python', script)
    return jobs.cpprun(*command, **options)


def arenas_of(entry):
    """The inodes of the arenas that a process, a folder in /proc, has open or mapped."""
    found = set()
    try:
        for fd in (entry / 'fd').iterdir():
            if 'memfd:cpprun-arena' in os.readlink(fd):
                found.add(fd.stat().st_ino)
        maps = (entry / 'maps').read_text().splitlines()
    except OSError:
        return set()
    return found | {int(line.split()[4]) for line in maps if 'memfd:cpprun-arena' in line}


def holders(arenas):
    """The processes that have one of these arenas open or mapped; other tests have others."""
    entries = pathlib.Path('/proc').glob('[0-9]*')
    return {int(entry.name) for entry in entries if arenas_of(entry) & arenas}


def foreign_names():
    """In /dev/shm; those of torch and Python, which other tests use at the same time, aside."""
    names = os.listdir('/dev/shm')
    return {name for name in names if not name.startswith(('torch_', 'sem.', 'psm_'))}


def test_next_worker_gets_the_memory_of_a_killed_one(jobs):
    code = """
    if [ $A = 0 ]; then $WORKER keep=state-of-$R mark=kept-$R await=never & fi
    if [ $A = 0 ]; then
      while [ ! -s $MARKS/kept-0 ] || [ ! -s $MARKS/kept-1 ]; do sleep 0.01; done
      [ $R = 0 ] && kill -9 $$; sleep 60
    fi
    exec $WORKER kept kept-of=0 kept-of=1 kept-of=2
    """
    job = workers(jobs, code, flags=('--max-restarts=1',))
    assert job.done() == 0
    for rank in (0, 1):
        output = job.wait_for_all(f'rank {rank}: (.*)', 4)
        whole = ["kept 'state-of-0'", "kept 'state-of-1'"]
        assert output == [whole[rank], *whole, 'local rank 2 keeps nothing in memory']


def has_huge_pages_on_request():
    """MADV_COLLAPSE needs Linux 6.1, and a kernel without huge pages has no such folder."""
    release = tuple(int(part) for part in re.findall(r'\d+', os.uname().release)[:2])
    return release >= (6, 1) and pathlib.Path('/sys/kernel/mm/transparent_hugepage').is_dir()


def test_memory_is_of_huge_pages_and_keeps_its_content(jobs):
    job = workers(jobs, 'exec $WORKER keep=before use-huge-pages kept', n=1)
    assert job.done() == 0
    output = 'huge pages' if has_huge_pages_on_request() else 'no huge pages'
    assert job.wait_for_all('rank 0: (.*)', 2) == [output, "kept 'before'"]


def test_memory_is_released_when_the_job_ends(jobs):
    job = workers(jobs, 'exec $WORKER keep=x mark=kept-$R await=end')
    jobs.numbers(['kept-0', 'kept-1'])
    arenas = arenas_of(pathlib.Path(f'/proc/{job.pid}'))
    assert job.pid in holders(arenas)
    (jobs.marks / 'end').write_text('x')
    assert job.done() == 0
    assert holders(arenas) == set()


def test_memory_is_released_when_the_agent_is_killed(jobs):
    before = foreign_names()
    job = workers(jobs, 'exec $WORKER keep=x mark=kept-$R await=never')
    pids = jobs.numbers(['kept-0', 'kept-1'])
    arenas = arenas_of(pathlib.Path(f'/proc/{job.pid}'))
    assert job.pid in holders(arenas)
    kill(job.pid)
    poll(lambda: not any(is_alive(pid) for pid in pids), 5, 'the end of the workers')
    assert holders(arenas) == set()
    assert foreign_names() <= before


def test_oversized_request_is_refused_with_the_reason_and_the_worker_uses_its_own_memory(jobs):
    job = workers(jobs, f'exec $WORKER keep-bytes={2**44} keep-bytes={2**44} kept')
    assert job.done() == 0
    assert job.out.count("kept '', our own") == 4
    assert job.err.count('is read from disk, not from memory') == 2
    assert 'and this one needs 16384.00 GiB' in job.err


def test_without_an_agent_memory_is_the_processs_own(jobs):
    args = ('keep=x', 'keep-bytes=100', 'kept-of=0', 'may-commit', 'snapshot=3', 'can-save')
    code, output = jobs.run(WORKER, *args)
    assert (code, output.splitlines()) == (
        0,
        [
            "rank 0: kept '', our own",
            "rank 0: there is no agent to ask for another worker's arena",
            'rank 0: may commit',
        ],
    )


def test_the_same_in_c(jobs):
    assert jobs.run(BIN / 'c_worker', 'snapshots') == (75, 'may commit: 1\n')
    code = f'[ $R = 0 ] && exec $WORKER await-newest; {BIN}/c_worker snapshots; [ $? = 75 ]'
    job = workers(jobs, code)
    assert job.done() == 0
    assert sorted(job.out.splitlines()) == ['may commit: 1', 'rank 0: newest 20']


def test_notice_reaches_the_other_workers(jobs):
    code = '[ $R = 0 ] && exec $WORKER snapshot=20 await-newest; exec $WORKER await-newest'
    job = workers(jobs, code)
    assert job.done() == 0
    assert sorted(job.out.splitlines()) == ['rank 0: newest 20', 'rank 1: newest 20']


@pytest.mark.parametrize('language', ['c++', 'python'])
def test_unusable_snapshot_is_not_chosen_again(jobs, tmp_path, language):
    for step in (10, 20):
        make_snapshot(tmp_path / 'snapshots', step)
    command = '$WORKER fell-back=10'
    if language == 'python':
        code = 'import cpprun_worker as w; w.report_resumed(10, "/step-10", fell_back=True)'
        command = f"PYTHONPATH={ROOT}/worker_sdk/python {sys.executable} -c '{code}'"
    code = f"""
    echo $A: $CPPRUN_RESUME_FROM
    [ $A = 0 ] && {{ {command}; exit 1; }}
    exit 0
    """
    flags = ('--max-restarts=1', f'--snapshot-dir={tmp_path}/snapshots')
    job = workers(jobs, code, n=1, flags=flags)
    assert job.done() == 0
    output = [line.rsplit('/', 1)[-1] for line in job.out.splitlines()]
    assert output == ['step-20', 'step-10']
    assert 'the snapshot of step 20 could not be used, training continues from step 10' in job.err


def test_commits_are_permitted_while_the_round_runs_and_not_after_a_stop(jobs):
    code = """
    [ $R = 1 ] && exec $WORKER ignore-term may-commit mark=asked await-stop may-commit
    while [ ! -s $MARKS/asked ]; do sleep 0.01; done
    exit 7
    """
    job = workers(jobs, code)
    assert job.done(20) == 1
    output = job.wait_for_all('rank 1: (may.*)', 2)
    assert output == ['may commit', 'may not commit: this round is being stopped']


def test_silent_agent_permits_no_commit(jobs):
    job = workers(jobs, 'exec $WORKER agent mark=up await=go may-commit mark=asked', n=1)
    jobs.mark('up')
    os.kill(job.pid, signal.SIGSTOP)
    (jobs.marks / 'go').write_text('x')
    jobs.mark('asked', 30)
    os.kill(job.pid, signal.SIGCONT)
    assert job.done() == 0
    assert 'may not commit: the agent does not answer' in job.out
