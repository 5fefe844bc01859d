"""Rounds over several agents: their forming, ranks, restarts and end."""

import concurrent.futures
import signal
import time

from nodes import Job, cluster, wait_for  # noqa: F401

# ---------------------------------------------------------------- forming


def test_nodes_run_one_job_after_the_other(cluster):
    """A node may be faster than the host of the job before, which is about to end."""
    job = Job(cluster, 2, static=True, join_timeout=20)

    def run_all(node):
        for turn in range(40):
            program = ('--no-python', 'sh', '-c', f'echo {turn} >>ran.{node}')
            job.agent(node, program=program).ends(0, 30)

    with concurrent.futures.ThreadPoolExecutor() as pool:
        list(pool.map(run_all, (0, 1)))
    for node in (0, 1):
        ran = (cluster.tmp / f'ran.{node}').read_text().split()
        assert ran == [str(turn) for turn in range(40)]


def test_mixed_nodes_share_ranks_and_one_master(cluster):
    """Three nodes with 1, 2 and 3 workers and two roles."""
    job = Job(cluster, 3)
    for node, nproc, role in ((0, 1, 'reader'), (1, 2, 'trainer'), (2, 3, 'reader')):
        job.agent(node, f'--role={role}', nproc=nproc)
    world = cluster.world(0, 1, 2)
    assert [w.rank for w in world] == list(range(6))
    for name in ('MASTER_ADDR', 'MASTER_PORT', 'CPPRUN_STORE'):
        assert len({w.env[name] for w in world}) == 1
    by_role = {}
    for w in world:
        assert int(w.env['LOCAL_WORLD_SIZE']) == w.node + 1
        assert w.env['GROUP_WORLD_SIZE'] == '3'
        by_role.setdefault(w.env['ROLE_NAME'], []).append(
            (int(w.env['ROLE_RANK']), int(w.env['ROLE_WORLD_SIZE'])))
    assert by_role == {'reader': [(i, 4) for i in range(4)], 'trainer': [(0, 2), (1, 2)]}
    cluster.finish()


def test_lone_node_of_a_range_starts_after_a_quiet_second(cluster):
    job = Job(cluster, '1:3')
    agent = job.agent(0)
    world = cluster.world(0)
    assert world.begun - agent.started > 0.9
    cluster.exit_workers(0)
    agent.ends(0)


def test_explicit_last_call_is_awaited_and_accepts_arrivals(cluster):
    job = Job(cluster, '1:4', last_call_timeout=3)
    first = job.host(0)
    second = job.agent(1)
    world = cluster.world(0, 1)
    assert len(cluster.worlds()) == 1 and world.begun - first.started > 2.9
    cluster.finish(first, second)


def test_max_nodes_start_without_the_last_call(cluster):
    job = Job(cluster, '1:2', last_call_timeout=600)
    job.agents(0, 1)
    cluster.world(0, 1, seconds=15)
    cluster.finish()


def test_below_min_nothing_starts_and_the_join_timeout_ends_it(cluster):
    job = Job(cluster, '2:3', join_timeout=2)
    agent = job.agent(0).ends(1)
    assert not cluster.workers()
    assert 'timed out after 2 s' in agent.err() and '1 of at least 2 nodes' in agent.err()


def test_signal_while_waiting_names_what_was_missing(cluster):
    agent = Job(cluster, 2).agent(0, CPPRUN_TEST_MINUTE='0.2').prints('waiting: 1 of')
    agent.send(signal.SIGINT)
    agent.ends(130)
    assert 'ended by SIGINT while waiting (1 of at least 2 nodes' in agent.err(), agent.describe()
    assert 'no worker was started' in agent.err() and 'are stopped' not in agent.err()


def test_waiting_below_min_is_reported_every_minute(cluster):
    """A test variable shortens the minute."""
    job = Job(cluster, '2:3', join_timeout=3)
    agent = job.agent(0, CPPRUN_TEST_MINUTE='0.5').ends(1)
    count = agent.err().count('waiting: 1 of at least 2 nodes joined (at most 3)')
    assert 3 <= count <= 6, agent.describe()


def test_run_ids_that_differ_between_nodes_are_named(cluster):
    """A mistake makes two jobs of one: each node learns of the other job."""
    job = Job(cluster, 2, run_id='train', join_timeout=20)
    first = job.host(0, CPPRUN_TEST_MINUTE='0.2')
    job.run_id = 'trian'
    second = job.agent(1, CPPRUN_TEST_MINUTE='0.2')
    for agent, other in ((first, 'trian'), (second, 'train')):
        agent.prints(f"1 missing; job '{other}' waits for nodes at this endpoint too: do all nodes "
                     'have the same --rdzv-id?')
    for agent in (second, first):
        agent.send(signal.SIGINT)
    [agent.ends(130) for agent in (second, first)]


