"""The agent that hosts the job, decided at each attempt, and agents that find a job full or over.
"""

import signal
import subprocess
import sys

from nodes import BIN, WORKER, Job, cluster, free_port, wait_for  # noqa: F401
from nodes_net import named, namespaces, net  # noqa: F401

LOCAL = '127.0.0.1 localhost\n'


class Nameless(Job):
    """A job whose agents have no --rdzv-id."""

    def __init__(self, *args, **how):
        super().__init__(*args, run_id='none', **how)

    def options(self, *args, **how):
        return [o for o in super().options(*args, **how) if not o.startswith('--rdzv-id')]


# ---------------------------------------------------------------- a full job


def test_without_a_run_id_a_full_job_is_reported_immediately(cluster):
    job = Nameless(cluster, 1)
    first = job.host(0)
    world = cluster.world(0)
    second = job.agent(1).ends(1)
    message = f"job 'none' already runs at 127.0.0.1:{job.port} (pid {first.pid}); give --rdzv-id"
    assert message in second.err(), second.describe()
    assert len(cluster.workers()) == 1 and world[0].alive()
    assert 'refused' not in first.err(), first.describe()
    cluster.exit_workers(0)
    first.ends(0)


def test_without_a_run_id_two_nodes_replace_each_other(cluster):
    job = Nameless(cluster, 2)
    job.host(0)
    job.agent(1)
    first = cluster.world(0, 1)
    job.agent(2).ends(1)
    cluster.agents[1].send(signal.SIGKILL)
    job.agent(3)
    second = cluster.world(0, 3, after=first)
    cluster.agents[0].send(signal.SIGTERM)
    cluster.agents[0].ends(128 + signal.SIGTERM)
    job.agent(4)
    cluster.world(3, 4, after=second)
    cluster.exit_workers(0)
    [cluster.agents[i].ends(0) for i in (3, 4)]


def test_without_a_run_id_a_job_grows(cluster):
    job = Nameless(cluster, '1:2')
    job.host(0)
    lone = cluster.world(0)
    job.agent(1)
    cluster.world(0, 1, after=lone)
    cluster.finish()


def test_without_a_run_id_a_new_node_waits_for_a_silent_one(cluster, net):
    hosts = net(3)
    job = Nameless(cluster, 2, host=hosts.addr(0), net=hosts, lease=3)
    job.agents(0, 1)
    first = cluster.world(0, 1)
    hosts.cable(1, plugged=False)
    job.agent(2)
    second = cluster.world(0, 2, after=first, seconds=30)
    cluster.exit_workers(0, f'round-none-{second.round}')
    [cluster.agents[i].ends(0) for i in (0, 2)]
    cluster.agents[1].send(signal.SIGTERM)
    cluster.agents[1].ends(75)  # no worker runs there


def test_spare_is_reported_and_ends_with_the_jobs_code(cluster):
    for code in (0, 3):
        job = Job(cluster, 1, run_id=f'spare{code}')
        first = job.host(0)
        cluster.world(0, job=job.run_id)
        spare = job.agent(1).prints('this node is a spare')
        cluster.exit_workers(code, 'node-0')
        first.ends(1 if code else 0)
        spare.ends(1 if code else 0)
        message = f"job '{job.run_id}' has ended without this node"
        assert message in spare.err() and 'ran no worker' in spare.err(), spare.describe()
        assert message not in first.err()
        cluster.withdraw_exit('node-0')


# ---------------------------------------------------------------- hosting


def test_one_of_two_simultaneous_agents_hosts(cluster):
    """The agent that finds the port taken runs when the other has gone, or reports that the job is
    full."""
    for turn in range(100):
        job = Nameless(cluster, 1)
        program = ('--no-python', 'sh', '-c', f'echo >>ran.{turn}')
        pair = [job.agent(node, program=program) for node in (0, 1)]
        ended = [agent.popen.wait(30) for agent in pair]
        ran = (cluster.tmp / f'ran.{turn}').read_text().count('\n')
        outputs = ''.join(agent.describe() for agent in pair)
        assert sorted(ended) in ([0, 0], [0, 1]), f'{turn}: {ended} {outputs}'
        assert ran == ended.count(0), f'{turn}: {ended} {outputs}'
        for agent, code in zip(pair, ended):
            assert code == 0 or "job 'none' already runs" in agent.err(), outputs


