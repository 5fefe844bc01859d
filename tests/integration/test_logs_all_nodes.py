"""cpprunctl logs --all-nodes: the lines of all ranks on all nodes, each once, and gaps named."""

import os
import subprocess
import sys

import pytest
from launches import SLOWEST
from nodes import BIN, Job, cluster, wait_for  # noqa: F401
from nodes_etcd import EtcdJob, make_etcd  # noqa: F401
from tls_peers import write_secret

CTL = BIN / 'cpprunctl'
TOKEN = 'a token that nobody guesses'
TAKES = 60 * SLOWEST

# Writes LINES_EACH lines, and one more when a file of the test ends it.
WRITER = """
import os, sys, time
rank, r = os.environ['RANK'], os.environ['CPPRUN_ROUND']
folder, n = os.environ['NODES_DIR'], int(os.environ.get('LINES_EACH', '50'))
for i in range(n):
    print(f'{r}.{i} ' + 'x' * int(os.environ.get('WIDTH', '10')))
sys.stdout.flush()
print('err', r, file=sys.stderr, flush=True)
open(f'{folder}/up.{r}.{rank}', 'w').close()
def commands():
    return [c for c in ('end', f'fail.{r}.{rank}') if os.path.exists(f'{folder}/{c}')]
while not commands():
    time.sleep(0.02)
print(f'{r}.last')
sys.exit(3 if commands() == [f'fail.{r}.{rank}'] else 0)
"""
PROGRAM = ('--no-python', sys.executable, '-c', WRITER)


class Reader:
    """A cpprunctl that runs; its output goes to files."""

    def __init__(self, folder, *args, token=TOKEN, stdout=None):
        self.paths = folder / 'reader.out', folder / 'reader.err'
        with open(self.paths[0], 'wb') as out, open(self.paths[1], 'wb') as err:
            self.popen = subprocess.Popen(
                [CTL, 'logs', '--all-nodes', *args], stdout=stdout or out, stderr=err,
                env={**os.environ, 'CPPRUN_ADMIN_TOKEN': token}, stdin=subprocess.DEVNULL)

    def out(self):
        return self.paths[0].read_text()

    def err(self):
        return self.paths[1].read_text()

    def shows(self, text):
        wait_for(lambda: text in self.out() or self.popen.poll() is not None,
                 lambda: f'{text!r}: {self.out()[-2000:]}{self.err()}', 60)
        assert text in self.out(), self.err()

    def has_begun(self):
        """Waits until it reads all four ranks: one that comes after the job's end gets nothing."""
        for rank in range(4):
            self.shows(f'[{rank}]: 1.49')

    def ends(self, code=0):
        assert self.popen.wait(TAKES) == code, self.err()
        return self.out()


@pytest.fixture
def writers(cluster):  # noqa: F811
    """Nodes of two workers that write log files."""

    def start(nodes=(0, 1), nnodes=2, restarts=0, up=None, flags=('--redirects=3',), etcd=None,
              **env):
        job = EtcdJob(cluster, etcd, nnodes) if etcd else Job(cluster, nnodes, restarts=restarts)
        for node in nodes:
            job.agent(node, *flags, f'--log-dir={cluster.tmp}/logs{node}', nproc=2,
                      program=PROGRAM, CPPRUN_ADMIN_TOKEN=TOKEN, **env)
        wait_up(cluster, 1, range(2 * len(nodes) if up is None else up))
        return job

    return start


@pytest.fixture
def reads(tmp_path):
    made = []

    def start(*args, **how):
        folder = tmp_path / f'reader{len(made)}'
        folder.mkdir()
        made.append(Reader(folder, *args, **how))
        return made[-1]

    yield start
    for reader in made:
        if reader.popen.poll() is None:
            reader.popen.kill()
            reader.popen.wait()


def wait_up(cluster, number, ranks):  # noqa: F811
    wait_for(lambda: all((cluster.folder / f'up.{number}.{rank}').exists() for rank in ranks),
             lambda: ''.join(agent.describe() for agent in cluster.agents), 60)


