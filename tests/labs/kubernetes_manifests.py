"""Reads the manifests of packaging/kubernetes, and checks rules that no schema knows."""
import dataclasses
import pathlib
import re
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGING = ROOT / 'packaging' / 'kubernetes'
KUBECTL = ROOT / 'build' / 'venv-kubernetes' / 'bin' / 'kubectl'
RENDEZVOUS_PORT = 29400
# Set by the Job controller in every pod of an Indexed Job.
JOB_LABELS = {'batch.kubernetes.io/job-name', 'batch.kubernetes.io/controller-uid',
              'batch.kubernetes.io/job-completion-index'}
# What the leaving itself needs after the workers have ended, or were killed.
LEAVE_SECONDS = 10


def kustomize(folder):
    """The documents of a kustomization."""
    done = subprocess.run([KUBECTL, 'kustomize', folder], capture_output=True, text=True,
                          timeout=300)
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def documents(path):
    return list(yaml.safe_load_all(path.read_text()))


@dataclasses.dataclass
class IndexedJob:
    """The Job that a document describes, or that the controller of its kind makes from it."""
    spec: dict
    name: str     # of the Job
    domain: str   # subdomain of its pods
    trainer_env: dict  # what Kubeflow Trainer adds

    @property
    def pod(self):
        return self.spec['template']['spec']

    @property
    def container(self):
        return self.pod['containers'][0]

    def env(self):
        """The variables of the container; None stands for a value from the pod's metadata."""
        own = {entry['name']: entry.get('value') for entry in self.container.get('env', [])}
        return {**own, **self.trainer_env}


def indexed_job(document):
    """None: the document has no Job."""
    name, spec = document['metadata']['name'], document.get('spec', {})
    if document['kind'] == 'Job':
        return IndexedJob(spec, name, spec['template']['spec'].get('subdomain'), {})
    if document['kind'] == 'JobSet':
        job = spec['replicatedJobs'][0]
        return IndexedJob(job['template']['spec'], f'{name}-{job["name"]}-0', name, {})
    if document['kind'] == 'ClusterTrainingRuntime':
        job = spec['template']['spec']['replicatedJobs'][0]
        nodes = spec['mlPolicy']['numNodes']
        made = {**job['template']['spec'], 'completions': nodes, 'parallelism': nodes}
        return IndexedJob(made, f'{name}-{job["name"]}-0', name, trainer_env(name, nodes))
    return None


def trainer_env(name, nodes):
    """What the policy "torch" of Kubeflow Trainer 2.3 sets for a TrainJob."""
    return {'PET_NNODES': str(nodes), 'PET_NPROC_PER_NODE': '1', 'PET_NODE_RANK': None,
            'PET_MASTER_ADDR': f'{name}-node-0-0.{name}', 'PET_MASTER_PORT': '29500'}


def exit_codes():
    text = (ROOT / 'common' / 'exit_code.hpp').read_text()
    found = re.findall(r'inline constexpr int (k\w+) = (\d+);', text)
    return {name: int(value) for name, value in found}


# ---------------------------------------------------------------- rules

def faults(job, flags):
    """What is wrong with a Job: sentences, none if all is well. `flags`: those of cpprun."""
    found = []
    for rule in (index_faults, failure_policy_faults, exit_code_faults, number_faults,
                 port_faults, mount_faults, security_faults, label_faults):
        found += rule(job)
    return found + list(flag_faults(job, flags))


def index_faults(job):
    spec, never = job.spec, job.pod.get('restartPolicy') == 'Never'
    indexed = spec.get('completionMode') == 'Indexed'
    has = spec.__contains__
    if not indexed:
        yield 'cpprun needs completionMode Indexed: the pods know their number'
    if has('podFailurePolicy') and not never:
        yield 'podFailurePolicy needs restartPolicy Never'
    if has('podFailurePolicy') and spec.get('podReplacementPolicy', 'Failed') != 'Failed':
        yield 'podFailurePolicy needs podReplacementPolicy Failed'
    if has('successPolicy') and not indexed:
        yield 'successPolicy needs completionMode Indexed'
    if has('backoffLimitPerIndex') and not (indexed and never):
        yield 'backoffLimitPerIndex needs completionMode Indexed and restartPolicy Never'
    if has('maxFailedIndexes') and not has('backoffLimitPerIndex'):
        yield 'maxFailedIndexes needs backoffLimitPerIndex'
    for rule in spec.get('successPolicy', {}).get('rules', []):
        if not 1 <= rule.get('succeededCount', 1) <= spec['completions']:
            yield 'succeededCount is not a number of pods'


