"""A real Slurm of several nodes on one Debian machine, for tests. Needs root.

Each node has a host name, an address, processes and a /tmp of its own, by namespaces. The packages
are downloaded and unpacked below one folder; nothing is installed. All processes descend from one
process, so its end is the end of the lab. The program runs itself inside the namespaces:
`slurm_lab.py control|node|boot FOLDER ...`.
"""
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import time

PACKAGES = ['slurmctld', 'slurmd', 'slurm-client', 'munge']
NEEDED = ['apt-get', 'dpkg', 'unshare', 'nsenter', 'ip', 'mount']
NETWORK = '10.76.0'
UNSHARE = ['unshare', '--mount', '--net', '--uts', '--ipc', '--pid', '--fork', '--kill-child',
           '--propagation', 'private', '/usr/bin/python3']
SLOW = 300  # seconds until a lab must be up, on a machine ten times slower
LOST_AFTER = 20  # seconds without an answer of its slurmd, until Slurm takes a node for lost


def remove_cgroup(top):
    """Of a lab that ends: a cgroup can be removed when its processes are gone."""
    until = time.monotonic() + SLOW
    while top.exists():
        for folder, _, _ in os.walk(top, topdown=False):
            try:
                os.rmdir(folder)
            except OSError:
                assert time.monotonic() < until, folder
                time.sleep(0.05)


def call(*command, **options):
    return subprocess.run([str(part) for part in command], check=True, **options)


def first_child(pid):
    return pathlib.Path(f'/proc/{pid}/task/{pid}/children').read_text().split()[0]


class Unavailable(Exception):
    """Why there can be no lab here."""


def fetch(root, packages=PACKAGES, cache='packages'):
    """Unpacks the packages and those that they need into `root`, once."""
    if (root / 'complete').exists():
        return
    cache = root.parent / cache
    shutil.rmtree(root, ignore_errors=True)
    (cache / 'partial').mkdir(parents=True, exist_ok=True)
    root.mkdir(parents=True)
    command = ['apt-get', '-qq', '-y', '--no-install-recommends', '--download-only', '--reinstall',
               '-o', 'Debug::NoLocking=1', '-o', 'APT::Sandbox::User=root',
               '-o', f'Dir::Cache::archives={cache}', 'install', *packages]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SLOW)
    if done.returncode != 0:
        why = done.stderr.strip()[-300:]
        raise Unavailable(f'{packages[0]} cannot be downloaded: {why}')
    for package in cache.glob('*.deb'):
        call('dpkg', '-x', package, root)
    # As update-alternatives would do.
    for program in [*root.glob('usr/bin/*-wlm'), *root.glob('usr/sbin/*-wlm')]:
        program.with_name(program.name.removesuffix('-wlm')).symlink_to(program.name)
    (root / 'complete').touch()


CONF = """\
ClusterName=lab
SlurmctldHost=ctl
AuthType=auth/munge
AuthInfo=socket=/run/munge/socket,cred_expire=5
CredType=cred/munge
SlurmUser=root
SlurmdUser=root
StateSaveLocation={state}
SlurmctldPidFile=/run/slurm-lab/ctl.pid
SlurmdPidFile=/run/slurm-lab/%n.pid
SlurmdSpoolDir=/run/slurm-lab/%n
SlurmctldLogFile={state}/slurmctld.log
SlurmdLogFile={state}/%n.log
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters={consumed}
ProctrackType=proctrack/linuxproc
TaskPlugin={task}
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout={lost_after}
KillWait=20
InactiveLimit=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
JobRequeue=1
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=1
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
GresTypes=gpu
NodeName=n[1-{nodes}] CPUs=4 RealMemory=1000 Gres=gpu:2 State=UNKNOWN
PartitionName=main Nodes=n[1-{nodes}] Default=YES PriorityTier=1 GraceTime=60 PreemptMode=REQUEUE
PartitionName=quick Nodes=n[1-{nodes}] PriorityTier=1 GraceTime=0 PreemptMode=REQUEUE
PartitionName=urgent Nodes=n[1-{nodes}] PriorityTier=10 PreemptMode=OFF
"""


GPUS = '/run/slurm-lab/gpu'  # and a number: empty files in place of devices
MUNGED = ['munged', '--force', '--socket=/run/munge/socket', '--pid-file=/run/munge/pid',
          '--log-file=/run/munge/log', '--seed-file=/run/munge/seed']


# The only controller that the lab uses, in the hierarchy of version 1.
MEMORY = pathlib.Path('/sys/fs/cgroup/memory')
CGROUP_CONF = """\
CgroupAutomount=no
CgroupMountpoint=/sys/fs/cgroup
CgroupPlugin=cgroup/v1
ConstrainRAMSpace=yes
"""


def cgroup_of(folder):
    return MEMORY / f'cpprun-{folder.name}'


def limits_memory(folder):
    return (folder / 'etc' / 'slurm' / 'cgroup.conf').exists()