def order(cluster, name):  # noqa: F811
    (cluster.folder / name).touch()


def lines_of(text, rank):
    front = f'[{rank}]: '
    return [line[len(front):].split()[0] for line in text.splitlines()
            if line.startswith(front) and ' err ' not in f' {line[len(front):]}']


def expected(number, lines=50, last=True):
    return [f'{number}.{i}' for i in range(lines)] + ([f'{number}.last'] if last else [])


def kill(cluster, agent):  # noqa: F811
    agent.popen.kill()
    agent.popen.wait()
    cluster.agents.remove(agent)


def end(cluster, code=0):  # noqa: F811
    order(cluster, 'end')
    for agent in cluster.agents:
        agent.ends(code, 60)


def test_all_lines_of_all_nodes_once_until_the_job_ends(writers, cluster, reads):  # noqa: F811
    job = writers()
    reader = reads('--follow', job.run_id)
    late = reads('--follow', '--endpoint', f'127.0.0.1:{job.port}')
    for one in (reader, late):
        one.has_begun()
    end(cluster)
    for one in (reader, late):
        text = one.ends()
        assert one.err() == ''
        for rank in range(4):
            assert lines_of(text, rank) == expected(1), rank
            assert text.count(f'[{rank}]: err 1\n') == 1


def test_with_a_job_secret(writers, cluster, reads):  # noqa: F811
    secret = f'--secret-file={write_secret(cluster.tmp / "secret")}'
    job = writers(flags=('--redirects=3', secret))
    text = reads(job.run_id, '--endpoint', f'127.0.0.1:{job.port}', secret).ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1, last=False)
    reader = reads(job.run_id, '--endpoint', f'127.0.0.1:{job.port}')
    assert reader.ends(1) == '' and 'TLS' in reader.err()
    end(cluster)


def test_at_a_coordinator_that_etcd_elected(writers, cluster, reads, make_etcd):  # noqa: F811
    job = writers(etcd=make_etcd().wait())
    by_name = reads('--follow', job.run_id)
    address, port = job.leader()
    text = reads(job.run_id, '--endpoint', f'{address}:{port}').ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1, last=False)
    by_name.has_begun()
    end(cluster)
    text = by_name.ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1)


def test_without_follow_it_ends_at_once(writers, cluster, reads):  # noqa: F811
    job = writers()
    text = reads(job.run_id).ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1, last=False)
    assert reads(job.run_id, '--rank=2', '-n', '2').ends().splitlines() == \
        ['1.48 xxxxxxxxxx', '1.49 xxxxxxxxxx', 'err 1']
    text = reads(job.run_id, '--node=1').ends()
    assert lines_of(text, 0) == [] and lines_of(text, 2) == expected(1, last=False)
    end(cluster)


def test_a_fast_writer_and_a_slow_reader(writers, cluster, reads):  # noqa: F811
    """A reader that does not read holds neither the job nor another reader."""
    job = writers(LINES_EACH='20000', WIDTH='200')
    stuck_end, stuck_out = os.pipe()
    stuck = reads('--follow', job.run_id, stdout=stuck_out)
    os.close(stuck_out)
    reader = reads('--follow', job.run_id)
    reader.shows('[3]: 1.19999')
    end(cluster)
    text = reader.ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1, 20000)
    stuck.popen.kill()
    os.close(stuck_end)


def test_rounds_follow_each_other(writers, cluster, reads):  # noqa: F811
    """A reader that starts late gets the rounds before; the lines of a rank are in order."""
    job = writers(restarts=1)
    follower = reads('--follow', job.run_id)
    follower.shows('[3]: 1.49')
    order(cluster, 'fail.1.2')
    wait_up(cluster, 2, range(4))
    late = reads('--follow', job.run_id)
    late.shows('[3]: 2.49')
    end(cluster)
    for reader in (follower, late):
        text = reader.ends()
        assert lines_of(text, 2) == expected(1) + expected(2)
        for rank in (0, 1, 3):
            # SIGTERM ends them before their last line.
            assert lines_of(text, rank) == expected(1, last=False) + expected(2)
        assert reader.err() == ''


