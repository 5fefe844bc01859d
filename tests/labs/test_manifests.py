"""packaging/kubernetes: schemas, rules that schemas miss, kustomize, and the flags of cpprun."""
import copy
import os
import pathlib
import re
import shlex
import subprocess

import pytest

pytest.importorskip('kubernetes_validate', reason='tools/deps.sh --kubernetes')

import jsonschema  # noqa: E402
import kubeflow_trainer_api.models as models  # noqa: E402
import kubernetes_manifests as manifests  # noqa: E402
import kubernetes_validate  # noqa: E402

OLDEST = '1.31'  # the first with successPolicy and podFailurePolicy by default
NEWEST = kubernetes_validate.latest_version()
FOLDERS = ['namespace', 'base', 'overlays/elastic']
FILES = ['jobset.yaml', 'cluster-training-runtime.yaml', 'trainjob.yaml']
MODELS = {'JobSet': models.JobsetV1alpha2JobSet,
          'ClusterTrainingRuntime': models.TrainerV1alpha1ClusterTrainingRuntime,
          'TrainJob': models.TrainerV1alpha1TrainJob}


def read(source):
    path = manifests.PACKAGING / source
    return manifests.kustomize(path) if path.is_dir() else manifests.documents(path)


def one_job(source):
    return next(job for job in map(manifests.indexed_job, read(source)) if job)


@pytest.fixture(scope='session')
def flags():
    program = pathlib.Path(os.environ.get('CPPRUN_BIN', manifests.ROOT / 'build/check/bin'))
    text = subprocess.run([program / 'cpprun', '--help'], capture_output=True, text=True,
                          check=True, timeout=60).stdout
    return set(re.findall(r'--[a-z-]+', text))


def closed(schema):
    """The schema of a model, in which an unknown field is an error, as for the API server."""
    for one in [schema, *schema.get('$defs', {}).values()]:
        if 'one_of_schemas' in one.get('properties', {}):  # a quantity, or a number or name
            one.clear()
            one['type'] = ['number', 'string']
        elif one.get('properties'):
            one['additionalProperties'] = False
    return schema


def validate(document, version):
    if document['kind'] in MODELS:
        model = MODELS[document['kind']]
        jsonschema.validate(document, closed(model.model_json_schema(by_alias=True)))
        model.from_dict(document)
    else:
        kubernetes_validate.validate(document, version, strict=True)


