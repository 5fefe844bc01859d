"""packaging/hooks/cpprun-exclude-kubernetes with the real kubectl. The API server is a small one,
which grants what packaging/kubernetes/components/exclude grants and nothing else."""

import json
import os
import shutil
import subprocess

import pytest

pytest.importorskip('kubernetes_validate', reason='tools/deps.sh --kubernetes')

import kubernetes_manifests as manifests  # noqa: E402
import kubernetes_validate  # noqa: E402
from http_server import Handler, serving  # noqa: E402

HOOK = manifests.ROOT / 'packaging/hooks/cpprun-exclude-kubernetes'
COMPONENT = manifests.PACKAGING / 'components/exclude'
KINDS = {'nodes': 'Node', 'pods': 'Pod'}
TAINT = 'cpprun.io/excluded'
VERBS = {'GET': 'get', 'PATCH': 'patch', 'DELETE': 'delete'}


def rights():
    """(resource, verb) of all rules."""
    rules = [rule for one in manifests.documents(COMPONENT / 'rights.yaml')
             for rule in one.get('rules', [])]
    return {(resource, verb) for rule in rules for resource in rule['resources']
            for verb in rule['verbs']}


def pod(name, host, machine):
    return {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name, 'namespace': 'default'},
            'spec': {'hostname': host, 'nodeName': machine, 'containers': []}}


class Cluster:
    """Two machines, and pods of two jobs on one of them."""

    def __init__(self):
        self.granted = rights()
        self.used = set()
        self.objects = {
            'nodes': {name: {'apiVersion': 'v1', 'kind': 'Node', 'metadata': {'name': name},
                             'spec': {}} for name in ('worker-a', 'worker-b')},
            'pods': {one['metadata']['name']: one for one in (
                pod('train-3-x7k2p', 'train-3', 'worker-b'),
                pod('train-2-99999', 'train-2', 'worker-b'),
                pod('other-3-aaaaa', 'other-3', 'worker-b'),
                pod('train-3-older', 'train-3', 'worker-a'))},
        }

    def taints(self, machine):
        return self.objects['nodes'][machine]['spec'].get('taints') or []

    def answer(self, method, path, selector, body):
        if path == '/api':
            return 200, {'kind': 'APIVersions', 'versions': ['v1']}
        if path == '/apis':
            return 200, {'kind': 'APIGroupList', 'apiVersion': 'v1', 'groups': []}
        if path == '/api/v1':
            resources = [{'name': name, 'singularName': name[:-1], 'kind': kind, 'verbs': ['get'],
                          'namespaced': name == 'pods'} for name, kind in KINDS.items()]
            return 200, {'kind': 'APIResourceList', 'groupVersion': 'v1', 'resources': resources}
        parts = path.removeprefix('/api/v1/').removeprefix('namespaces/default/').split('/')
        if parts[0] not in KINDS:
            return 404, status(404, 'NotFound')
        resource, name = parts[0], parts[1] if len(parts) > 1 else None
        verb = VERBS[method] if name else 'list'
        self.used.add((resource, verb))
        if (resource, verb) not in self.granted:
            return 403, status(403, 'Forbidden')
        return self.perform(resource, verb, name, selector, body)

    def perform(self, resource, verb, name, selector, body):
        objects = self.objects[resource]
        if verb == 'list':
            items = [one for one in objects.values()
                     if f'spec.nodeName={one["spec"].get("nodeName")}' == selector]
            return 200, {'apiVersion': 'v1', 'kind': KINDS[resource] + 'List', 'metadata': {},
                         'items': items}
        if name not in objects:
            return 404, status(404, 'NotFound')
        if verb == 'patch':
            merged = {**objects[name]['spec'], **body['spec']}
            objects[name]['spec'] = {key: value for key, value in merged.items() if value}
        return 200, objects.pop(name) if verb == 'delete' else objects[name]


def status(code, reason):
    return {'apiVersion': 'v1', 'kind': 'Status', 'status': 'Failure', 'code': code,
            'reason': reason, 'message': f'the API server answers {reason}'}


