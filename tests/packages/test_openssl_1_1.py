"""TLS with libssl.so.1.1, which machines older than Debian 12 and Ubuntu 22.04 have. It comes from
a wheel that bundles it.
"""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
from launches import ROOT

WHEEL = 'psycopg2-binary==2.9.3'  # with OpenSSL 1.1.1l
PLATFORM = 'manylinux_2_17_x86_64'
TESTS = ROOT / 'build' / 'check' / 'tests'


@pytest.fixture(scope='module')
def libraries(tmp_path_factory):
    """A folder in which the loader finds OpenSSL 1.1 and, as libssl.so.3, no library."""
    folder = tmp_path_factory.mktemp('openssl')
    done = subprocess.run(
        [sys.executable, '-m', 'pip', 'download', '-q', '--disable-pip-version-check', '--no-deps',
         '--only-binary=:all:', '--python-version=39', f'--platform={PLATFORM}',
         f'--dest={folder}', WHEEL],
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    if done.returncode != 0:
        pytest.skip(f'no wheel with OpenSSL 1.1: {done.stderr[-300:]}')
    with zipfile.ZipFile(next(folder.glob('*.whl'))) as wheel:
        for name in wheel.namelist():
            path = pathlib.PurePath(name)
            if path.name.startswith('libcrypto'):
                (folder / path.name).write_bytes(wheel.read(name))
            elif path.name.startswith('libssl'):
                (folder / 'libssl.so.1.1').write_bytes(wheel.read(name))
    (folder / 'libssl.so.3').write_text('no library')
    return folder


@pytest.mark.parametrize('program, tests', [
    ('unit_tests', 'JobTls.*'),
    ('integration_tests', 'SnapshotsOverTls.*'),
])
def test_tls_works_with_openssl_1_1(libraries, program, tests):
    if not (TESTS / program).exists():
        pytest.skip(f'{program} is not built')
    done = subprocess.run(
        [TESTS / program, f'--gtest_filter={tests}'], capture_output=True, text=True, timeout=600,
        env={**os.environ, 'LD_LIBRARY_PATH': str(libraries), 'LD_DEBUG': 'libs'}, check=False,
    )  # fmt: skip
    shown = [line for line in done.stdout.splitlines() if '[' in line or 'ailure' in line]
    assert done.returncode == 0, shown
    assert 'calling init: ' + str(libraries / 'libssl.so.1.1') in done.stderr
    assert '[  PASSED  ]' in done.stdout