def failure_policy_faults(job):
    names = {one['name'] for one in job.pod['containers']}
    for rule in job.spec.get('podFailurePolicy', {}).get('rules', []):
        if ('onExitCodes' in rule) == ('onPodConditions' in rule):
            yield 'a rule has either onExitCodes or onPodConditions'
        if rule['action'] not in ('FailJob', 'FailIndex', 'Ignore', 'Count'):
            yield f'action {rule["action"]}'
        if rule['action'] == 'FailIndex' and 'backoffLimitPerIndex' not in job.spec:
            yield 'FailIndex needs backoffLimitPerIndex'
        codes = rule.get('onExitCodes')
        if not codes:
            continue
        if codes['values'] != sorted(set(codes['values'])):
            yield 'exit codes are in order, and each once'
        if codes['operator'] not in ('In', 'NotIn'):
            yield f'operator {codes["operator"]}'
        if codes['operator'] == 'In' and 0 in codes['values']:
            yield 'exit code 0 is no failure'
        if codes.get('containerName', job.container['name']) not in names:
            yield f'containerName {codes["containerName"]} is no container of the pod'


def decide(job, code, is_disrupted=False):
    """What the Job controller does with a failed pod: the action of the first rule that fits."""
    for rule in job.spec.get('podFailurePolicy', {}).get('rules', []):
        codes = rule.get('onExitCodes')
        if codes and (code in codes['values']) == (codes['operator'] == 'In'):
            return rule['action']
        for condition in rule.get('onPodConditions') or []:
            if is_disrupted and condition['type'] == 'DisruptionTarget':
                return rule['action']
    return 'Count'


def exit_code_faults(job):
    code = exit_codes()
    wanted = [(code['kStoppedResumable'], False, 'Ignore'), (code['kUsageError'], False, 'FailJob'),
              (code['kRetryUseless'], False, 'FailJob'), (code['kFailure'], False, 'Count'),
              (code['kNodeUnusable'], False, 'Count'), (137, False, 'Count'),
              (137, True, 'Ignore'), (143, True, 'Ignore')]
    for number, is_disrupted, action in wanted:
        if decide(job, number, is_disrupted) != action:
            yield f'exit code {number}, disrupted {is_disrupted}: not {action}'


def number_faults(job):
    spec = job.spec
    nodes = [int(number) for number in job.env().get('PET_NNODES', '0').split(':')]
    if not spec.get('completions') == spec.get('parallelism') == nodes[-1]:
        yield 'completions, parallelism and the largest number of PET_NNODES differ'
    elif spec.get('maxFailedIndexes') != nodes[-1] - nodes[0]:
        yield 'maxFailedIndexes is not what the smallest number of PET_NNODES allows'
    grace = job.pod.get('terminationGracePeriodSeconds', 30)
    stops = [arg.split('=')[1] for arg in arguments(job) if arg.startswith('--shutdown-timeout=')]
    if not stops or float(stops[0]) + LEAVE_SECONDS > grace:
        yield 'terminationGracePeriodSeconds leaves no time after --shutdown-timeout'


def port_faults(job):
    ports = {port['name']: port['containerPort'] for port in job.container.get('ports', [])}
    if ports.get('rendezvous') != RENDEZVOUS_PORT:
        yield f'the port "rendezvous" is not {RENDEZVOUS_PORT}'
    if str(ports.get('health')) != job.env().get('TORCHELASTIC_HEALTH_CHECK_PORT'):
        yield 'the port "health" is not TORCHELASTIC_HEALTH_CHECK_PORT'
    for kind in ('readinessProbe', 'livenessProbe'):
        asked = job.container.get(kind, {}).get('httpGet', {})
        if asked.get('port') not in ports or asked.get('path') != '/healthz':
            yield f'{kind} does not ask the port "health" for /healthz'