def handler_of(cluster):
    class ApiHandler(Handler):
        protocol_version = 'HTTP/1.1'

        def respond(self):
            body = self.rfile.read(int(self.headers.get('Content-Length') or 0))
            path, _, query = self.path.partition('?')
            selector = dict(part.partition('=')[::2] for part in query.split('&'))
            chosen = selector.get('fieldSelector', '').replace('%3D', '=')
            code, answer = cluster.answer(self.command, path, chosen, json.loads(body or b'{}'))
            text = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header('Content-Type', 'application/json')
            self.send_header('Content-Length', str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_DELETE = respond  # noqa: N815

    return ApiHandler


@pytest.fixture
def cluster():
    return Cluster()


@pytest.fixture
def run(cluster, tmp_path):
    with serving(handler_of(cluster)) as server:
        env = {**os.environ, 'HOME': str(tmp_path), 'KUBECONFIG': '/dev/null',
               'CPPRUN_KUBECTL': f'{manifests.KUBECTL} --server={server.url}'}

        def run_hook(*args):
            return subprocess.run([HOOK, *args], env=env, capture_output=True, text=True,
                                  timeout=300)

        yield run_hook


def test_the_machine_is_tainted_and_the_pod_there_deleted(cluster, run):
    done = run('exclude', 'train-3@worker-b', '2 failures; the last: rank 9')
    assert done.returncode == 0, done.stderr
    assert cluster.taints('worker-b') == [
        {'key': TAINT, 'value': 'train-3', 'effect': 'NoSchedule'}]
    assert not cluster.taints('worker-a')
    assert sorted(cluster.objects['pods']) == ['other-3-aaaaa', 'train-2-99999', 'train-3-older']


def test_a_readmitted_machine_loses_its_own_taint_only(cluster, run):
    own = [{'key': TAINT, 'value': 'train-3', 'effect': 'NoSchedule'}]
    cluster.objects['nodes']['worker-b']['spec']['taints'] = own
    assert run('readmit', 'train-2@worker-b', '').returncode == 0
    assert cluster.taints('worker-b') == own, 'another pod excluded it'
    done = run('readmit', 'train-3@worker-b', '')
    assert done.returncode == 0 and not cluster.taints('worker-b'), done.stderr
    assert run('readmit', 'train-3@worker-b', '').returncode == 0, 'it has no taint any more'


def test_a_full_host_name_is_that_of_the_pod(cluster, run):
    done = run('exclude', 'train-3.cpprun.default.svc.cluster.local@worker-b', 'bad')
    assert done.returncode == 0 and 'train-3-x7k2p' not in cluster.objects['pods'], done.stderr
    assert cluster.taints('worker-b')[0]['value'] == 'train-3'


def test_the_rights_are_those_that_it_uses(cluster, run):
    run('exclude', 'train-3@worker-b', 'bad')
    run('readmit', 'train-3@worker-b', '')
    assert cluster.used == cluster.granted


@pytest.mark.parametrize('missing', sorted(rights()))
def test_a_missing_right_is_an_error(cluster, run, missing):
    cluster.granted.remove(missing)
    done = run('exclude', 'train-3@worker-b', 'bad')
    assert done.returncode != 0 and 'orbidden' in done.stderr, done.stderr


@pytest.mark.parametrize('args, text', [
    (('drain', 'train-3@worker-b', ''), "the action is exclude or readmit, not 'drain'"),
    (('exclude', 'train-3', 'bad'), 'the machine of train-3 is not known: set CPPRUN_NODE_NAME'),
])
def test_wrong_arguments_are_explained(cluster, run, args, text):
    done = run(*args)
    assert done.returncode == 1 and text in done.stdout
    assert not cluster.used


def test_the_component_changes_a_job(tmp_path):
    copy = tmp_path / 'kubernetes'
    shutil.copytree(manifests.PACKAGING, copy)
    kustomization = copy / 'overlays/elastic/kustomization.yaml'
    text = kustomization.read_text()
    kustomization.write_text(text + 'components:\n  - ../../components/exclude\nnamespace: lab\n')
    documents = manifests.kustomize(kustomization.parent)
    for document in documents:
        kubernetes_validate.validate(document, kubernetes_validate.latest_version(), strict=True)
    job = next(job for job in map(manifests.indexed_job, documents) if job)
    assert job.pod['serviceAccountName'] == 'cpprun-exclude'
    assert job.pod['automountServiceAccountToken'] is True
    assert f'--exclude-hook=/usr/share/cpprun/hooks/{HOOK.name}' in job.container['command']
    binding = next(one for one in documents if one['kind'] == 'ClusterRoleBinding')
    assert binding['subjects'][0]['namespace'] == 'lab'
