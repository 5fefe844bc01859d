"""Two people on one workstation of eight GPUs: one takes GPUs 2 and 3, the other all. The GPUs are
simulated; the workers' variables are real."""

import json
import re
import signal

import pytest
from launches import is_alive, poll

WORKER = """
import os, signal, sys, time
e = os.environ
if 'deaf' in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
shown = (e['RANK'], e['LOCAL_RANK'], e['CUDA_VISIBLE_DEVICES'], e['MASTER_PORT'], e['CPPRUN_STORE'])
print('worker', *shown, os.getpid(), flush=True)
time.sleep(300)
"""


@pytest.fixture
def person(cpprun, tmp_path):
    """Starts a job under --standalone with these GPUs; returns it and its workers, by rank."""
    script = tmp_path / 'train.py'
    script.write_text(WORKER)

    def start(cards, count, *args, flags=()):
        job = cpprun.start(
            'cpprun', '--standalone', *flags, script, *args,
            env={'CPPRUN_TEST_GPUS': '8', 'CUDA_VISIBLE_DEVICES': cards},
        )  # fmt: skip
        lines = job.wait_for_all(r'^worker (.*)$', count)
        return job, dict(sorted((int(line.split()[0]), line.split()[1:]) for line in lines))

    return start


def stop(job, limit=30):
    job.send(signal.SIGINT)
    assert job.done(limit) == 130, job.output


def test_two_jobs_do_not_interfere(person, cpprun):
    mine, my_workers = person('2,3', 2, flags=['--nproc_per_node=gpu'])
    yours, your_workers = person(','.join(map(str, range(8))), 8, flags=['--nproc_per_node=8'])
    assert [shown[1] for shown in my_workers.values()] == ['2,3', '2,3']
    assert list(your_workers) == list(range(8))
    ports = [{shown[2] for shown in workers.values()} for workers in (my_workers, your_workers)]
    stores = [{shown[3] for shown in workers.values()} for workers in (my_workers, your_workers)]
    for own, other in (ports, stores):
        assert len(own) == len(other) == 1 and own != other
    code, shown = cpprun.run('cpprunctl', 'ps', '--json')
    assert code == 0, shown
    worlds = {agent['pid']: agent['world_size'] for agent in json.loads(shown)['agents']}
    assert (worlds[mine.pid], worlds[yours.pid]) == (2, 8)

    stop(mine)  # and the other job is unaffected
    assert not [pid for *_, pid in my_workers.values() if is_alive(int(pid))]
    assert all(is_alive(int(pid)) for *_, pid in your_workers.values())
    assert len(re.findall(r'^worker', yours.output, re.M)) == 8
    stop(yours)
    assert cpprun.wait_until_gone() == []


def test_each_worker_sees_only_its_own_gpu(person):
    job, workers = person('2,3', 2, flags=['--nproc_per_node=gpu', '--virtual-local-rank'])
    assert [shown[:2] for shown in workers.values()] == [['0', '2'], ['0', '3']]
    stop(job)


def test_gpus_are_free_within_the_grace(person):
    """Also for workers that ignore Ctrl-C."""
    flags = ['--nproc_per_node=gpu', '--shutdown-timeout=1']
    job, workers = person('2,3', 2, 'deaf', flags=flags)
    stop(job, 15)
    pids = [int(pid) for *_, pid in workers.values()]
    poll(lambda: not any(map(is_alive, pids)), 1, 'the end of all workers')
