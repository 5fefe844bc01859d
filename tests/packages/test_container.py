"""The container file: built by buildah without a registry or a daemon, and its image used.

The test makes debian:12-slim from this machine's package sources.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest
from launches import BIN, ROOT, skip_unless_built

BASE = 'docker.io/library/debian:12-slim'
MISSING = [name for name in ('buildah', 'mmdebstrap') if shutil.which(name) is None]
# Tools and files of compiling, linking and building.
TOOLS = (r'(\w+-linux-gnu-)?(cc|c\+\+|gcc|g\+\+|cpp|clang|ld|as)(-\d+)?|cc1plus|'
         r'make|cmake|ninja|.*\.[ao]')
ADDED_MB_MAX = 40
# As the first process of a PID namespace, as in a pod.
INSIDE = """
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
root=$1
shift
exec chroot "$root" "$@"
"""


def run(*command, code=0, seconds=300, **options):
    done = subprocess.run(
        [str(word) for word in command], timeout=seconds, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False, **options,
    )  # fmt: skip
    assert done.returncode == code, done.stdout[-4000:]
    return done.stdout


def make_base(folder):
    """A small Debian, as an archive, with this machine's sources and settings of apt."""
    apt = pathlib.Path('/etc/apt')
    places = [*apt.glob('sources.list'), *apt.glob('sources.list.d/*.list'),
              *apt.glob('sources.list.d/*.sources')]
    sources = [path for path in places if re.search('^[^#]*bookworm', path.read_text(), re.M)]
    settings = re.findall(r'^Acquire::.*', run('apt-config', 'dump'), re.M)
    (folder / 'apt.conf').write_text('\n'.join(settings) + '\n')
    run('mmdebstrap', '-q', '--variant=minbase', f'--aptopt={folder}/apt.conf',
        '--dpkgopt=force-unsafe-io', 'bookworm', folder / 'base.tar', *sources, seconds=600)
    return folder / 'base.tar'


@pytest.fixture(scope='module')
def buildah():
    """Calls buildah with a separate store, which is removed at the end."""
    skip_unless_built()
    if MISSING:
        pytest.skip(f'{" and ".join(MISSING)} is missing: tools/deps.sh --container')
    if os.geteuid() != 0:
        pytest.skip('chroots need root')
    folder = pathlib.Path(tempfile.mkdtemp(prefix='cpprun-container-'))
    env = {**os.environ, 'BUILDAH_ISOLATION': 'chroot', 'TMPDIR': str(folder)}
    store = ('--root', folder / 'root', '--runroot', folder / 'run')

    def call(*args, **options):
        return run('buildah', *store, *args, env=env, **options).strip()

    call.folder = folder
    try:
        yield call
        call('rm', '--all')
    finally:
        shutil.rmtree(folder)


@pytest.fixture(scope='module')
def image(buildah):
    """Built with the container file itself, from the packages that CPack makes."""
    empty = buildah('from', 'scratch')
    buildah('add', empty, make_base(buildah.folder), '/')
    buildah('commit', '--quiet', '--rm', empty, BASE)
    packages = buildah.folder / 'packages'
    run('cpack', '--config', BIN.parent / 'CPackConfig.cmake', '-B', packages, cwd=buildah.folder)
    buildah('bud', '--quiet', '--pull-never', '--network=none', '-f',
            ROOT / 'packaging/container/Containerfile', '-t', 'cpprun', packages)
    return json.loads(buildah('inspect', '--type', 'image', 'cpprun'))


@pytest.fixture(scope='module')
def root(buildah, image):
    """The file system of a container of it."""
    return pathlib.Path(buildah('mount', buildah('from', '--pull-never', 'cpprun')))


@pytest.fixture(scope='module')
def start(root, image):
    """Runs a command line in the container, with the image's environment only."""
    config = image['OCIv1']['config']
    env = dict(arg.split('=', 1) for arg in config.get('Env', []))
    env = {'PATH': '/usr/sbin:/usr/bin:/sbin:/bin', **env}
    names = ('unshare', '--pid', '--fork', '--kill-child', '--mount', '--propagation', 'private')

    def call(*args, entrypoint=config['Entrypoint'], **options):
        return run(*names, 'bash', '-euc', INSIDE, 'bash', root, *entrypoint, *args,
                   env=env, **options)

    return call


def test_entry_point_is_cpprun_and_prints_the_version(start):
    (version,) = re.findall(r'project\(cpprun VERSION (\S+)', (ROOT / 'CMakeLists.txt').read_text())
    assert start('--version') == f'cpprun {version}\n'
    assert start('cpprunctl', '--version', entrypoint=()) == f'cpprunctl {version}\n'


def test_runs_workers_as_the_first_process(start):
    output = start('--standalone', '--nproc-per-node=2', '--no-python', 'sh', '-c',
                   'echo here $RANK of $WORLD_SIZE under $PPID')
    assert sorted(re.findall(r'^here (\d) of 2 under 1$', output, re.M)) == ['0', '1'], output


def test_reaps_orphans_and_reports_exit_codes(start):
    """The second daemon ends as a child of the first process, which must reap it."""
    worker = """
(setsid sh -c 'echo $$ >/tmp/left; exit 3' &)
while [ ! -s /tmp/left ] || [ -e /proc/$(cat /tmp/left) ]; do sleep 0.01; done
exit 7
"""
    output = start('--standalone', '--no-python', 'sh', '-c', worker, code=1)
    assert 'exited with code 7' in output


def test_image_contains_no_compiler(root):
    found = [
        pathlib.Path(folder) / name
        for folder, _, names in os.walk(root / 'usr')
        for name in names
        if re.fullmatch(TOOLS, name)
    ]
    assert not found
    assert not list((root / 'usr/include').iterdir())
    assert (root / 'mnt').is_dir() and not (root / 'packages').exists()


def test_image_is_small(buildah, root, record_property):
    """As large as the base Debian plus the programs."""
    base = buildah('mount', buildah('from', '--pull-never', BASE))
    whole, below = (int(run('du', '-sb', folder).split()[0]) / 1e6 for folder in (root, base))
    print(f'{whole:.0f} MB, of these {whole - below:.1f} are cpprun')
    record_property('megabytes', f'{whole:.0f}, of these {whole - below:.1f} are cpprun')
    assert 0 < whole - below < ADDED_MB_MAX