def test_member_lost_while_forming_is_not_counted(cluster):
    """The coordinator's host waits with two others, one of which is killed; two more complete the
    round."""
    job = Job(cluster, 4)
    job.host(0)
    job.agents(1, 2)
    job.wait_members(3)
    cluster.agents[2].send(signal.SIGKILL)
    job.wait_members(2)
    job.agents(3, 4)
    world = cluster.world(0, 1, 3, 4)
    assert len(cluster.worlds()) == 1 and len(world) == 4
    cluster.exit_workers(0)
    [a.ends(0) for a in cluster.agents if a.node != 2]


# ---------------------------------------------------------------- ranks, restarts, budget


def test_ranks_stay_and_the_restart_count_is_the_jobs(cluster):
    job = Job(cluster, 3, restarts=2)
    job.agents(0, 1, 2, nproc=2)
    first = cluster.world(0, 1, 2)
    cluster.exit_workers(1, first[3])
    second = cluster.world(0, 1, 2, after=first)
    assert second.ranks == first.ranks and second.restarts == [1]
    cluster.exit_workers(1, second[0])
    third = cluster.world(0, 1, 2, after=second)
    assert third.ranks == first.ranks and third.restarts == [2]
    assert not any(w.alive() for w in [*first, *second])
    assert len({w.master for w in (first, second, third)}) == 3, 'a fresh port each round'
    cluster.finish()


def test_budget_is_one_for_all_nodes(cluster):
    """One restart for the job: node 0 fails, then node 1 fails, and both end with 1."""
    job = Job(cluster, 2, restarts=1)
    agents = job.agents(0, 1)
    first = cluster.world(0, 1)
    cluster.exit_workers(5, first.of(0)[0])
    second = cluster.world(0, 1, after=first)
    cluster.exit_workers(6, second.of(1)[0])
    for agent in agents:
        agent.ends(1)
        assert '1 of 1 used' in agent.err(), agent.describe()
    assert len(cluster.worlds()) == 2


def test_failures_of_several_nodes_in_one_round_cost_one_restart(cluster):
    job = Job(cluster, 3, restarts=1)
    job.agents(0, 1, 2)
    first = cluster.world(0, 1, 2)
    cluster.exit_workers(1, f'round-{job.run_id}-{first.round}')
    second = cluster.world(0, 1, 2, after=first)
    assert second.restarts == [1]
    cluster.finish()


# ---------------------------------------------------------------- ending together


def test_all_nodes_stay_until_all_are_done(cluster):
    job = Job(cluster, 2)
    first, second = job.agents(0, 1)
    cluster.world(0, 1)
    cluster.exit_workers(0, 'node-1')
    wait_for(lambda: 'done' in {n['state'] for n in job.status()['nodes']}, job.status)
    assert first.running() and second.running()
    cluster.exit_workers(0, 'node-0')
    [a.ends(0) for a in (first, second)]


def test_failure_after_another_nodes_success_ends_both(cluster):
    job = Job(cluster, 2)
    agents = job.agents(0, 1)
    cluster.world(0, 1)
    cluster.exit_workers(0, 'node-1')
    wait_for(lambda: 'done' in {n['state'] for n in job.status()['nodes']}, job.status)
    cluster.exit_workers(3, 'node-0')
    for agent in agents:
        agent.ends(1)


def test_done_work_is_repeated_after_a_failure(cluster):
    job = Job(cluster, 2, restarts=1)
    agents = job.agents(0, 1)
    first = cluster.world(0, 1)
    cluster.exit_workers(0, first.of(1)[0])
    wait_for(lambda: 'done' in {n['state'] for n in job.status()['nodes']}, job.status)
    cluster.exit_workers(3, first.of(0)[0])
    second = cluster.world(0, 1, after=first)
    assert second.restarts == [1]
    cluster.finish(*agents)


def test_node_killed_after_its_success_costs_nothing(cluster):
    job = Job(cluster, 2)
    first, second = job.host(0), job.agent(1)
    world = cluster.world(0, 1)
    cluster.exit_workers(0, 'node-1')
    wait_for(lambda: 'done' in {n['state'] for n in job.status()['nodes']}, job.status)
    second.send(signal.SIGKILL)
    job.wait_members(1)
    assert world.of(0)[0].alive()
    cluster.exit_workers(0)
    first.ends(0)
    assert len(cluster.worlds()) == 1


