"""The shipped manifests in pods made of namespaces: starts, evictions, losses, late names, ends."""
import copy
import os
import pathlib
import re
import shutil
import signal
import subprocess

import pytest

pytest.importorskip('yaml', reason='tools/deps.sh --kubernetes')

import kubernetes_manifests as manifests  # noqa: E402
import pod_lab  # noqa: E402
from long_tests import long  # noqa: E402
from worlds import check_one_world_at_a_time, worlds_of  # noqa: E402

LABS = pathlib.Path(__file__).resolve().parent
BIN = pathlib.Path(os.environ.get('CPPRUN_BIN', manifests.ROOT / 'build/check/bin'))
MANY = '1000000'  # steps; more than a test waits for


@pytest.fixture
def pods(request):
    """Makes a JobController for a manifest; see `job`."""
    missing = [program for program in pod_lab.NEEDED if shutil.which(program) is None]
    if os.getuid() != 0 or missing:
        pytest.skip('a pod lab needs root and ' + ', '.join(pod_lab.NEEDED))
    folder = manifests.ROOT / 'build' / 'labs' / f'pods-{os.getpid()}'
    lab = pod_lab.PodLab(folder, {'/image/bin': str(BIN), '/image/work': str(LABS)})

    def make(job, image=(), **options):
        lab.image.update({str(path): str(path) for path in image})
        env = {'CPPRUN_TEST_GPUS': '1', **options.pop('env', {})}
        return pod_lab.JobController(lab, job, manifests.decide, env=env, **options)
    yield make
    lab.stop()


def job(source='base', nodes='2', steps='40', args=None):
    """The Job of a manifest with another size and program, as an overlay changes them."""
    path = manifests.PACKAGING / source
    documents = manifests.kustomize(path) if path.is_dir() else manifests.documents(path)
    made = copy.deepcopy(next(one for one in map(manifests.indexed_job, documents) if one))
    least, most = int(nodes.split(':')[0]), int(nodes.split(':')[-1])
    made.spec['completions'] = made.spec['parallelism'] = most
    made.spec['maxFailedIndexes'] = most - least
    made.container['args'] = args or ['lab_worker.py', steps, '/snapshots']
    if made.trainer_env:
        made.trainer_env['PET_NNODES'] = nodes
    else:
        entry = next(one for one in made.container['env'] if one['name'] == 'PET_NNODES')
        entry['value'] = nodes
    assert list(manifests.number_faults(made)) == []
    return made


def running(controller, count):
    """All ranks have taken a step of their newest round."""
    return all((controller.kept / f'running-{rank}').exists() for rank in range(count))


def saved(controller):
    path = controller.kept / 'step'
    return int(path.read_text()) if path.exists() else 0


def is_in_world(pod, size):
    return re.search(rf'rank \d of {size} on', pod.text()) is not None


def successor(controller, old):
    """The pod that runs in the place of `old`; None if there is none yet."""
    found = [pod for pod in controller.active.values() if pod.host == old.host and pod is not old]
    return found[0] if found else None


def finish(controller):
    """The training ends; the reason of the Job's end."""
    (controller.kept / 'finish').touch()
    return controller.run_to_end()


@pytest.mark.parametrize('source', ['base', 'jobset.yaml', 'cluster-training-runtime.yaml'])
def test_a_job_succeeds_by_its_manifest(pods, source):
    controller = pods(job(source))
    controller.start_all()
    port = {one['name']: one['containerPort'] for one in controller.job.container['ports']}
    probe = controller.job.container['readinessProbe']['httpGet']
    first, second = controller.active.values()
    controller.run(lambda: all(pod.probe(probe['path'], port[probe['port']])
                               for pod in (first, second)), 'both pods are ready')
    assert controller.run_to_end() == '', controller.texts()
    name = controller.job.name
    assert f'Kubernetes job {name}: endpoint {name}-0.{controller.job.domain}.' in first.text()
    assert f'run id {name}.{controller.uid[:8]}' in first.text()
    assert 'WARNING' not in first.text() + second.text(), controller.texts()
    assert f'rank 0 of 2 on {name}-' in controller.texts()
    assert {code for _, code in controller.ended} == {0}


def test_a_pod_that_starts_after_success_ends_with_0(pods):
    controller = pods(job('overlays/elastic', '2:3'))
    controller.start_all([0, 1])
    assert controller.run_to_end() == '', controller.texts()
    late = controller.start(2)
    controller.run(lambda: not controller.active, 'the late pod ends')
    assert late.code() == 0 and 'has succeeded without this pod' in late.text(), late.text()
    another = pods(controller.job)  # a later Job of the same name
    another.start_all([0, 1])
    first = another.active[0]
    assert another.run_to_end() == '' and 'rank 0 of 2' in another.texts(), another.texts()
    assert 'has succeeded without' not in first.text()