def mount_faults(job):
    volumes = {volume['name']: volume for volume in job.pod.get('volumes', [])}
    mounts = {mount['mountPath']: mount for mount in job.container.get('volumeMounts', [])}
    for path, mount in mounts.items():
        if mount['name'] not in volumes:
            yield f'{path}: no volume {mount["name"]}'
        for name in re.findall(r'\$\((\w+)\)', mount.get('subPathExpr', '')):
            if name not in job.env():
                yield f'{path}: the container has no variable {name}'
    shm = volumes.get(mounts.get('/dev/shm', {}).get('name'), {})
    if shm.get('emptyDir', {}).get('medium') != 'Memory':
        yield '/dev/shm is not memory'
    secret = pathlib.PurePath(job.env().get('CPPRUN_SECRET_FILE') or '')
    mount = mounts.get(str(secret.parent), {})
    if 'secret' not in volumes.get(mount.get('name'), {}):
        yield 'CPPRUN_SECRET_FILE is not in a Secret'
    snapshots = [arg.split('=')[1] for arg in arguments(job) if arg.startswith('--snapshot-dir=')]
    volume = volumes.get(mounts.get(snapshots[0], {}).get('name'), {}) if snapshots else {}
    if 'persistentVolumeClaim' not in volume:
        yield '--snapshot-dir is not on a volume that outlives the pod'


def security_faults(job):
    pod, own = job.pod.get('securityContext', {}), job.container.get('securityContext', {})
    if not pod.get('runAsNonRoot') or pod.get('runAsUser', 0) == 0:
        yield 'the container runs as root'
    if own.get('allowPrivilegeEscalation') is not False:
        yield 'the container may gain privileges'
    if own.get('capabilities', {}).get('drop') != ['ALL']:
        yield 'the container keeps capabilities'
    if job.pod.get('automountServiceAccountToken') is not False:
        yield 'the container gets a token of the API server'


def label_faults(job):
    for entry in job.container.get('env', []):
        path = entry.get('valueFrom', {}).get('fieldRef', {}).get('fieldPath', '')
        label = re.fullmatch(r"metadata\.labels\['(.*)'\]", path)
        if path and path != 'spec.nodeName' and not (label and label[1] in JOB_LABELS):
            yield f'{entry["name"]}: the Job controller does not set {path}'
    if 'CPPRUN_JOB_UID' not in job.env():
        yield 'without CPPRUN_JOB_UID jobs of one name share a run id'
    if 'CPPRUN_NODE_NAME' not in job.env():
        yield 'without CPPRUN_NODE_NAME faults of a machine count for its pod'


def arguments(job):
    return [*job.container['command'], *job.container.get('args', [])]


def flag_faults(job, flags):
    command = job.container['command']
    if command[0] != 'cpprun':
        yield 'the command is not cpprun'
    for word in command[1:]:
        if word.split('=')[0] not in flags:
            yield f'cpprun has no flag {word}'
    if not job.container.get('args') or job.container['args'][0].startswith('-'):
        if not job.trainer_env:  # a TrainJob has the arguments
            yield 'args does not begin with the script'


def service_faults(service, job):
    """A headless Service that gives the pods of `job` their names."""
    spec = service['spec']
    if spec.get('clusterIP') != 'None':
        yield 'the Service is not headless'
    if service['metadata']['name'] != job.domain:
        yield f'the pods have subdomain {job.domain}, not {service["metadata"]["name"]}'
    labels = job.spec['template'].get('metadata', {}).get('labels', {})
    if not spec['selector'].items() <= labels.items():
        yield 'the Service does not select the pods'
    if not spec.get('publishNotReadyAddresses'):
        yield 'pods that are not ready have no names'
    ports = {port['name']: port['containerPort'] for port in job.container['ports']}
    for port in spec['ports']:
        if ports.get(port['targetPort']) != port['port']:
            yield f'port {port["port"]} of the Service is none of the pods'
