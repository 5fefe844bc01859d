"""Attackers who can reach the rendezvous port: they can send no admin commands, and are no node of
the job."""

import json
import signal
import urllib.request

from nodes import Job, cluster, wait_for  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401
from nodes_wire import FakeAgent, node_id_of, mac_of
from test_admin_commands import TOKEN, output_of, refused

RESTART, STOP, DRAIN, SCALE = range(4)
BEYOND = 2**62  # beyond any connection number that an agent counts to


def commands(node):
    return [{'kind': RESTART}, {'kind': STOP, 'is_resumable': True}, {'kind': STOP},
            {'kind': DRAIN, 'node': node}, {'kind': SCALE, 'nodes': 1}]


def standby_of(job, nodes):
    """The node that would lead the job, as a spare learns it."""
    agent, reply = spare(job, nodes)
    return agent, reply['standby']


def spare(job, nodes, **how):
    """An attacker that has joined as an agent: the facts it needs are in /status."""
    foreign = FakeAgent(job.port, job.run_id, **how).register(nodes=nodes)
    return foreign, foreign.receives('wait')


def part(agent):
    agent.send('leave', why='a test is over')
    agent.sock.close()


def end(cluster, job, world):
    """The job is unchanged, and succeeds."""
    assert [w.round for w in cluster.worlds(job.run_id)] == [world.round]
    assert all(worker.alive() for worker in world)
    cluster.finish()


# ---------------------------------------------------------------- admin commands


def test_foreign_member_can_send_no_admin_commands(cluster):
    job = Job(cluster, '1:2', lease=60, last_call_timeout=600)
    job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1)
    world = cluster.world(0, 1)
    foreign, _ = spare(job, (1, 2))
    for number, command in enumerate(commands('0'), 1):
        foreign.send('admin_command', id=number, **command)
        asked = foreign.receives('challenge')
        assert asked['id'] == number
        for mac in ('', mac_of('a token of another job', asked['nonce'], job.run_id, command)):
            request = {'id': number, **command}
            foreign.send('admin_request', run_id=job.run_id, admin_command=request, mac=mac)
            assert not foreign.receives('admin_reply')['is_done']
        wait_for(lambda: is_asked_again(foreign), 'the second after a wrong mac')
    part(foreign)
    end(cluster, job, world)


def is_asked_again(agent):
    agent.send('admin_command', id=99, kind=RESTART)
    return agent.receive()[0] == 'challenge'


def test_agents_mac_is_valid_only_for_its_own_job(cluster):
    job = Job(cluster, '1:2', last_call_timeout=600)
    job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1)
    world = cluster.world(0, 1)
    operator, _ = spare(job, (1, 2))
    command = {'id': 1, 'kind': SCALE, 'nodes': 2}
    for run_id in ('another', job.run_id):
        operator.send('admin_command', **command)
        mac = mac_of(TOKEN, operator.receives('challenge')['nonce'], run_id, command)
        operator.send('admin_request', run_id=run_id, admin_command=command, mac=mac)
        assert operator.receives('admin_reply')['is_done'] == (run_id == job.run_id)
    part(operator)
    end(cluster, job, world)


def test_local_admin_needs_no_token(cluster):
    """The agent proves commands of its own user; cpprunctl has no token here."""
    job = Job(cluster, 1)
    agent = job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    first = cluster.world(0)
    assert 'are restarted' in output_of('restart', job.run_id)
    cluster.world(0, after=first)
    output_of('stop', job.run_id)
    agent.ends(130)


def test_agent_without_the_token_reports_it(cluster, net):
    hosts = net(2)
    job = Job(cluster, 2, host=hosts.addr(0), net=hosts)
    job.agent(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1)
    world = cluster.world(0, 1)
    refused('the agent of this node without it', 'stop', job.run_id, wrap=hosts.wrap(1))
    assert all(worker.alive() for worker in world)
    output_of('stop', '--endpoint', f'{hosts.addr(0)}:{job.port}', wrap=hosts.wrap(1), token=TOKEN)
    [agent.ends(130) for agent in cluster.agents]


def test_guessable_token_is_rejected(cluster):
    job = Job(cluster, 1)
    agent = job.host(0, CPPRUN_ADMIN_TOKEN='short')
    cluster.world(0)
    refused('could be guessed', 'stop', job.run_id)
    output_of('stop', '--here', job.run_id)
    agent.ends(130)