def test_an_evicted_pod_is_replaced_and_the_job_resumes(pods):
    """The job needs both pods, so both save and both are replaced."""
    controller = pods(job(steps=MANY))
    controller.start_all()
    controller.run(lambda: running(controller, 2), 'the workers run')
    old = controller.evict(1)
    controller.run(lambda: (new := successor(controller, old)) and is_in_world(new, 2),
                   'the job resumes')
    new = successor(controller, old)
    assert finish(controller) == '', controller.texts()
    assert sorted(controller.ended[:2]) == [(0, 75), (1, 75)], controller.texts()
    assert new.address != old.address and 'saves at step' in old.text()
    assert 'begins at step 0' not in new.text() and controller.failures == {}


def test_the_job_continues_when_pod_0_is_lost_in_silence(pods):
    controller = pods(job('overlays/elastic', '1:2', steps=MANY))
    controller.start_all()
    controller.run(lambda: running(controller, 2) and saved(controller) > 0, 'the workers run')
    old, survivor = controller.lose(0), controller.active[1]
    controller.run(lambda: (new := successor(controller, old)) and is_in_world(new, 2),
                   'the survivor joins the new pod 0')
    assert finish(controller) == '', controller.texts()
    assert controller.failures == {} and controller.ended[0] == (0, 137)
    assert survivor.code() == 0, controller.texts()
    check_one_world_at_a_time(controller.kept, controller.texts)


@pytest.mark.parametrize('lost', [[0], pytest.param([0, 2], marks=long)],
                         ids=['pod-0', 'pods-0-and-2'])
def test_a_replaced_pod_0_begins_no_world_beside_the_old_workers(pods, lost):
    """A fourth pod never starts, so that pod 0 cannot know that no other node is there."""
    controller = pods(job('overlays/elastic', '1:4', steps=MANY))
    controller.start_all([0, 1, 2])
    controller.run(lambda: running(controller, 3), 'the workers run')
    old = [controller.lose(index) for index in lost][0]
    controller.run(lambda: (new := successor(controller, old)) and 'begins at' in new.text(),
                   'the successor of pod 0 trains')
    assert finish(controller) == '', controller.texts()
    assert len(worlds_of(controller.kept)) > 1, controller.texts()
    check_one_world_at_a_time(controller.kept, controller.texts)


def test_names_may_come_late(pods):
    controller = pods(job(), dns_delay=4.0)
    controller.start_all()
    assert controller.run_to_end() == '', controller.texts()
    assert {code for _, code in controller.ended} == {0}


def test_exit_codes_have_the_meaning_of_the_policy(pods):
    wrong = job()
    wrong.container['command'].append('--no-such-flag')
    controller = pods(wrong)
    controller.start_all()
    assert controller.run_to_end() == 'PodFailurePolicy', controller.texts()
    assert 2 in [code for _, code in controller.ended]
    failing = job(args=['--no-python', '/bin/false'])
    failing.spec['backoffLimitPerIndex'] = 0
    controller = pods(failing)
    controller.start_all()
    assert controller.run_to_end() == 'MaxFailedIndexesExceeded', controller.texts()
    assert 1 in controller.failures.values() and 1 in [code for _, code in controller.ended]
    assert list(controller.kept.glob('.job-*')) == []


# Fails on one machine; elsewhere it ends when the training is to end.
PICKY = '''echo "rank $RANK of $WORLD_SIZE on $CPPRUN_NODE_NAME"
[ "$CPPRUN_NODE_NAME" != machine-2 ] || exit 3
until [ -e /snapshots/finish ]; do sleep 0.1; done'''


def test_faults_of_a_machine_exclude_no_pod_on_another(pods):
    """The pod on another machine has the host name of the one before."""
    picky = job('overlays/elastic', '1:2', args=['--no-python', '/bin/sh', '-c', PICKY])
    picky.container['command'].append('--exclude-after=1')
    controller = pods(picky)
    controller.start_all()
    controller.run(lambda: 'rank 0 of 1 on machine-1' in controller.texts(), 'it is excluded')
    assert 'digits-1@machine-2 is excluded' in controller.texts(), controller.texts()
    controller.evict(1)
    controller.run(lambda: 'of 2 on machine-3' in controller.texts(), 'its successor joins')
    assert finish(controller) == '', controller.texts()


def test_a_deleted_job_saves_and_ends_with_75(pods):
    controller = pods(job(steps=MANY))
    controller.start_all()
    controller.run(lambda: running(controller, 2), 'the workers run')
    controller.finish('deleted')
    assert controller.run_to_end() == 'deleted'
    assert {code for _, code in controller.ended} == {75}, controller.texts()
    assert saved(controller) > 0