def write_files(folder, nodes, has_memory_limit):
    etc = folder / 'etc'
    state = folder / 'state'
    (etc / 'slurm').mkdir(parents=True)
    state.mkdir()
    (etc / 'slurm' / 'slurm.conf').write_text(CONF.format(
        state=state, nodes=nodes, lost_after=LOST_AFTER,
        task='task/cgroup' if has_memory_limit else 'task/none',
        consumed='CR_CPU_Memory' if has_memory_limit else 'CR_CPU'))
    if has_memory_limit:
        (etc / 'slurm' / 'cgroup.conf').write_text(CGROUP_CONF)
    (etc / 'slurm' / 'gres.conf').write_text(f'AutoDetect=off\nName=gpu File={GPUS}[0-1]\n')
    addresses = [f'{NETWORK}.{i} n{i}' for i in range(1, nodes + 1)]
    hosts = ['127.0.0.1 localhost', f'{NETWORK}.250 ctl', *addresses]
    (etc / 'hosts').write_text('\n'.join(hosts) + '\n')
    key = folder / 'munge.key'
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))


class SlurmLab:
    """`folder` is the lab's own and is removed at the end; `root` keeps the packages.
    `has_memory_limit`: a step has the memory of its --mem, by a cgroup."""

    def __init__(self, folder, root, nodes=2, has_memory_limit=False):
        self.folder = folder
        self.nodes = nodes
        if has_memory_limit and not (MEMORY / 'memory.limit_in_bytes').exists():
            raise Unavailable(f'no memory controller of cgroup version 1 at {MEMORY}')
        fetch(root)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        write_files(folder, nodes, has_memory_limit)
        inside = [*UNSHARE, __file__, 'control', str(folder), str(root), str(nodes)]
        self.log = open(folder / 'lab.log', 'w')
        self.process = subprocess.Popen(inside, stdin=subprocess.DEVNULL, stdout=self.log,
                                        stderr=self.log)
        try:
            self.wait(lambda: (folder / 'up').exists(), 'the lab starts')
            self.pid = int(first_child(self.process.pid))
            self.wait(self.is_idle, 'all nodes are idle')
        except BaseException:
            self.stop()
            raise

    def is_idle(self):
        idle = self.ask('sinfo', '-h', '-N', '-p', 'main', '-t', 'idle', '-o', '%N')
        return len(idle.split()) == self.nodes

    def wait(self, is_so, what):
        until = time.monotonic() + SLOW
        while not is_so():
            if self.process.poll() is not None or time.monotonic() > until:
                log = (self.folder / 'lab.log').read_text()[-2000:]
                raise AssertionError(f'{what}: not so; {log}')
            time.sleep(0.1)

    def command(self, *command):
        """The command line that runs `command` on the login host."""
        return ['nsenter', '-t', str(self.pid), '-m', '-n', '-u', '-i', '-p', '--',
                'env', '-i', 'PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin',
                'HOME=/root', *[str(part) for part in command]]

    def run(self, *command, check=True):
        return subprocess.run(self.command(*command), capture_output=True, text=True, check=check,
                              timeout=SLOW, stdin=subprocess.DEVNULL, cwd=self.folder)

    def ask(self, *command):
        return self.run(*command, check=False).stdout

    def start(self, *command):
        return subprocess.Popen(self.command(*command), stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                cwd=self.folder)

    def job(self, number):
        """The fields of `scontrol show job`."""
        fields = self.ask('scontrol', 'show', 'job', number).split()
        return dict(field.split('=', 1) for field in fields if '=' in field)

    def lose(self, name):
        """Ends a node with all its processes, as a power loss does."""
        for pid in filter(str.isdigit, os.listdir('/proc')):
            try:
                args = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes().split(b'\0')
            except OSError:
                continue
            number = name.removeprefix('n').encode()
            if args[2:5] == [b'node', bytes(self.folder), number]:
                os.kill(int(pid), signal.SIGKILL)

    def unplug(self, name):
        """Cuts a node off: no packet leaves it any more, its processes live, without a notice."""
        self.run('ip', 'link', 'set', name, 'down')

    def plug(self, name):
        self.run('ip', 'link', 'set', name, 'up')

    def boot(self, name):
        """Starts a node that was lost."""
        self.run('python3', __file__, 'boot', self.folder, name.removeprefix('n'))

    def stop_controller(self):
        self.run('sh', '-c', 'kill $(cat /run/slurm-lab/ctl.pid)')
        self.wait(lambda: 'slurmctld' not in self.ask('ps', '-eo', 'comm'), 'slurmctld ends')

    def start_controller(self):
        self.run('slurmctld')
        self.wait(lambda: 'UP' in self.ask('scontrol', 'ping'), 'slurmctld answers')

    def stop_munge(self):
        self.run('sh', '-c', 'kill $(cat /run/munge/pid)')
        self.wait(lambda: 'munged' not in self.ask('ps', '-eo', 'comm'), 'munged ends')

    def start_munge(self):
        self.run(*MUNGED, f'--key-file={self.folder}/munge.key')

    def stop(self):
        self.process.kill()  # --kill-child ends process 1 of the lab, and the kernel all others
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        remove_cgroup(cgroup_of(self.folder))