def test_sigterm_to_all_agents_together(cluster):
    job = Job(cluster, 4)
    agents = job.agents(0, 1, 2, 3, nproc=2)
    world = cluster.world(0, 1, 2, 3)
    for agent in agents:
        agent.send(signal.SIGTERM)
    for agent in agents:
        agent.ends(128 + signal.SIGTERM, seconds=10)
    assert not any(w.alive() for w in world)


# ---------------------------------------------------------------- spares and growth


def test_spare_waits_quietly_and_ends_with_the_job(cluster):
    job = Job(cluster, 2, join_timeout=2)
    job.host(0)
    job.agent(1)
    world = cluster.world(0, 1)
    spare = job.agent(2, LOGLEVEL='INFO').prints('this node is a spare')
    job.wait_members(3)
    wait_for(lambda: time.monotonic() > spare.started + 2.5, 'the join timeout to pass')
    assert spare.running() and all(w.alive() for w in world)
    cluster.finish()
    assert len(cluster.worlds()) == 1


def test_spare_replaces_a_lost_node_with_the_last_rank(cluster):
    job = Job(cluster, 3, last_call_timeout=600)
    job.host(0)
    job.agents(1, 2)
    first = cluster.world(0, 1, 2)
    job.agent(3)
    job.wait_members(4)
    middle = next(n for n, group in first.ranks.items() if group == 1 and n != 0) \
        if first.ranks[0] != 1 else next(n for n in (1, 2) if first.ranks[n] == 0)
    cluster.agents[middle].send(signal.SIGKILL)
    rest = sorted({0, 1, 2} - {middle})
    second = cluster.world(*rest, 3, after=first, seconds=10)
    assert second.ranks[3] == 2, 'the members of the last round come first'
    assert (first.ranks[rest[0]] < first.ranks[rest[1]]) == (
        second.ranks[rest[0]] < second.ranks[rest[1]])
    assert second.restarts == [0]
    cluster.exit_workers(0)
    [a.ends(0) for a in cluster.agents if a.node != middle]


def test_growth_is_first_immediate_then_bundled(cluster):
    """The first new node restarts the round; the next two join together, 3 s later."""
    job = Job(cluster, '1:4', scale_up_interval=3)
    job.host(0)
    lone = cluster.world(0)
    newcomer = job.agent(1)
    two = cluster.world(0, 1, after=lone)
    assert two.begun - newcomer.started < 2.5
    job.agents(2, 3)
    four = cluster.world(0, 1, 2, 3, after=two, seconds=15)
    assert four.begun - two.begun > 2.5
    assert [w.nodes for w in cluster.worlds()] == [[0], [0, 1], [0, 1, 2, 3]]
    assert four.ranks[0] == 0 and four.ranks[1] == 1 and four.restarts == [0]
    cluster.finish()


def test_later_rounds_have_no_last_call(cluster):
    job = Job(cluster, '1:3', restarts=1, last_call_timeout=2)
    job.host(0)
    job.agent(1)
    first = cluster.world(0, 1)
    job.conf['last_call_timeout'] = 600
    cluster.agents[1].send(signal.SIGTERM)
    second = cluster.world(0, after=first)
    cluster.exit_workers(1, second[0])
    third = cluster.world(0, after=second)
    assert third.begun - second.begun < 1.9
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)
    cluster.agents[1].ends(128 + signal.SIGTERM)


# ---------------------------------------------------------------- at the same moment


def test_failure_while_a_node_joins(cluster):
    """In either order: one round afterwards, one restart at most, every node included."""
    for go in range(3):
        job = Job(cluster, '1:2', restarts=1, run_id=f'moment{go}')
        job.host(0)
        lone = cluster.world(0, job=job.run_id)
        job.agent(1)
        cluster.exit_workers(1, lone[0])
        both = cluster.world(0, 1, job=job.run_id)
        assert both.restarts in ([0], [1])
        cluster.exit_workers(0, f'round-{job.run_id}-{both.round}')
        [a.ends(0) for a in cluster.agents[-2:]]


def test_agent_that_joins_and_leaves_in_a_loop(cluster):
    """Each time as another agent. The job continues: in an interval one may grow it, one replace.
    """
    job = Job(cluster, '1:2', scale_up_interval=600)
    first = job.host(0)
    cluster.world(0)
    for go in range(6):
        visitor = job.agent(1)
        job.wait_members(2)
        visitor.send(signal.SIGTERM if go % 2 else signal.SIGKILL)
        visitor.popen.wait(10)
        job.wait_members(1)
    wait_for(lambda: job.status()['phase'] == 'running', job.status)
    # Alone, grown, alone, replaced, alone.
    assert job.status()['round'] <= 5 and job.status()['restarts_used'] == 0
    cluster.exit_workers(0)
    first.ends(0)
