#!/usr/bin/env python3
"""Fetches torch's own tests into a folder: test/distributed of Debian 13's source package pytorch.

    tools/torch_tests.py FOLDER

apt downloads the package from the server from which this machine gets its own Debian packages, and
verifies Debian's signature. All files of apt are in FOLDER: the machine's lists stay as they are.
Fast if the tests are there.
"""

import os
import pathlib
import platform
import subprocess
import sys
import tarfile

SUITE = 'trixie'
VERSION = '2.6.'
KEYRING = pathlib.Path('/usr/share/keyrings/debian-archive-keyring.gpg')
PARTS = ('test/distributed/test_store.py', 'test/distributed/launcher/',
         'test/distributed/elastic/')
STAMP = 'version'
# A source package of a few hundred MiB over a slow line.
FETCH_SECONDS = 3600


class FetchError(Exception):
    """The tests cannot be fetched; the text has the reason."""


def run(what, command, **how):
    try:
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                              timeout=FETCH_SECONDS, check=False, **how)
    except OSError as error:
        raise FetchError(f'{what}: {error}') from error
    except subprocess.TimeoutExpired as error:
        raise FetchError(f'{what}: not within {FETCH_SECONDS} s') from error
    if done.returncode != 0:
        lines = (done.stderr or done.stdout).strip().splitlines()
        raise FetchError(f'{what}: ' + '\n'.join(lines[-10:]))
    return done.stdout


def archive_of(codename, rows):
    """The first server among rows of `SITE RELEASE COMPONENT` that has the machine's release."""
    for row in rows.splitlines():
        site, release, component = (row.split(' ') + ['', ''])[:3]
        if release == codename and component == 'main':
            return site
    raise FetchError(f'apt has no source of packages for {codename or "this release"} main')


def machines_archive():
    codename = platform.freedesktop_os_release().get('VERSION_CODENAME', '')
    rows = run('apt-get indextargets',
               ['apt-get', 'indextargets', '--no-release-info', '--format',
                '$(SITE) $(RELEASE) $(COMPONENT)', 'Created-By: Packages'])
    return archive_of(codename, rows)


def apt_options(folder):
    """A configuration of apt whose sources, lists and packages are all in the folder."""
    if not KEYRING.exists():
        raise FetchError(f'no {KEYRING}: install debian-archive-keyring')
    for name in ('state/lists/partial', 'cache/archives/partial', 'source'):
        (folder / 'apt' / name).mkdir(parents=True, exist_ok=True)
    sources = folder / 'apt/sources.list'
    sources.write_text(f'deb-src [signed-by={KEYRING}] {machines_archive()} {SUITE} main\n')
    options = {'Dir::State': folder / 'apt/state', 'Dir::Cache': folder / 'apt/cache',
               'Dir::Etc::sourcelist': sources, 'Dir::Etc::sourceparts': '/dev/null',
               'APT::Sandbox::User': 'root' if os.getuid() == 0 else ''}
    return [word for name, value in options.items() for word in ('-o', f'{name}={value}')]


def fetch_package(folder):
    """The package's archive of upstream files."""
    options = apt_options(folder)
    run('apt-get update', ['apt-get', *options, '-q', 'update', '--error-on=any'])
    source = folder / 'apt/source'
    run('apt-get source', ['apt-get', *options, '-q', 'source', '--download-only', 'pytorch'],
        cwd=source)
    found = sorted(source.glob('pytorch_*.orig.tar.*'))
    wanted = [path for path in found if path.name.startswith(f'pytorch_{VERSION}')]
    if len(wanted) != 1:
        names = ', '.join(path.name for path in found) or 'nothing'
        raise FetchError(f'wanted torch {VERSION}x, Debian has {names}')
    return wanted[0]


def unpack(archive, folder):
    """Extracts only PARTS. Returns the number of files."""
    count = 0
    with tarfile.open(archive, 'r|*') as tar:
        for member in tar:
            path = pathlib.PurePosixPath(*pathlib.PurePosixPath(member.name).parts[1:])
            if not member.isfile() or '..' in path.parts or not str(path).startswith(PARTS):
                continue
            target = folder / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(tar.extractfile(member).read())
            target.chmod(0o755 if member.mode & 0o100 else 0o644)
            count += 1
    return count


def main():
    folder = pathlib.Path(sys.argv[1]).resolve()
    stamp = folder / STAMP
    if stamp.exists():
        return
    try:
        archive = fetch_package(folder)
        if unpack(archive, folder) == 0:
            raise FetchError(f'{archive.name} has none of {", ".join(PARTS)}')
    except FetchError as error:
        sys.exit(f"torch_tests: no source package pytorch of Debian's {SUITE}: {error}")
    stamp.write_text(archive.name + '\n')
    archive.unlink()
    print(f'torch_tests: {archive.name} in {folder}')


if __name__ == '__main__':
    main()