def foreign_server_at(cluster, port):
    """A separate program that listens there, and is no coordinator."""
    code = ('import signal, socket; s = socket.socket(); '
            's.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); '
            f's.bind(("127.0.0.1", {port})); s.listen(); print(1, flush=True); signal.pause()')
    process = subprocess.Popen([sys.executable, '-c', code], env=cluster.env(),
                               stdout=subprocess.PIPE)
    cluster.servers.append(process)
    assert process.stdout.read(1)
    return process


def test_waiting_agent_hosts_when_the_listener_has_gone(cluster):
    """Another program held the port."""
    port = free_port()
    foreign = foreign_server_at(cluster, port)
    job = Job(cluster, 1, port=port)
    agent = job.agent(0).prints("can't reach the coordinator")
    foreign.kill()
    foreign.wait()
    cluster.world(0)
    cluster.exit_workers(0)
    agent.ends(0)


def test_spare_hosts_when_the_job_died_with_its_host(cluster):
    job = Job(cluster, 1, lease=2)
    job.host(0)
    first = cluster.world(0)
    spare = job.agent(1).prints('this node is a spare')
    cluster.agents[0].send(signal.SIGKILL)
    again = wait_for(lambda: [w for w in cluster.workers() if w.node == 1], spare.describe, 60)
    assert again[0].world == 1 and not first[0].alive()
    cluster.exit_workers(0)
    spare.ends(0)


def test_spare_hosts_when_the_host_was_asked_to_stop(cluster):
    """Nothing is saved. The round stops before the host exits, and the spare forms the next one."""
    job = Job(cluster, 1, lease=2)
    host = job.host(0)
    first = cluster.world(0)
    spare = job.agent(1).prints('this node is a spare')
    host.send(signal.SIGTERM)
    host.ends(128 + signal.SIGTERM)
    again = wait_for(lambda: [w for w in cluster.workers() if w.node == 1], spare.describe, 60)
    assert again[0].world == 1 and not first[0].alive()
    cluster.exit_workers(0)
    spare.ends(0)


# ---------------------------------------------------------------- names


def test_standby_leads_although_the_name_vanishes_with_its_host(cluster, net):
    """As in Kubernetes, where a pod that is deleted takes its name along."""
    hosts = net(3)
    for i in range(3):
        hosts.etc(i, 'hosts', LOCAL + f'{hosts.addr(0)} rdzv\n')
        hosts.etc(i, 'resolv.conf', '')
    job = Job(cluster, '2:3', host='rdzv', net=hosts, restarts=1)
    job.agents(0, 1, 2)
    first = cluster.world(0, 1, 2)
    for i in range(3):
        hosts.etc(i, 'hosts', LOCAL)
    cluster.agents[0].send(signal.SIGKILL)
    cluster.world(1, 2, after=first)
    cluster.finish(*cluster.agents[1:])


def test_name_that_becomes_resolvable_later(cluster, net):
    """No agent can resolve it at its start. Later all can, and the one with that address hosts."""
    for static in (False, True):
        hosts = net(2)
        for i in range(2):
            hosts.etc(i, 'hosts', LOCAL)
            hosts.etc(i, 'resolv.conf', '')
        job = Job(cluster, 2, host='rdzv', net=hosts, static=static)
        agents = job.agents(0, 1, CPPRUN_TEST_MINUTE='0.5')
        agents[1].prints("the name 'rdzv' can't be resolved", 40)
        assert all(agent.running() for agent in agents) and not cluster.workers(job.run_id)
        for i in range(2):
            hosts.etc(i, 'hosts', LOCAL + f'{hosts.addr(0)} rdzv\n')
        cluster.world(0, 1, job=job.run_id, seconds=40)
        cluster.exit_workers(0, 'node-0')
        cluster.exit_workers(0, 'node-1')
        [a.ends(0) for a in agents]
        [cluster.withdraw_exit(f'node-{i}') for i in (0, 1)]


