"""Programs of the frameworks under cpprun: two ranks on one node and on two, a rank that is killed
once, and a run that ends with the parameters of one without failure.

docs/reference/frameworks.md has the matrix.
"""

import re
import shutil
import subprocess

import pytest
from conftest import BIN, PROGRAMS, PYTHON, ROOT, free_port
from launches import poll

TORCHX = ROOT / 'build/venv-torchx/bin/torchx'
FAIL_AT = '1:6'  # rank 1, before its seventh step; the checkpoint before is of step 4
RESUMED, LAST = 4, 12
# By program: the ranks that print parameters.
CASES = {
    'lightning': (0, 1),
    'accelerate': (0, 1),
    'transformers': (0, 1),
    'deepspeed': (0, 1),
    'fsdp2': (0, 1),
    'rpc': (0,),
    'torchmetrics': (0, 1),
    'ignite': (0, 1),
    'nanogpt': (0, 1),
}
SECONDS = 120  # of a run, on a quiet machine


def results(agents, ranks):
    """The step and the digest that all these ranks print."""
    def codes():
        """Of those that have ended; one that fails ends the wait."""
        found = [agent.process.poll() for agent in agents]
        return found if None not in found or any(found) else None
    assert not any(poll(codes, SECONDS, lambda: output_of(agents))), output_of(agents)
    found = re.findall(r'\[rank (\d)\] step (\d+) parameters (\w+)', output_of(agents))
    assert sorted(int(rank) for rank, _, _ in found) == list(ranks), output_of(agents)
    (result,) = {each[1:] for each in found}
    return int(result[0]), result[1]


def output_of(agents):
    return ''.join(agent.output for agent in agents)


def starts(agents):
    found = re.findall(r'\[rank \d\] from step (\d+)', output_of(agents))
    return sorted(map(int, found))


@pytest.fixture(scope='session')
def whole_runs():
    """By program: the result of a run without failure, made once on one node."""
    return {}


def whole_run(jobs, case, made):
    if case not in made:
        agents = jobs.agents(1, f'{case}_program.py', jobs.environment(jobs.folder / 'whole'))
        made[case] = results(agents, CASES[case])
        assert starts(agents) == [0] * len(CASES[case])
    return made[case]


@pytest.mark.parametrize('nodes', [1, 2], ids=['one-node', 'two-nodes'])
@pytest.mark.parametrize('case', [pytest.param(case, marks=pytest.mark.xdist_group(case))
                                  for case in CASES])
def test_a_killed_rank_costs_no_result(jobs, whole_runs, case, nodes):
    whole = whole_run(jobs, case, whole_runs)
    env = jobs.environment(jobs.folder / 'failing', FAIL_AT=FAIL_AT)
    agents = jobs.agents(nodes, f'{case}_program.py', env)
    result = results(agents, CASES[case])
    assert output_of(agents).count('[rank 1] killed before step 6') == 1
    ranks = len(CASES[case])
    assert starts(agents) == [0] * ranks + [RESUMED] * ranks, output_of(agents)
    assert result == whole and result[0] == LAST, output_of(agents)


@pytest.fixture
def lighthouse(jobs):
    """torchft's server, which the replica groups ask for a quorum."""
    port = free_port()
    server = jobs.start(PYTHON.parent / 'torchft_lighthouse', '--min_replicas', '2',
                        '--bind', f'127.0.0.1:{port}', '--join_timeout_ms', '600000')
    yield f'http://127.0.0.1:{port}'
    server.process.kill()
    server.process.wait()


def replica_groups(jobs, lighthouse, **more):
    """A job of one rank for each of two groups."""
    program = [PYTHON, '-u', PROGRAMS / 'torchft_program.py']
    agents = []
    for group in range(2):
        env = jobs.environment(jobs.folder, TORCHFT_LIGHTHOUSE=lighthouse, FAIL_GROUP='1',
                               REPLICA_GROUP_ID=str(group), **more)
        args = ['--standalone', '--worker-store=agent', '--max-restarts=1',
                '--log-dir=/dev/null', '--no-python']
        agents.append(jobs.start(BIN / 'cpprun', *args, *program, env=env))
    return agents


def test_a_replica_group_of_torchft_gets_its_state_from_the_other(jobs, lighthouse):
    whole = results(replica_groups(jobs, lighthouse), [0, 0])
    agents = replica_groups(jobs, lighthouse, FAIL_AT='0:6')
    result = results(agents, [0, 0])
    assert agents[1].output.count('killed before step 6') == 1
    assert starts(agents[:1]) == [0], 'the other group continues'
    assert starts(agents[1:]) == [0, 6], output_of(agents)
    assert result == whole and result[0] == LAST, output_of(agents)


@pytest.fixture(scope='session')
def torchx_site(tmp_path_factory):
    """packaging/torchx as users install it."""
    if not TORCHX.exists():
        pytest.skip(f'no {TORCHX}: tools/deps.sh --torchx')
    folder = tmp_path_factory.mktemp('torchx')
    shutil.copytree(ROOT / 'packaging/torchx', folder / 'source')
    subprocess.run([TORCHX.parent / 'python', '-m', 'pip', 'install', '-q', '--no-deps',
                    '--no-index', '--disable-pip-version-check', '--no-build-isolation',
                    '--target', folder / 'site', folder / 'source'], check=True, timeout=600)
    return folder / 'site'


@pytest.mark.xdist_group('nanogpt')
@pytest.mark.parametrize('nodes', [1, 2], ids=['one-node', 'two-nodes'])
def test_torchx_starts_the_same_job(jobs, whole_runs, torchx_site, nodes):
    whole = whole_run(jobs, 'nanogpt', whole_runs)
    env = jobs.environment(jobs.folder / 'failing', FAIL_AT=FAIL_AT, PYTHON_EXEC=str(PYTHON))
    args = ['run', '--wait', '--log', '-s', 'local_cwd', 'cpprun.ddp', '-j',
            f'{nodes}x{2 // nodes}', '--rdzv_port', str(free_port()), '--max_restarts', '1',
            '--env', ','.join(f'{name}={value}' for name, value in env.items()),
            '--script', str(PROGRAMS / 'nanogpt_program.py')]
    own = {'PYTHONPATH': str(torchx_site), 'HOME': str(jobs.folder),
           'PATH': f'{BIN}:{TORCHX.parent}:/usr/bin:/bin'}
    launched = jobs.start(TORCHX, *args, env=own)
    assert results([launched], CASES['nanogpt']) == whole
    assert starts([launched]) == [0, 0, RESUMED, RESUMED], launched.output