@long
def test_pod_0_is_evicted_and_the_others_continue(pods):
    controller = pods(job('overlays/elastic', '2:3', steps=MANY), start_delay=8)
    controller.start_all()
    controller.run(lambda: running(controller, 3), 'the workers run')
    others = [controller.active[index] for index in (1, 2)]
    old = controller.evict(0)
    controller.run(lambda: (new := successor(controller, old)) and is_in_world(new, 3),
                   'the successor joins')
    assert finish(controller) == '', controller.texts()
    assert all(is_in_world(pod, 2) for pod in others), controller.texts()
    assert [pod.code() for pod in [old, *others]] == [75, 0, 0], controller.texts()


@long
@pytest.mark.parametrize('index', [0, 1])
@pytest.mark.parametrize('delay', [0, 8])
def test_a_killed_container_counts_and_is_replaced(pods, index, delay):
    """The survivor continues; it leads the job if pod 0 is killed and its successor comes late."""
    controller = pods(job('overlays/elastic', '1:2', steps=MANY), start_delay=delay)
    controller.start_all()
    controller.run(lambda: running(controller, 2) and saved(controller) > 0, 'the workers run')
    old, survivor = controller.active[index], controller.active[1 - index]
    old.send(signal.SIGKILL)
    controller.run(lambda: (new := successor(controller, old)) and is_in_world(new, 2),
                   'the successor joins')
    assert finish(controller) == '', controller.texts()
    assert controller.failures == {index: 1}
    assert delay == 0 or is_in_world(survivor, 1), controller.texts()
    assert [code for _, code in controller.ended] == [137, 0, 0], controller.texts()


@long
def test_names_may_come_half_a_minute_late(pods):
    controller = pods(job('overlays/elastic', '2:3'), dns_delay=30.0)
    controller.start_all()
    assert controller.run_to_end() == '', controller.texts()


@long
def test_a_static_job_of_trainer_starts_with_late_names(pods):
    """What a TrainJob runs that brings its own command, as for torchrun."""
    made = job('cluster-training-runtime.yaml')
    made.container['command'] = ['cpprun', '--shutdown-timeout=100']
    controller = pods(made, dns_delay=4.0)
    controller.start_all()
    assert controller.run_to_end() == '', controller.texts()


@long
def test_a_worker_over_the_pods_memory_limit_is_named(pods):
    if not pod_lab.MEMORY.is_dir():
        pytest.skip('the lab limits memory by cgroups v1 only')
    greedy = job(args=['--no-python', '/usr/bin/python3', '-c', 'b"x" * 10**9'])
    greedy.container['resources'] = {'limits': {'memory': '300000000'}}
    greedy.spec['backoffLimitPerIndex'] = 0
    controller = pods(greedy)
    controller.start_all()
    assert controller.run_to_end() == 'MaxFailedIndexesExceeded', controller.texts()
    assert 'out_of_memory' in controller.texts(), controller.texts()


DIGITS = [str(manifests.ROOT / 'examples/python/digits_ddp.py'), '--epochs', '20']
VENV = (manifests.ROOT / '.venv').resolve()


def result(text):
    return re.findall(r'parameters (\w+)', text)


@long
def test_digits_end_as_without_evictions_and_kills(pods, tmp_path):
    if not (VENV / 'bin/torchrun').exists():
        pytest.skip('no torch in .venv')
    # The number of threads changes the order of sums.
    python = {'PYTHON_EXEC': str(VENV / 'bin/python'), 'OMP_NUM_THREADS': '1'}
    alone = [BIN / 'cpprun', '--standalone', '--nproc-per-node=2', *DIGITS, '--snapshot', tmp_path]
    whole = subprocess.run(alone, env={**os.environ, **python}, capture_output=True, text=True,
                           check=True, timeout=pod_lab.SLOW).stdout
    controller = pods(job(args=[*DIGITS, '--snapshot', '/snapshots', '--sleep', '0.5']),
                      image=[manifests.ROOT, VENV], env=python)
    controller.start_all()

    def has_saved(epochs):
        return any(int(path.name.removeprefix('step-')) >= epochs
                   for path in controller.kept.glob('step-*'))
    controller.run(lambda: has_saved(2), 'the first snapshots')
    controller.evict(1)
    controller.run(lambda: len(controller.ended) == 2, 'both pods save')
    controller.run(lambda: has_saved(6), 'the successors continue')
    controller.active[1].send(signal.SIGKILL)
    controller.run(lambda: has_saved(10), 'the killed pod is replaced')
    controller.lose(0)
    assert controller.run_to_end() == '', controller.texts()
    assert result(controller.texts()) == result(whole) != [], controller.texts()
    assert 'resuming from snapshot' in controller.texts()