def test_node_need_not_resolve_its_own_name(cluster, net):
    """As in a pod whose DNS entry comes late: the endpoint's first label is its host name."""
    hosts = net(2)
    hosts.etc(0, 'hosts', LOCAL)
    hosts.etc(0, 'resolv.conf', '')
    hosts.etc(1, 'hosts', LOCAL + f'{hosts.addr(0)} train-0.train\n')
    job = Job(cluster, 2, host='train-0.train', net=hosts)
    for i in range(2):
        wrap = (*hosts.wrap(i), *named(f'train-{i}'))
        cluster.start(i, job.options(i), WORKER, wrap=wrap)
    cluster.world(0, 1, seconds=40)
    cluster.finish()


def test_hosting_node_need_not_resolve_its_own_name(cluster, net):
    hosts = net(2)
    hosts.etc(0, 'hosts', LOCAL)
    hosts.etc(0, 'resolv.conf', '')
    hosts.etc(1, 'hosts', LOCAL + f'{hosts.addr(0)} rdzv\n')
    job = Job(cluster, 2, host='rdzv', net=hosts)
    for i in range(2):
        job.agent(i, conf={'is_host': 1 - i})
    cluster.world(0, 1, seconds=40)
    cluster.finish()


def has_asked(host):
    """A request to a name server is in progress: its socket exists."""
    sockets = subprocess.run(['ip', 'netns', 'exec', host, 'cat', '/proc/net/udp'], check=True,
                             capture_output=True, text=True).stdout
    return ':0035 ' in sockets


def test_server_asks_for_its_name_once(cluster, net):
    """It would wait for minutes in each round that opens a port."""
    hosts = net(2)
    hosts.etc(0, 'hosts', LOCAL + f'{hosts.addr(0)} rdzv.example\n')
    hosts.etc(0, 'resolv.conf', '')
    job = Job(cluster, 1, host=hosts.addr(0), net=hosts)
    command = [*hosts.wrap(0), str(BIN / 'cpprunctl'), 'serve', '--listen',
               f'rdzv.example:{job.port}']
    server = subprocess.Popen(command, env=cluster.env(), stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    cluster.servers.append(server)
    assert 'serving on rdzv.example' in server.stderr.readline()
    hosts.etc(0, 'hosts', LOCAL)
    hosts.etc(0, 'resolv.conf', ''.join(f'nameserver 10.230.7.20{i}\n' for i in range(3))
              + 'options timeout:30 attempts:5\n')
    job.agent(1)
    cluster.world(1)
    cluster.exit_workers(0)
    cluster.agents[0].ends(0)


def test_hanging_resolver_delays_neither_the_loop_nor_the_end(cluster, net):
    """It would answer after a minute, longer than any time limit here."""
    hosts = net(1)
    hosts.etc(0, 'resolv.conf', 'nameserver 10.230.7.200\noptions timeout:30 attempts:4\n')
    hosts.etc(0, 'hosts', LOCAL)
    job = Job(cluster, 2, host='rdzv.example', net=hosts, join_timeout=600)
    agent = job.agent(0)
    wait_for(lambda: has_asked(hosts.hosts[0]), 'the look-up')
    agent.send(signal.SIGTERM)
    agent.ends(75)  # no worker was started
    job = Job(cluster, 2, host='rdzv.example', net=hosts, join_timeout=1)
    agent = job.agent(0).ends(1)
    assert 'timed out after 1 s' in agent.err(), agent.describe()
