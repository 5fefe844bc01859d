"""Pods of a Job without a cluster, for tests: namespaces on one bridge. Needs root.

A pod has the settings of the manifest and what the kubelet adds: host name, address, processes,
memory limit, /etc/hosts, /etc/resolv.conf, volumes, user, environment. A name server knows the
names of the headless Service. JobController does what the Job controller does with pods that end.
All processes descend from one process, so its end is the end of the lab. The program runs itself
inside the namespaces: `pod_lab.py dns|pod FILE`.
"""
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
import uuid

NEEDED = ['ip', 'mount', 'nsenter', 'unshare']
NETWORK = '10.78.0'
DNS = f'{NETWORK}.250'
DOMAIN = 'default.svc.cluster.local'
NAMESPACES = ['--net', '--mount', '--pid', '--uts', '--ipc', '--propagation', 'private']
UNSHARE = ['unshare', *NAMESPACES, '--fork', '--kill-child']
PYTHON = '/usr/bin/python3'
MEMORY = pathlib.Path('/sys/fs/cgroup/memory')
DELETION_DELAY = 30.0  # after success; a controller needs a second, and slow pods end by themselves
NAME_SECONDS = 5.0  # for which CoreDNS keeps the name of a pod that has ended
SLOW = 300  # seconds that bound a wait, on a machine ten times slower


def call(*command):
    subprocess.run([str(part) for part in command], check=True, capture_output=True)


def first_child(pid):
    children = pathlib.Path(f'/proc/{pid}/task/{pid}/children')
    text = wait_for(children.read_text, f'a child of {pid}')
    return int(text.split()[0])


def wait_for(look, what, seconds=SLOW):
    until = time.monotonic() + seconds
    while not (seen := look()):
        assert time.monotonic() < until, what
        time.sleep(0.05)
    return seen


