"""The dashboard's page and its events, without a browser (tests/browser has one)."""

import pathlib
import re
import sys
import time
import urllib.request

import pytest
from dashboard_events import Events
from launches import read_bytes
from nodes import HERE, ROOT, Job, cluster, wait_for  # noqa: F401
from process_info import children_of, cpu_seconds, environment_of

STEPPER = ('--no-python', sys.executable, str(HERE / 'dashboard_worker.py'))
SLEEPER = ('--no-python', 'sh', '-c', 'while [ ! -e "$NODES_DIR/exit-all" ]; do sleep 1; done')
READERS = 32


@pytest.fixture
def job(cluster):  # noqa: F811
    made = Job(cluster, 2, restarts=3)
    yield made
    cluster.finish()


def of(job, holds):  # noqa: F811
    """A condition on a whole event: this job is present, and `holds` is true for it."""
    return lambda data: job.run_id in data['jobs'] and holds(data['jobs'][job.run_id])


def start(job, program=STEPPER, **env):  # noqa: F811
    for node in (0, 1):
        job.agent(node, nproc=2, program=program, **env)
    wait_for(job.is_open, lambda: ''.join(a.describe() for a in job.cluster.agents))


def test_page_needs_no_other_server(job):
    start(job)
    with urllib.request.urlopen(f'http://127.0.0.1:{job.port}/', timeout=10) as answer:
        page, headers = answer.read().decode(), answer.headers
    assert headers['Content-Type'] == 'text/html; charset=utf-8'
    policy = headers['Content-Security-Policy']
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    page = page.replace('<link rel="icon" href="data:,">', '')
    # The address of a tunnel's end is display text.
    assert not re.search(r'https?:(?!//localhost:)|@import|url\(|<link|<img|<iframe|\bsrc=', page)
    assert not re.search(r'innerHTML|outerHTML|insertAdjacent|document\.write|\beval\(', page)
    assert len(page) < 64 * 1024 and '@STYLE@' not in page and '@SCRIPT@' not in page
    folder = ROOT / 'rendezvous/server/dashboard'
    for path in folder.iterdir():
        if path.suffix in ('.js', '.css'):
            assert path.read_text() in page, f'{path.name} is not in the page as it stands'


def test_events_follow_a_job_through_a_failure(job):
    start(job, WORDS='out of <b>patience</b>')
    events = Events(job.port)
    assert events.status == 200 and events.headers['content-type'] == 'text/event-stream'
    runs = of(job, lambda j: [n[1] for n in j['nodes']] == ['running', 'running'])
    first = events.next('state', runs)['jobs'][job.run_id]
    assert [n[5:7] for n in first['nodes']] == [[0, 0], [1, 2]] and first['world_size'] == 4
    (job.cluster.folder / f'exit-rank-1-round-{first["round"]}').write_text('3')
    second = events.next('state', of(job, lambda j: len(j['rounds']) == 2 and
                                     j['rounds'][1]['started_ms']))['jobs'][job.run_id]
    broken, new = second['rounds']
    assert (broken['cause'], broken['class']) == ('failure', 'user_error')
    assert broken['root_cause'].startswith('rank 1 (pid ')
    assert broken['last_lines'] == ['out of <b>patience</b>']
    assert broken['formed_ms'] <= broken['started_ms'] <= broken['stopped_ms'] <= broken['over_ms']
    assert broken['over_ms'] <= new['formed_ms'] <= new['started_ms']
    assert second['restarts'] == [1, 3]
    events.close()


def test_steps_of_all_nodes_reach_a_reader(job):
    start(job, SLOW='3')
    events = Events(job.port)
    progress = events.next('progress', of(job, lambda j: min(j['steps']) > 10))['jobs'][job.run_id]
    assert len(progress['steps']) == len(progress['step_us']) == 4
    later = events.next('progress', of(job, lambda j: min(j['steps']) > min(progress['steps'])))
    now = later['jobs'][job.run_id]
    assert now['step_us'].index(max(now['step_us'])) == 3, now
    assert 15_000 < min(now['step_us'])
    events.close()


def test_processes_of_all_nodes_reach_a_reader(job):
    for node in (0, 1):
        job.agent(node, '--tee=3', f'--log-dir={job.cluster.tmp}/logs{node}', nproc=2,
                  program=STEPPER)
    wait_for(job.is_open, lambda: ''.join(a.describe() for a in job.cluster.agents))
    events = Events(job.port)
    workers = events.next('workers', of(job, lambda j: len(j['ranks']) == 4 and
                                        min(row[2] for row in j['ranks']) > 0))['jobs'][job.run_id]
    assert [row[0] for row in workers['ranks']] == [0, 1, 2, 3]
    tops = []
    for rank, pid, mib, log in workers['ranks']:
        assert environment_of(pid)['RANK'] == str(rank)
        assert 1 <= mib < 1024
        folder = pathlib.Path(log)
        assert folder.is_absolute() and (folder / 'stdout.log').exists(), log
        tops.append(folder.relative_to(job.cluster.tmp).parts[0])
    # Either agent may have registered first.
    assert tops[0] == tops[1] and tops[2] == tops[3] and set(tops) == {'logs0', 'logs1'}, tops
    known_pids = [row[1] for row in workers['ranks']]
    nodes = sorted(job.status()['nodes'], key=lambda node: node['group_rank'])
    assert [pid for node in nodes for pid in node['pids']] == known_pids
    assert nodes[1]['log_dir'] == str(pathlib.Path(workers['ranks'][3][3]).parent)
    # The next round's processes replace them.
    (job.cluster.folder / f'exit-rank-1-round-{workers["round"]}').write_text('3')
    new = events.next('workers', of(job, lambda j: j['round'] > workers['round'] and
                                    len(j['ranks']) == 4))['jobs'][job.run_id]
    assert not {row[1] for row in new['ranks']} & set(known_pids)
    events.close()


