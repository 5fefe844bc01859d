"""tools/torch_tests.py with a small package and an apt-get of the test."""

import io
import os
import pathlib
import subprocess
import sys
import tarfile

import pytest
import torch_tests

TOOL = pathlib.Path(torch_tests.__file__)


def make_archive(path, files):
    with tarfile.open(path, 'w:xz') as tar:
        for name, (text, mode) in files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mode = len(text), mode
            tar.addfile(member, io.BytesIO(text))
    return path


def test_the_archive_of_the_machines_own_release_counts():
    rows = ('https://other.example/apt/ stable main\n'
            'http://mirror.example/debian/ bookworm-updates main\n'
            'http://mirror.example/debian/ bookworm contrib\n'
            'http://mirror.example/debian/ bookworm main\n')
    assert torch_tests.archive_of('bookworm', rows) == 'http://mirror.example/debian/'
    with pytest.raises(torch_tests.FetchError, match='no source of packages for trixie main'):
        torch_tests.archive_of('trixie', rows)


def test_only_the_tests_are_unpacked_and_scripts_stay_executable(tmp_path):
    script = 'test/distributed/launcher/bin/test_script.sh'
    path = make_archive(tmp_path / 'pytorch_2.6.0.orig.tar.xz', {
        'pytorch-2.6.0/test/distributed/test_store.py': (b'store', 0o644),
        f'pytorch-2.6.0/{script}': (b'#!/bin/sh\n', 0o755),
        'pytorch-2.6.0/test/distributed/test_c10d_gloo.py': (b'', 0o644),
        'pytorch-2.6.0/test/distributed/launcher/../../../../outside.py': (b'', 0o644),
        'pytorch-2.6.0/setup.py': (b'', 0o644)})
    folder = tmp_path / 'tests'
    assert torch_tests.unpack(path, folder) == 2
    found = sorted(str(file.relative_to(folder)) for file in folder.rglob('*') if file.is_file())
    assert found == [script, 'test/distributed/test_store.py']
    assert os.access(folder / script, os.X_OK)
    assert not (tmp_path / 'outside.py').exists()


# Answers `indextargets`; puts the archive named by ARCHIVE into the current folder.
APT = '''#!/bin/sh
case "$*" in
  *indextargets*) . /etc/os-release; echo "http://mirror.example/debian/ $VERSION_CODENAME main" ;;
  *update*) [ -z "$UPDATE_FAILS" ] || { echo "E: The mirror does not answer" >&2; exit 100; } ;;
  *source*) cp "$ARCHIVE" . ;;
esac
'''


@pytest.fixture
def fetch(tmp_path, monkeypatch):
    """Call it with variables: the exit code and the output. The second call is a second run."""
    (tmp_path / 'bin').mkdir()
    (tmp_path / 'bin/apt-get').write_text(APT)
    (tmp_path / 'bin/apt-get').chmod(0o755)
    monkeypatch.setenv('PATH', f'{tmp_path / "bin"}:{os.environ["PATH"]}')

    def run(**variables):
        done = subprocess.run([sys.executable, TOOL, tmp_path / 'tests'], text=True, timeout=100,
                              capture_output=True, env={**os.environ, **variables}, check=False)
        return done.returncode, done.stdout + done.stderr

    if not torch_tests.KEYRING.exists():
        pytest.skip(f'no {torch_tests.KEYRING}')
    return run


def test_a_second_run_fetches_nothing(fetch, tmp_path):
    files = {'pytorch-2.6.0/test/distributed/test_store.py': (b'store', 0o644)}
    path = make_archive(tmp_path / 'pytorch_2.6.0+dfsg.orig.tar.xz', files)
    code, text = fetch(ARCHIVE=str(path))
    assert code == 0 and 'pytorch_2.6.0+dfsg.orig.tar.xz' in text
    assert (tmp_path / 'tests/test/distributed/test_store.py').read_text() == 'store'
    assert 'mirror.example/debian/ trixie main' in (
        tmp_path / 'tests/apt/sources.list').read_text()
    assert fetch(UPDATE_FAILS='yes') == (0, '')


def test_a_failure_of_apt_is_reported(fetch):
    code, text = fetch(UPDATE_FAILS='yes')
    assert code == 1
    assert "no source package pytorch of Debian's trixie: apt-get update: E: The mirror" in text
    assert 'Traceback' not in text


def test_another_version_is_refused(fetch, tmp_path):
    code, text = fetch(ARCHIVE=str(make_archive(tmp_path / 'pytorch_2.9.0.orig.tar.xz', {})))
    assert code == 1 and 'wanted torch 2.6.x, Debian has pytorch_2.9.0.orig.tar.xz' in text


def test_a_package_without_the_tests_is_refused(fetch, tmp_path):
    code, text = fetch(ARCHIVE=str(make_archive(tmp_path / 'pytorch_2.6.0.orig.tar.xz', {})))
    assert code == 1 and 'has none of test/distributed/test_store.py' in text
