"""What cpprun infers from the variables that Slurm sets, with agents on loopback in place of nodes.
tests/labs has a real Slurm."""

import random
import socket
import stat
import time

import pytest
from cpprunctl import output_of
from nodes import cluster, wait_for  # noqa: F401

FIRST, SECOND = '127.0.0.1', '127.0.0.2'  # node names that need no lookup
HALF = 1250  # jobs whose numbers differ by this have the same ports


class Step:
    """A step of two nodes, as srun would start it."""

    def __init__(self, cluster, job):
        self.cluster, self.job = cluster, job
        self.run_id = f'{job}.0.0'

    def start(self, node, *options):
        variables = {
            'SLURM_JOB_ID': str(self.job), 'SLURM_JOB_NUM_NODES': '2', 'SLURM_STEP_ID': '0',
            'SLURM_STEP_NODELIST': f'{FIRST},{SECOND}', 'SLURM_STEP_TASKS_PER_NODE': '1(x2)',
            'SLURM_LOCALID': '0', 'SLURM_NODEID': str(node),
            'SLURMD_NODENAME': (FIRST, SECOND)[node], 'SLURM_SUBMIT_DIR': str(self.cluster.tmp)}
        return self.cluster.start(node, options, env=variables)

    def ports(self):
        return [10_000 + (self.job * 16 + i * 2503) % 20_000 for i in range(8)]

    def world(self, *nodes):
        return self.cluster.world(*nodes, job=self.run_id)


def listen(port, host=''):
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    taken.bind((host, port))
    taken.listen()
    return taken


@pytest.fixture
def step(cluster):
    """One whose ports are free: other tests use ports too."""
    for number in range(random.randrange(1000), HALF):
        made = Step(cluster, number)
        try:
            for port in made.ports():
                listen(port).close()
        except OSError:
            continue
        return made
    raise AssertionError('no job number has eight free ports')


def test_jobs_with_equal_ports_on_a_shared_node_do_not_meet(cluster, step):
    other = Step(cluster, step.job + HALF)
    assert other.ports() == step.ports()
    late = other.start(1)  # finds the first job's coordinator before its own
    here = [step.start(0), step.start(1)]
    first = step.world(0, 1)
    there = [other.start(0), late]
    second = other.world(0, 1)
    assert {w.world for w in first} == {w.world for w in second} == {2}
    cluster.finish(*here + there)


@pytest.mark.parametrize('is_silent', [True, False], ids=['silent', 'hangs-up'])
def test_a_port_that_another_program_has_is_passed_over(cluster, step, is_silent):
    with listen(step.ports()[0]) as taken:
        if not is_silent:
            taken.shutdown(socket.SHUT_RD)
        agents = [step.start(1), step.start(0)]
        step.world(0, 1)
        cluster.finish(*agents)


def test_without_a_free_port_the_error_names_the_way_out(cluster, step):
    taken = [listen(port) for port in step.ports()]
    agent = step.start(0).ends(1)
    assert '7 further ports of this job' in agent.err(), agent.describe()
    assert '--rdzv-endpoint=HOST:PORT' in agent.err(), agent.describe()
    for port in taken:
        port.close()


def test_an_elastic_job_waits_for_the_nodes_of_its_step(cluster, step):
    here = step.start(0, '--nnodes=1:4')
    wait_for(lambda: not is_free(step.ports()[0]) or not here.running(), here.describe)
    time.sleep(2)  # a job that expects no further node starts after one second
    late = step.start(1, '--nnodes=1:4')
    world = step.world(0, 1)
    assert world.round == 1, world
    cluster.finish(here, late)


def is_free(port):
    try:
        listen(port, FIRST).close()
    except OSError:
        return False
    return True


def test_a_drained_node_ends_with_0_if_the_others_finish(cluster, step):
    """srun gives the whole step the highest exit code of its nodes."""
    here, there = step.start(0, '--nnodes=1:2'), step.start(1, '--nnodes=1:2')
    step.world(0, 1)
    output_of('drain', '1', '--job', step.run_id, env=cluster.env())
    cluster.world(0, job=step.run_id)
    cluster.exit_workers(0)
    here.ends(0)
    there.ends(0)


def secret_files(cluster):
    return list(cluster.tmp.glob('.cpprun-secret-*'))


def test_the_first_node_makes_a_secret_for_the_job(cluster, step):
    agents = [step.start(1, '--slurm-secret=always'), step.start(0, '--slurm-secret=always')]
    step.world(0, 1)
    file, = secret_files(cluster)
    assert file.name == f'.cpprun-secret-{step.run_id}', file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600 and len(file.read_text().strip()) == 64
    foreign = cluster.start(2, [f'--rdzv-endpoint={FIRST}:{step.ports()[0]}', '--nnodes=2',
                                '--rdzv-backend=c10d', f'--rdzv-id={step.run_id}']).ends(1)
    assert 'accepts TLS alone' in foreign.err(), foreign.describe()
    cluster.finish(*agents)
    assert not secret_files(cluster)


def test_without_a_shared_file_system_there_is_no_secret(cluster, step):
    agents = [step.start(0), step.start(1)]
    step.world(0, 1)
    assert not secret_files(cluster) and ', no secret' in agents[0].err(), agents[0].describe()
    cluster.finish(*agents)


def test_a_node_that_does_not_find_the_secret_prints_what_to_do(cluster, step):
    agent = step.start(1, '--slurm-secret=always', '--rdzv-conf=join_timeout=1').ends(1)
    assert 'is the folder shared by all nodes?' in agent.err(), agent.describe()
    assert '--slurm-secret=never' in agent.err(), agent.describe()


def test_a_secret_that_cannot_be_made_is_an_error(cluster, step):
    (cluster.tmp / f'.cpprun-secret-{step.run_id}').mkdir()
    agent = step.start(0, '--slurm-secret=always', '--rdzv-conf=join_timeout=1').ends(1)
    assert 'secret' in agent.err(), agent.describe()