def test_a_killed_node_is_named_and_the_job_is_read_on(writers, cluster, reads):  # noqa: F811
    job = writers(nodes=(0, 1, 2), nnodes='2:3', restarts=1, up=6)
    reader = reads('--follow', job.run_id)
    for rank in range(6):
        reader.shows(f'[{rank}]: 1.49')
    host = job.host_of(cluster.agents)
    kill(cluster, next(agent for agent in cluster.agents if agent is not host))
    wait_up(cluster, 2, range(4))
    reader.shows('[3]: 2.49')
    end(cluster)
    text = reader.ends()
    assert 'cannot be read' in reader.err() and 'the lines of round 1' in reader.err()
    assert reader.err().count('cannot be read') == 1
    found = [lines_of(text, rank) for rank in range(6)]
    for lines in found[:4]:  # SIGTERM ends the workers of round 1 before their last line
        assert lines == expected(1, last=False) + expected(2)
    for lines in found[4:]:
        assert lines == expected(1, last=False)


def test_the_coordinator_dies_and_its_standby_continues(writers, cluster, reads):  # noqa: F811
    job = writers(nodes=(0, 1, 2), nnodes='2:3', restarts=1, up=6)
    wait_for(lambda: any(n.get('is_standby') for n in job.status().get('nodes', [])), job.status)
    reader = reads('--follow', job.run_id)
    reader.shows('[5]: 1.49')
    kill(cluster, job.host_of(cluster.agents))
    wait_up(cluster, 2, range(4))
    reader.shows('[3]: 2.49')
    end(cluster)
    text = reader.ends()
    for rank in range(4):
        assert lines_of(text, rank) == expected(1, last=False) + expected(2)


def test_truncated_and_replaced_files_are_named(writers, cluster, reads):  # noqa: F811
    job = writers()
    reader = reads('--follow', job.run_id)
    for rank in range(4):
        reader.shows(f'[{rank}]: 1.49')
    found = {}
    for path in cluster.tmp.glob('logs*/*/attempt_0/*/stdout.log'):
        found[len(found)] = path
    first, second = found[0], found[1]
    os.truncate(first, 0)
    with open(first, 'a', encoding='utf-8') as file:
        file.write('fresh one\n')
    reader.shows('fresh one')
    os.link(second, second.with_suffix('.1'))  # the worker continues to write there
    other = second.with_suffix('.new')
    other.write_text('fresh two\n')
    other.replace(second)
    reader.shows('fresh two')
    third = found[2]
    third.unlink()
    wait_for(lambda: 'was removed' in reader.err(), reader.err)
    assert 'was truncated; lines behind its first' in reader.err()
    assert 'was replaced by another file' in reader.err()
    assert reader.out().count('fresh one') == 1 and reader.out().count('fresh two') == 1
    end(cluster)
    reader.ends()
    assert reader.err().count('was ') == 3


def test_who_has_no_token_reads_nothing(writers, cluster, reads):  # noqa: F811
    job = writers()
    endpoint = f'--endpoint=127.0.0.1:{job.port}'
    reader = reads(job.run_id, endpoint, token='')
    assert reader.ends(2) == '' and 'CPPRUN_ADMIN_TOKEN' in reader.err()
    reader = reads(job.run_id, endpoint, token='another token of this length')
    assert reader.ends(1) == '' and 'the token is wrong' in reader.err()
    end(cluster)


def test_a_job_without_log_files_is_reported(writers, cluster, reads):  # noqa: F811
    job = writers(flags=())
    reader = reads(job.run_id)
    assert reader.ends(1) == '' and '--log-dir DIR --tee 3 does' in reader.err()
    reader = reads('--endpoint', f'127.0.0.1:{job.port}', 'another-job')
    assert reader.ends(1) == '' and "no job 'another-job'" in reader.err()
    end(cluster)