def test_status_has_the_pids_though_no_page_was_ever_open(job):
    start(job)

    def has_all_pids():
        nodes = job.status().get('nodes', [])
        return nodes and all(len(node['pids']) == 2 for node in nodes)

    wait_for(has_all_pids, job.status)
    pids = [pid for node in job.status()['nodes'] for pid in node['pids']]
    assert sorted(environment_of(pid)['RANK'] for pid in pids) == ['0', '1', '2', '3']
    assert {node['log_dir'] for node in job.status()['nodes']} == {''}


def test_number_of_readers_is_limited(job):
    start(job)
    readers = [Events(job.port) for _ in range(READERS)]
    assert {r.status for r in readers} == {200}
    wait_for(lambda: Events(job.port).status == 503, 'one too many gets an error')
    readers.pop().close()
    wait_for(lambda: Events(job.port).status == 200, 'room again')
    for reader in readers:
        reader.next('state', seconds=20)
        reader.close()


def wake_ups(pid):
    total = 0
    for status in pathlib.Path(f'/proc/{pid}/task').glob('*/status'):
        total += int(re.search(r'\nvoluntary_ctxt_switches:\s*(\d+)', status.read_text())[1])
    return total


def test_agents_sleep_without_readers(cluster):  # noqa: F811
    """One node, which has no pings: periodic wakeups become visible."""
    job = Job(cluster, 1)
    agent = job.agent(0, nproc=2, program=SLEEPER)
    wait_for(job.is_open, agent.describe)
    events = Events(job.port)
    events.next('state', of(job, lambda j: j['phase'] == 'running'))

    def sleeps():
        before, until = wake_ups(agent.pid), time.monotonic() + 2.5
        wait_for(lambda: time.monotonic() > until, 'time passes')
        return wake_ups(agent.pid) == before
    assert not sleeps(), 'somebody watches: it ticks'
    events.close()
    wait_for(sleeps, 'it ticks on', 40)
    cluster.exit_workers(0)
    agent.ends(0)


def workers_of(pid):
    """Process ids of those of its children that run Python."""
    return [child for child in children_of(pid)
            if b'python' in read_bytes(f'/proc/{child}/cmdline')]


def test_readers_cost_almost_nothing(cluster):  # noqa: F811
    """Coordinator and agent both use less CPU than a program that only makes 50 steps a second."""
    job = Job(cluster, 1)
    agent = job.agent(0, nproc=2, program=STEPPER)
    wait_for(job.is_open, agent.describe)
    events = Events(job.port)
    events.next('progress', of(job, lambda j: min(j['steps']) > 10))
    workers = workers_of(agent.pid)
    before, theirs, begun = cpu_seconds(agent.pid), sum(map(cpu_seconds, workers)), time.monotonic()
    for _ in range(6):
        events.next('progress')
    passed = time.monotonic() - begun
    used, theirs = cpu_seconds(agent.pid) - before, sum(map(cpu_seconds, workers)) - theirs
    assert passed > 4, 'no oftener than once a second'
    assert used <= theirs + 0.02, f'{used:.2f} s, the workers {theirs:.2f} s'  # two clock ticks
    events.close()
    cluster.exit_workers(0)
    agent.ends(0)


def test_steps_of_a_failed_job_are_shown_to_a_later_reader(cluster):  # noqa: F811
    """No page was open while it ran; the coordinator outlives the job."""
    failing = Job(cluster, 2)
    failing.serve()
    agents = [failing.agent(node, nproc=2, program=STEPPER) for node in (0, 1)]
    wait_for(lambda: failing.status().get('phase') == 'running', failing.status)
    (cluster.folder / f'exit-rank-3-round-{failing.status()["round"]}').write_text('3')
    for agent in agents:
        agent.ends(1)
    events = Events(failing.port)
    progress = events.next('progress', of(failing, lambda _: True))['jobs'][failing.run_id]
    assert len(progress['steps']) == 4 and progress['steps'][3] > 0, progress
    state = events.next('state', of(failing, lambda _: True))['jobs'][failing.run_id]
    assert state['outcome'] == 'failure'
    assert state['rounds'][0]['formed_ms'] <= progress['at_ms'] <= state['rounds'][0]['over_ms']
    events.close()