# ---------------------------------------------------------------- inside of the namespaces

def overlay(name, root):
    upper = pathlib.Path('/run/overlay') / name
    work = pathlib.Path('/run/overlay') / (name + '.work')
    upper.mkdir(parents=True)
    work.mkdir()
    layers = f'lowerdir={root}/{name}:/{name},upperdir={upper},workdir={work}'
    call('mount', '-t', 'overlay', '-o', layers, 'overlay', '/' + name)


def control(folder, root, nodes):
    """Process 1 of the lab."""
    call('mount', '-t', 'proc', 'proc', '/proc')
    call('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/run')
    for name in ('etc', 'usr', 'var'):
        if (root / name).is_dir():
            overlay(name, root)
    if (root / 'lib').is_dir():  # packages from before the merged /usr
        call('cp', '-a', f'{root}/lib/.', '/usr/lib/')
    call('cp', '-a', f'{folder}/etc/.', '/etc/')
    for path in ('/run/slurm-lab', '/run/munge'):
        os.makedirs(path)
    call('hostname', 'ctl')
    call('ip', 'link', 'set', 'lo', 'up')
    call('ip', 'link', 'add', 'name', 'br0', 'type', 'bridge', 'forward_delay', '0')
    call('ip', 'addr', 'add', f'{NETWORK}.250/24', 'dev', 'br0')
    call('ip', 'link', 'set', 'br0', 'up')
    for number in range(2):
        pathlib.Path(f'{GPUS}{number}').touch()
    call(*MUNGED, f'--key-file={folder}/munge.key')
    subprocess.Popen(['slurmctld', '-D'], stdout=subprocess.DEVNULL)
    for number in range(1, nodes + 1):
        start_node(folder, number)
    (folder / 'up').touch()
    while True:  # process 1 reaps what is left to it
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


def start_node(folder, number):
    ends = os.pipe()
    inside = [*UNSHARE, __file__, 'node', str(folder), str(number), str(ends[1])]
    if limits_memory(folder):
        own = cgroup_of(folder) / f'n{number}'
        own.mkdir(parents=True, exist_ok=True)
        inside = ['sh', '-c', f'echo $$ >{own}/cgroup.procs; exec "$@"', 'sh',
                  inside[0], '--cgroup', *inside[1:]]
    holder = subprocess.Popen(inside, pass_fds=[ends[1]])
    os.close(ends[1])
    os.read(ends[0], 1)  # its namespaces exist
    os.close(ends[0])
    name = f'n{number}'
    call('ip', 'link', 'add', name, 'type', 'veth', 'peer', 'name', 'eth0', 'netns',
         first_child(holder.pid))
    call('ip', 'link', 'set', name, 'master', 'br0', 'up')


def node(folder, number, ready):
    """Process 1 of a node."""
    call('mount', '-t', 'proc', 'proc', '/proc')
    call('hostname', f'n{number}')
    for path in ('/tmp', '/dev/shm'):
        call('mount', '-t', 'tmpfs', '-o', 'mode=1777', 'tmpfs', path)
    if limits_memory(folder):  # the node sees its own cgroup only
        call('mount', '-t', 'tmpfs', '-o', 'mode=755', 'tmpfs', '/sys/fs/cgroup')
        MEMORY.mkdir()
        call('mount', '-t', 'cgroup', '-o', 'memory', 'cgroup', MEMORY)
    call('ip', 'link', 'set', 'lo', 'up')
    os.write(ready, b'1')
    os.close(ready)
    until = time.monotonic() + SLOW
    while subprocess.run(['ip', 'link', 'show', 'eth0'], capture_output=True).returncode != 0:
        if time.monotonic() > until:
            sys.exit('no eth0')
        time.sleep(0.05)
    call('ip', 'addr', 'add', f'{NETWORK}.{number}/24', 'dev', 'eth0')
    call('ip', 'link', 'set', 'eth0', 'up')
    subprocess.Popen(['slurmd', '-D', '-N', f'n{number}'], stdout=subprocess.DEVNULL,
                     stderr=subprocess.DEVNULL)
    while True:
        try:
            os.wait()
        except ChildProcessError:
            time.sleep(1)


if __name__ == '__main__':
    role, place = sys.argv[1], pathlib.Path(sys.argv[2])
    if role == 'control':
        control(place, pathlib.Path(sys.argv[3]), int(sys.argv[4]))
    elif role == 'boot':
        start_node(place, int(sys.argv[3]))
    else:
        node(place, int(sys.argv[3]), int(sys.argv[4]))