def as_job(job):
    spec = {**job.spec, 'template': job.spec['template']}
    return {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': job.name}, 'spec': spec}


@pytest.mark.parametrize('version', [OLDEST, NEWEST])
@pytest.mark.parametrize('source', [*FOLDERS, *FILES])
def test_manifests_fit_their_schemas(source, version):
    for document in read(source):
        validate(document, version)
        if job := manifests.indexed_job(document):
            kubernetes_validate.validate(as_job(job), version, strict=True)


def test_schemas_find_a_misspelt_field():
    for source in ['base', *FILES]:
        document = read(source)[0]
        document['spec']['mispelt'] = 1
        with pytest.raises(jsonschema.ValidationError):
            validate(document, NEWEST)


@pytest.mark.parametrize('source', ['base', 'overlays/elastic', *FILES[:2]])
def test_manifests_follow_rules_that_schemas_miss(source, flags):
    assert manifests.faults(one_job(source), flags) == []


# A change of the Job, by its path, and the sentence that must be found.
BROKEN = [
    ('template.spec.restartPolicy', 'OnFailure', 'podFailurePolicy needs restartPolicy Never'),
    ('completionMode', 'NonIndexed', 'successPolicy needs completionMode Indexed'),
    ('podReplacementPolicy', 'TerminatingOrFailed', 'needs podReplacementPolicy Failed'),
    ('backoffLimitPerIndex', None, 'maxFailedIndexes needs backoffLimitPerIndex'),
    ('successPolicy.rules.0.succeededCount', 9, 'succeededCount'),
    ('podFailurePolicy.rules.0.onExitCodes.values', [78, 2], 'in order'),
    ('podFailurePolicy.rules.0.onExitCodes.containerName', 'other', 'is no container'),
    ('podFailurePolicy.rules.1.action', 'Count', 'exit code 75'),
    ('podFailurePolicy.rules.1.onExitCodes.operator', 'NotIn', 'exit code 75'),
    ('podFailurePolicy.rules.2', None, 'disrupted True: not Ignore'),
    ('completions', 3, 'completions, parallelism'),
    ('maxFailedIndexes', 1, 'maxFailedIndexes is not'),
    ('template.spec.terminationGracePeriodSeconds', 100, 'leaves no time'),
    ('template.spec.containers.0.ports.0.containerPort', 1, 'rendezvous'),
    ('template.spec.containers.0.ports.1.containerPort', 1, 'TORCHELASTIC_HEALTH_CHECK_PORT'),
    ('template.spec.containers.0.livenessProbe.httpGet.path', '/', 'livenessProbe'),
    ('template.spec.volumes.0', None, 'no volume shm'),
    ('template.spec.volumes.0.emptyDir', {}, '/dev/shm is not memory'),
    ('template.spec.volumes.1', {'name': 'snapshots', 'emptyDir': {}}, 'outlives the pod'),
    ('template.spec.containers.0.volumeMounts.1.subPathExpr', '$(NAME)', 'no variable NAME'),
    ('template.spec.containers.0.volumeMounts.2.mountPath', '/else', 'not in a Secret'),
    ('template.spec.securityContext.runAsUser', 0, 'runs as root'),
    ('template.spec.containers.0.securityContext', {}, 'may gain privileges'),
    ('template.spec.automountServiceAccountToken', None, 'a token'),
    ('template.spec.containers.0.env.1.valueFrom.fieldRef.fieldPath',
     "metadata.labels['uid']", 'does not set'),
    ('template.spec.containers.0.command.1', '--nproc-per-pod=1', 'has no flag'),
    ('template.spec.containers.0.args.0', '--nnodes=2', 'begin with the script'),
]


def change(spec, path, value):
    *parents, last = [int(word) if word.isdigit() else word for word in path.split('.')]
    for word in parents:
        spec = spec[word]
    if value is None:
        del spec[last]
    else:
        spec[last] = value


@pytest.mark.parametrize('path, value, sentence', BROKEN)
def test_each_rule_finds_its_fault(path, value, sentence, flags):
    job = copy.deepcopy(one_job('base'))
    change(job.spec, path, value)
    found = manifests.faults(job, flags)
    assert any(sentence in one for one in found), found


@pytest.mark.parametrize('source', ['base', 'overlays/elastic'])
def test_the_service_names_the_pods(source):
    service = next(one for one in read('namespace') if one['kind'] == 'Service')
    job = one_job(source)
    assert list(manifests.service_faults(service, job)) == []
    for path, value in [('clusterIP', '10.96.0.9'), ('publishNotReadyAddresses', False),
                        ('selector', {'app': 'else'}), ('ports.0.port', 1)]:
        broken = copy.deepcopy(service)
        change(broken['spec'], path, value)
        assert list(manifests.service_faults(broken, job)), path


def test_the_overlay_changes_what_it_promises():
    job, base = one_job('overlays/elastic'), one_job('base')
    assert (job.name, job.env()['PET_NNODES']) == ('digits', '2:4')
    assert job.container['image'] == 'registry.example/digits:1'
    assert job.container['command'] == base.container['command']
    assert job.env().keys() == base.env().keys()
    assert len(job.container['env']) == len(base.container['env'])


def test_names_of_the_namespace_are_those_of_the_pods():
    claims = {one['metadata']['name'] for one in read('namespace')
              if one['kind'] == 'PersistentVolumeClaim'}
    for source in ['base', 'overlays/elastic', *FILES[:2]]:
        for volume in one_job(source).pod['volumes']:
            if 'persistentVolumeClaim' in volume:
                assert volume['persistentVolumeClaim']['claimName'] in claims


# From the webhooks of JobSet and Trainer.
def test_controllers_find_what_they_look_for():
    job_set = read('jobset.yaml')[0]['spec']
    runtime = read('cluster-training-runtime.yaml')[0]['spec']
    for spec in (job_set, runtime['template']['spec']):
        rule = spec['failurePolicy']['rules'][0]
        assert re.fullmatch(r'[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?', rule['name'])
        assert rule['onJobFailureReasons'] == ['PodFailurePolicy']
    assert runtime['mlPolicy'].keys() - {'numNodes'} == {'torch'}
    node = runtime['template']['spec']['replicatedJobs'][0]
    label = 'trainer.kubeflow.org/trainjob-ancestor-step'
    assert node['template']['metadata']['labels'][label] == 'trainer'
    assert one_job('cluster-training-runtime.yaml').container['name'] == node['name'] == 'node'
    job = read('trainjob.yaml')[0]['spec']
    made = read('cluster-training-runtime.yaml')[0]['metadata']['name']
    assert job['runtimeRef']['name'] == made


# ---------------------------------------------------------------- docs/how-to/kubernetes.md

PAGE = (manifests.ROOT / 'docs/how-to/kubernetes.md').read_text()
BLOCKS = re.findall(r'^```sh\n(.*?)^```', PAGE, re.M | re.S)
COMMANDS = [line for block in BLOCKS for line in block.splitlines()]


def kubectl(*arguments):
    return subprocess.run([manifests.KUBECTL, *arguments], capture_output=True, text=True,
                          timeout=300)


def test_the_page_begins_with_one_command():
    assert BLOCKS[0].count('\n') == 1
    assert all(command.startswith('kubectl ') for command in COMMANDS)


@pytest.mark.parametrize('command', COMMANDS)
def test_each_command_of_the_page_is_one_of_kubectl(command):
    """Without an API server: kustomizations are built, files validated, options looked up."""
    args = shlex.split(command.replace('$(openssl rand -hex 32)', 16 * 'ab'))[1:]
    if args[:2] == ['apply', '-k']:
        assert manifests.kustomize(manifests.ROOT / args[2])
    elif args[:2] == ['apply', '-f']:
        for document in manifests.documents(manifests.ROOT / args[2]):
            validate(document, NEWEST)
    elif args[0] == 'create':
        done = kubectl(*args, '--dry-run=client', '--output=yaml')
        assert done.returncode == 0 and 'name: cpprun-secret' in done.stdout, done.stderr
    else:
        own = args[:args.index('--')] if '--' in args else args
        usage = kubectl(args[0], '--help')
        assert usage.returncode == 0, usage.stderr
        for option in [arg.split('=')[0] for arg in own if arg.startswith('-')]:
            assert re.search(rf'(^|\s){option}[,=\s]', usage.stdout), option


def test_the_page_names_the_actions_of_the_policy():
    job, actions = one_job('base'), {'ignored': 'Ignore', 'counted': 'Count', 'fails': 'FailJob'}
    rows = re.findall(r'^\|.*\| (\d+) \| (Failed|Succeeded) \| (\w+)', PAGE, re.M)
    seen = {int(code) for code, _, _ in rows}
    assert seen >= set(manifests.exit_codes().values()) - {128, 3}
    for code, phase, word in rows:
        assert (phase == 'Succeeded') == (code == '0')
        assert code == '0' or manifests.decide(job, int(code)) == actions[word], code


def test_the_page_names_the_numbers_of_the_manifest():
    job = one_job('base')
    command = ' '.join(job.container['command'])
    grace = job.pod['terminationGracePeriodSeconds']
    stop = re.search(r'--shutdown-timeout=(\d+)', command)[1]
    assert f'({stop} s of the {grace} s of' in PAGE
    assert re.search(r'--rdzv-conf=\S+', command)[0] in PAGE
    assert f'port {job.env()["TORCHELASTIC_HEALTH_CHECK_PORT"]} ' in PAGE
    assert f'port {manifests.RENDEZVOUS_PORT}' in PAGE
    assert job.spec['backoffLimitPerIndex'] == 3