def test_job_stays_protected_when_an_agent_without_the_token_leads_it(cluster):
    job = Job(cluster, '1:2', last_call_timeout=600)
    host = job.host(0, CPPRUN_ADMIN_TOKEN=TOKEN)
    job.agent(1)
    first = cluster.world(0, 1)
    job.agent(2)
    job.wait_members(3)
    _, standby = standby_of(job, (1, 2))
    host.send(signal.SIGKILL)
    second = cluster.world(1, 2, after=first)
    led = Job(cluster, '1:2', port=standby['port'], run_id=job.run_id)
    foreign, _ = spare(led, (1, 2), key='key of another')
    foreign.send('admin_command', id=1, kind=STOP)
    answer = foreign.receives('admin_reply')
    assert not answer['is_done'] and 'started with CPPRUN_ADMIN_TOKEN' in answer['text']
    assert all(worker.alive() for worker in second)
    part(foreign)
    cluster.agents.remove(host)
    host.popen.wait(20)
    cluster.finish()


# ---------------------------------------------------------------- nodes


def test_knowing_a_node_id_does_not_give_its_place(cluster):
    """Neither the id alone suffices, nor /status and a worker's environment."""
    job = Job(cluster, '1:2', lease=2, last_call_timeout=600)
    job.host(0)
    job.agent(1)
    world = cluster.world(0, 1)
    foreign, standby = standby_of(job, (1, 2))
    tokens = {worker.env['CPPRUN_TOKEN'] for worker in world}
    guesses = ['', str(standby['node']), f'{standby["node"]:016x}']
    for key in (*guesses, *tokens, *(t[:16] for t in tokens)):
        impostor = FakeAgent(job.port, job.run_id, key, connection=BEYOND,
                             node={'name': 'impostor', 'incarnation': standby['node']})
        impostor.register(nodes=(1, 2), reported_phase=1, round=world.round)
        assert 'shows no key' in impostor.receives('refused')['why']
        assert impostor.is_closed()
        impostor.sock.close()
    assert {n['state'] for n in job.status()['nodes']} == {'running', 'idle'}
    part(foreign)
    end(cluster, job, world)


def test_workers_environment_hides_the_node_id(cluster):
    job = Job(cluster, '1:2', last_call_timeout=600)
    job.host(0)
    job.agent(1)
    world = cluster.world(0, 1)
    foreign, standby = standby_of(job, (1, 2))
    for worker in world:
        token = worker.env['CPPRUN_TOKEN']
        assert standby['node'] not in (int(token[:16], 16), int(token[16:], 16), node_id_of(token))
    part(foreign)
    end(cluster, job, world)


def test_key_and_connections_of_a_node_stay_secret(cluster):
    """Two nodes made of sockets: the key in the hello of one reaches no other."""
    job = Job(cluster, '2:3')
    job.serve()
    key, number = 'c0ffee' * 5, 4_711_471_147_114_711
    messages = []
    one = FakeAgent(job.port, job.run_id, key, connection=number).register(nodes=(2, 3))
    other = FakeAgent(job.port, job.run_id, 'key of another').register(nodes=(2, 3))
    for agent in (one, other):
        while not messages or messages[-1][0] != 'rank_assignment':
            messages.append(agent.receive())
        messages.append(('-', {}))
    twin = FakeAgent(job.port, job.run_id, key, connection=number).register(nodes=(2, 3))
    messages.append(('refused', twin.receives('refused')))
    for page in ('status', 'metrics', 'healthz', 'steps'):
        url = f'http://127.0.0.1:{job.port}/{page}'
        with urllib.request.urlopen(url, timeout=10) as answer:
            messages.append((page, answer.read().decode()))
    received = json.dumps(messages)
    assert 'rank_assignment' in received and 'same identity' in received
    assert key not in received and str(number) not in received
    for agent in (one, other):
        part(agent)


def test_disconnected_node_takes_its_own_place(cluster):
    """A half-open connection at the coordinator is closed when its node connects again."""
    job = Job(cluster, '1:2')
    job.serve()
    first = FakeAgent(job.port, job.run_id, 'key of a node').register(nodes=(1, 2))
    first.receives('registered')
    again = FakeAgent(job.port, job.run_id, 'key of a node', connection=2).register(nodes=(1, 2))
    again.receives('registered')
    assert first.is_closed() and len(job.status()['nodes']) == 1
    part(again)