class PodLab:
    """`folder` is the lab's own and is removed at the end. `image`: path in the pod -> folder."""

    def __init__(self, folder, image):
        self.folder, self.image = folder, image
        self.number = 0
        self.names = {}
        self.pods = []
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.publish()
        self.log = open(folder / 'dns.log', 'w')
        command = [*UNSHARE, PYTHON, __file__, 'dns', str(folder / 'dns.json')]
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        try:
            wait_for((folder / 'dns.json.up').exists, 'the name server starts')
            self.pid = first_child(self.process.pid)
        except BaseException:
            self.stop()
            raise

    def publish(self):
        draft = self.folder / 'dns.json.new'
        draft.write_text(json.dumps(self.names))
        draft.rename(self.folder / 'dns.json')

    def inside(self, *command):
        """The command line that runs `command` beside the bridge."""
        return ['nsenter', '-t', str(self.pid), '-n', '-m', '-p', '--', *command]

    def start(self, pod):
        self.number += 1
        made = Pod(self, self.number, pod)
        self.pods.append(made)
        return made

    def stop(self):
        self.process.kill()  # --kill-child ends process 1 of the lab, and the kernel all others
        self.process.wait()
        self.log.close()
        for pod in self.pods:
            pod.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pod:
    """`facts`: host, subdomain, command, env, uid, gid, volumes (path -> folder), memory."""

    def __init__(self, lab, number, facts):
        self.lab, self.host = lab, facts['host']
        self.address = f'{NETWORK}.{number}'
        self.link = f'p{number}'
        self.name = f'{self.host}.{facts["subdomain"]}'
        self.output = lab.folder / f'{number}-{self.host}.log'
        self.memory = MEMORY / f'cpprun-lab-{os.getpid()}-{number}'
        self.is_killed = False
        place = lab.folder / f'pod-{number}'
        place.mkdir()
        facts = {**facts, 'address': self.address, 'place': str(place), 'image': lab.image,
                 'cgroup': self.limit_memory(facts.get('memory'))}
        (place / 'facts.json').write_text(json.dumps(facts))
        self.out = open(self.output, 'w')
        command = lab.inside(*UNSHARE, PYTHON, __file__, 'pod', str(place / 'facts.json'))
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=subprocess.STDOUT)
        wait_for((place / 'ready').exists, f'{self.host} has its namespaces')
        self.pid = first_child(first_child(self.process.pid))
        # As the pause container: the network outlives the container, whose peers see its end.
        self.network = os.open(f'/proc/{self.pid}/ns/net', os.O_RDONLY)
        bridge = ['nsenter', '-t', str(lab.pid), '-n', 'ip', 'link']
        call(*bridge, 'add', self.link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', self.pid)
        call(*bridge, 'set', self.link, 'master', 'br0', 'up')

    def limit_memory(self, limit):
        if limit is None:
            return None
        self.memory.mkdir()
        (self.memory / 'memory.limit_in_bytes').write_text(str(limit))
        return str(self.memory)

    def publish(self):
        self.lab.names[f'{self.name}.{DOMAIN}'] = self.address
        self.lab.publish()

    def withdraw(self):
        if self.lab.names.get(f'{self.name}.{DOMAIN}') == self.address:
            del self.lab.names[f'{self.name}.{DOMAIN}']
            self.lab.publish()

    def text(self):
        return self.output.read_text()

    def probe(self, path, port):
        """Whether the kubelet's HTTP request is answered with success."""
        ask = ('import sys, urllib.request as u;'
               f'sys.exit(u.urlopen("http://{self.address}:{port}{path}", timeout=5).status != 200)')
        done = subprocess.run(['nsenter', '-t', str(self.lab.pid), '-n', PYTHON, '-c', ask],
                              capture_output=True)
        return done.returncode == 0

    def send(self, number):
        if self.process.poll() is None:
            self.is_killed = number == signal.SIGKILL
            os.kill(self.pid, number)

    def vanish(self):
        """The machine is lost: no packet leaves it any more, and nobody is notified."""
        call('nsenter', '-t', self.lab.pid, '-n', 'ip', 'link', 'set', self.link, 'down')
        self.send(signal.SIGKILL)

    def code(self):
        """As the kubelet reports it; None: the container runs."""
        status = self.process.poll()
        if status is not None and self.is_killed:
            return 128 + signal.SIGKILL  # unshare cannot end by SIGKILL as its child did
        return status if status is None or status >= 0 else 128 - status

    def close(self):
        self.process.wait()
        os.close(self.network)
        self.out.close()
        if self.memory.exists():
            self.memory.rmdir()


def substituted(text, env):
    return re.sub(r'\$\((\w+)\)', lambda match: env.get(match[1], match[0]), text)


class JobController:
    """What the Job controller does: starts a pod for each index, and decides what its end means.

    `job` is an IndexedJob, `decide` the rules of its podFailurePolicy. `dns_delay`: seconds until
    the names of a pod are known; `start_delay`: until a successor starts. A pod's end by evict()
    counts as a disruption.
    """

    def __init__(self, lab, job, decide, dns_delay=0.0, start_delay=0.0, env=()):
        self.lab, self.job, self.decide = lab, job, decide
        self.dns_delay, self.start_delay, self.env = dns_delay, start_delay, dict(env)
        self.uid = str(uuid.uuid4())
        self.active, self.ended = {}, []
        self.waiting = []  # (time, pod) of names that are not known yet
        self.leaving = []  # (time, pod) of names that are still known
        self.pending = []  # (time, index) of successors
        self.failures, self.disrupted = {}, {}
        self.machines = 0  # each pod has one of its own
        self.reason = None  # of the Job's end: '' for success
        self.deletes_at = None
        self.kept = lab.folder / f'snapshots-{job.name}'
        self.kept.mkdir(exist_ok=True)
        os.chown(self.kept, 0, self.group)
        self.kept.chmod(0o2775)  # as fsGroup does
        self.secret = lab.folder / 'secret'
        if not self.secret.exists():
            self.secret.mkdir()
            key = self.secret / 'secret'
            key.write_text(uuid.uuid4().hex)
            os.chown(key, 0, self.group)
            key.chmod(0o440)

    @property
    def group(self):
        return self.job.pod['securityContext']['fsGroup']

    def environment(self, index):
        """What the manifest sets, and what the kubelet and the controllers add."""
        host = f'{self.job.name}-{index}'
        labels = {'batch.kubernetes.io/job-name': self.job.name,
                  'batch.kubernetes.io/controller-uid': self.uid,
                  'batch.kubernetes.io/job-completion-index': str(index)}
        fields = {f"metadata.labels['{name}']": value for name, value in labels.items()}
        self.machines += 1
        fields['spec.nodeName'] = f'machine-{self.machines}'
        env = {'PATH': '/image/bin:/usr/local/bin:/usr/bin:/bin', 'HOME': '/', 'HOSTNAME': host,
               'KUBERNETES_SERVICE_HOST': '10.96.0.1', 'KUBERNETES_SERVICE_PORT': '443'}
        for entry in self.job.container.get('env', []):
            path = entry.get('valueFrom', {}).get('fieldRef', {}).get('fieldPath', '')
            env[entry['name']] = fields[path] if path else entry['value']
        trainer = {name: str(index) if value is None else value
                   for name, value in self.job.trainer_env.items()}
        return {**env, **trainer, **self.env, 'JOB_COMPLETION_INDEX': str(index)}

    def volumes(self, env):
        kinds = {one['name']: one for one in self.job.pod['volumes']}
        mounted = {}
        for mount in self.job.container['volumeMounts']:
            kind = kinds[mount['name']]
            if 'persistentVolumeClaim' in kind:
                assert substituted(mount['subPathExpr'], env) == self.job.name
                mounted[mount['mountPath']] = str(self.kept)
            elif 'secret' in kind:
                mounted[mount['mountPath']] = str(self.secret)
            else:
                mounted[mount['mountPath']] = None  # memory
        return mounted

    def start(self, index):
        env = self.environment(index)
        command = [*self.job.container['command'], *self.job.container.get('args', [])]
        user = self.job.pod['securityContext']
        facts = {'host': f'{self.job.name}-{index}', 'subdomain': self.job.domain, 'env': env,
                 'command': [substituted(word, env) for word in command],
                 'uid': user['runAsUser'], 'gid': user['runAsGroup'], 'groups': [user['fsGroup']],
                 'volumes': self.volumes(env)}
        limit = self.job.container.get('resources', {}).get('limits', {}).get('memory')
        pod = self.lab.start({**facts, 'memory': limit})
        self.active[index] = pod
        self.waiting.append((time.monotonic() + self.dns_delay, pod))
        return pod

    def start_all(self, indexes=None):
        for index in indexes or range(self.job.spec['completions']):
            self.start(index)

    def evict(self, index):
        """The eviction API: a condition, SIGTERM, and SIGKILL when the grace is over."""
        pod = self.active[index]
        grace = self.job.pod['terminationGracePeriodSeconds']
        self.disrupted[pod] = time.monotonic() + grace
        pod.send(signal.SIGTERM)
        return pod

    def lose(self, index):
        """The machine is lost; later the controller deletes the pod, which is a disruption."""
        pod = self.active[index]
        self.disrupted[pod] = float('inf')
        pod.vanish()
        return pod

    def step(self):
        now = time.monotonic()
        for entry in [entry for entry in self.waiting if entry[0] <= now]:
            self.waiting.remove(entry)
            entry[1].publish()
        for entry in [entry for entry in self.leaving if entry[0] <= now]:
            self.leaving.remove(entry)
            entry[1].withdraw()
        for entry in [entry for entry in self.pending if entry[0] <= now]:
            self.pending.remove(entry)
            if self.reason is None:
                self.start(entry[1])
        if self.deletes_at is not None and now >= self.deletes_at:
            self.deletes_at = None
            for index in self.active:
                self.evict(index)
        for pod, until in self.disrupted.items():
            if now > until:
                pod.send(signal.SIGKILL)
        for index, pod in list(self.active.items()):
            if pod.code() is not None:
                self.on_end(index, pod)

    def on_end(self, index, pod):
        del self.active[index]
        self.leaving.append((time.monotonic() + NAME_SECONDS, pod))
        self.ended.append((index, pod.code()))
        if pod.code() == 0:
            done = sum(code == 0 for _, code in self.ended)
            rules = self.job.spec.get('successPolicy', {}).get('rules', [])
            if done >= min([rule['succeededCount'] for rule in rules],
                           default=self.job.spec['completions']):
                self.finish('')
            return
        action = self.decide(self.job, pod.code(), pod in self.disrupted)
        if action == 'FailJob':
            return self.finish('PodFailurePolicy')
        if action == 'Count':
            self.failures[index] = self.failures.get(index, 0) + 1
        limit = self.job.spec['backoffLimitPerIndex']
        failed = [one for one, count in self.failures.items() if count > limit]
        if len(failed) > self.job.spec['maxFailedIndexes']:
            return self.finish('MaxFailedIndexesExceeded')
        if self.reason is None and index not in failed:
            self.pending.append((time.monotonic() + self.start_delay, index))

    def finish(self, reason):
        """The Job is over: its other pods are deleted."""
        if self.reason is not None:
            return
        self.reason = reason
        self.deletes_at = time.monotonic() + (DELETION_DELAY if reason == '' else 0)

    def run(self, until, what):
        """Until `until` is true."""
        def look():
            self.step()
            return until()
        try:
            wait_for(look, what)
        except AssertionError as error:
            raise AssertionError(f'{error}\n{self.texts()}') from None

    def run_to_end(self):
        self.run(lambda: self.reason is not None and not self.active, 'the job ends')
        return self.reason

    def texts(self):
        return '\n'.join(f'--- {pod.host} {pod.address}, code {pod.code()}\n{pod.text()}'
                         for pod in self.lab.pods)


# ---------------------------------------------------------------- inside of the namespaces

def serve_names(path):
    """Process 1 of the lab: the bridge, and a name server for A records."""
    call('mount', '-t', 'proc', 'proc', '/proc')
    call('ip', 'link', 'set', 'lo', 'up')
    # With an address of its own: else it takes that of a port, and changes it when a pod goes.
    call('ip', 'link', 'add', 'name', 'br0', 'address', '02:00:0a:4e:00:fa', 'type', 'bridge',
         'forward_delay', '0')
    call('ip', 'addr', 'add', f'{DNS}/24', 'dev', 'br0')
    call('ip', 'link', 'set', 'br0', 'up')
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((DNS, 53))
    pathlib.Path(f'{path}.up').touch()
    while True:
        query, client = server.recvfrom(512)
        server.sendto(answer(query, json.loads(path.read_text())), client)


def answer(query, names):
    labels, at = [], 12
    while size := query[at]:
        labels.append(query[at + 1:at + 1 + size].decode())
        at += 1 + size
    question = query[12:at + 5]
    address = names.get('.'.join(labels).lower())
    wants_address = question[-4:-2] == b'\0\1'
    record = b''
    if address and wants_address:
        record = b'\xc0\x0c' + struct.pack('>HHIH', 1, 1, 5, 4) + socket.inet_aton(address)
    flags = 0x8580 if address else 0x8583  # NXDOMAIN
    return query[:2] + struct.pack('>HHHHH', flags, 1, bool(record), 0, 0) + question + record


def make_root(facts, root):
    """The root file system of the container: this machine's programs, the image, volumes."""
    call('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', root)
    for name in ('usr', 'bin', 'sbin', 'lib', 'lib64', 'etc', 'dev', 'sys'):
        source, target = pathlib.Path('/', name), root / name
        if source.is_symlink():
            target.symlink_to(os.readlink(source))
        elif source.is_dir():
            target.mkdir()
            call('mount', '--rbind', source, target)
    for name in ('proc', 'tmp', 'run'):
        (root / name).mkdir()
    call('mount', '-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', root / 'tmp')
    for path, source in {**facts['image'], **facts['volumes']}.items():
        target = root / path.lstrip('/')
        target.mkdir(parents=True, exist_ok=True)
        if source:
            call('mount', '--bind', source, target)
        else:
            call('mount', '-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', target)


def write_etc(facts, root, place):
    """What the kubelet writes."""
    full = f'{facts["host"]}.{facts["subdomain"]}.{DOMAIN}'
    texts = {'hosts': f'127.0.0.1\tlocalhost\n{facts["address"]}\t{full}\t{facts["host"]}\n',
             'hostname': facts['host'] + '\n',
             'resolv.conf': f'search {DOMAIN} svc.cluster.local cluster.local\n'
                            f'nameserver {DNS}\noptions ndots:5\n'}
    for name, text in texts.items():
        (place / name).write_text(text)
        call('mount', '--bind', place / name, root / 'etc' / name)


def pod(facts):
    """Becomes process 1 of a container."""
    place = pathlib.Path(facts['place'])
    if facts['cgroup']:
        pathlib.Path(facts['cgroup'], 'cgroup.procs').write_text(str(os.getpid()))
    call('mount', '-t', 'proc', 'proc', '/proc')
    call('hostname', facts['host'])
    call('ip', 'link', 'set', 'lo', 'up')
    (place / 'ready').touch()
    have_card = ['ip', 'link', 'show', 'eth0']
    wait_for(lambda: subprocess.run(have_card, capture_output=True).returncode == 0, 'eth0')
    call('ip', 'addr', 'add', f'{facts["address"]}/24', 'dev', 'eth0')
    call('ip', 'link', 'set', 'eth0', 'up')
    root = place / 'root'
    root.mkdir()
    make_root(facts, root)
    write_etc(facts, root, place)
    os.chroot(root)
    os.chdir('/image/work')
    call('mount', '-t', 'proc', 'proc', '/proc')
    os.setgroups(facts['groups'])
    os.setgid(facts['gid'])
    os.setuid(facts['uid'])
    os.execvpe(facts['command'][0], facts['command'], facts['env'])


if __name__ == '__main__':
    given = pathlib.Path(sys.argv[2])
    if sys.argv[1] == 'dns':
        serve_names(given)
    else:
        pod(json.loads(given.read_text()))
