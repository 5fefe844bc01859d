"""A fault plan that ends an agent, in a job of several nodes: the fault happens once on any agent,
the job continues, and the remaining agents report it."""

import pytest
from conftest import free_port
from test_faults import STEPS, plan  # noqa: F401

NODES = 3
UNTIL_GO = """
import pathlib
marks = pathlib.Path(os.environ['MARKS'])
(marks / f'round-{os.environ["CPPRUN_ROUND"]}-{rank}').write_text('here')
end = time.monotonic() + 60
while not (marks / 'go').exists() and time.monotonic() < end:
    time.sleep(0.01)
"""


@pytest.mark.parametrize('victim', [0, 2], ids=['the coordinator too', 'a member'])
def test_killed_agent_fault_happens_once_and_is_reported(jobs, plan, victim):  # noqa: F811
    path = plan(
        {'do': 'kill-agent', 'at': {'node': victim, 'after_s': 0}},
        expect={'restarts': 0, 'max_recovery_s': 30},
    )
    port, script = free_port(), jobs.py(STEPS + UNTIL_GO)
    flags = (f'--nnodes=2:{NODES}', '--rdzv-backend=c10d', f'--rdzv-endpoint=127.0.0.1:{port}')
    conf = '--rdzv-conf=last_call_timeout=60'  # the first round has all of them
    agents = [
        jobs.cpprun(*flags, conf, f'--node-rank={node}', f'--faults={path}', script)
        for node in range(NODES)
    ]
    for rank in range(NODES - 1):
        jobs.mark(f'round-2-{rank}', 60)
    (jobs.marks / 'go').touch()
    for node, agent in enumerate(agents):
        assert agent.done(60) == (-9 if node == victim else 0), agent.err
    output = ''.join(agent.err for agent in agents)
    assert output.count('fault 1 is injected at ') == 1
    for node, agent in enumerate(agents):
        is_accounted = 'ok      fault 1: kill-agent' in agent.err
        assert is_accounted == (node != victim), agent.err
