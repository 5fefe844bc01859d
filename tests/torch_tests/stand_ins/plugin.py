"""The pytest plugin of stage torch_tests: torch's own tests run with cpprun.

With --torch-itself they run with torch's own launcher and store instead: a test that fails then too
has no meaning for cpprun. A test that cannot show anything about cpprun is skipped with the reason
in not_applicable.py; one that passes without any use of cpprun fails.
"""

import multiprocessing.spawn
import os
import shutil
import time
import urllib.error
import urllib.request

import pytest
from launches import ROOT  # tests/support

import stand_ins
from stand_ins.not_applicable import MADE_BEFORE, reason_for, unmatched

ETCD = ROOT / 'build/etcd-server/usr/bin/etcd'


def wait_for_etcd(server, timeout=60):
    """For EtcdServer._wait_for_ready, which needs a client of etcd that torch does not install."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(f'http://{server.get_endpoint()}/version', timeout=5).close()
            return
        except (urllib.error.URLError, OSError):
            time.sleep(0.1)
    raise TimeoutError('etcd does not answer')


def install():
    """In this process, and in those that multiprocessing spawns."""
    from torch.distributed.elastic.rendezvous.etcd_server import EtcdServer

    import stand_ins.installed  # noqa: F401
    found = ETCD if ETCD.exists() else shutil.which('etcd')
    if found:
        os.environ['TORCHELASTIC_ETCD_BINARY_PATH'] = str(found)
    EtcdServer._wait_for_ready = wait_for_etcd
    prepare = multiprocessing.spawn.get_preparation_data

    def with_cpprun(name):
        data = prepare(name)
        data.pop('init_main_from_path', None)
        return {**data, 'init_main_from_name': 'stand_ins.installed'}
    multiprocessing.spawn.get_preparation_data = with_cpprun


def pytest_addoption(parser):
    parser.addoption('--torch-itself', action='store_true', help="use torch's own launcher, store")


def pytest_configure(config):
    if not config.getoption('torch_itself'):
        install()


def name_of(item):
    return '::'.join([item.path.name, *item.nodeid.split('::')[1:]])


def pytest_collection_modifyitems(config, items):
    if config.getoption('torch_itself'):
        return
    names = [name_of(item) for item in items]
    for name, item in zip(names, items):
        if reason := reason_for(name):
            item.add_marker(pytest.mark.skip(reason=reason))
    has_whole_files = not any('::' in word for word in config.args)
    if has_whole_files and (unknown := unmatched(names)):
        raise pytest.UsageError(f'not_applicable.py has names of no test: {unknown}')


@pytest.fixture(autouse=True)
def isolated(request):
    """Restores the environment and ends the servers that the test has started."""
    environment = dict(os.environ)
    used = len(stand_ins.uses)
    if request.config.getoption('torch_itself'):
        yield
    else:
        from stand_ins import stores
        before = list(stores.servers)
        yield
        for server in [server for server in stores.servers if server not in before]:
            server.stop()
    request.node.has_used_cpprun = len(stand_ins.uses) > used
    os.environ.clear()
    os.environ.update(environment)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item):
    outcome = yield
    report = outcome.get_result()
    if report.when == 'call':
        item.has_passed = report.passed
    elif report.when == 'teardown' and report.passed and is_without_cpprun(item):
        report.outcome = 'failed'
        report.longrepr = 'passed without cpprun: add it to not_applicable.py, with the reason'


def is_without_cpprun(item):
    if item.config.getoption('torch_itself') or name_of(item).startswith(MADE_BEFORE):
        return False
    return getattr(item, 'has_passed', False) and not item.has_used_cpprun


def pytest_sessionfinish(session):
    if not session.config.getoption('torch_itself'):
        from stand_ins import stores
        for server in list(stores.servers):
            server.stop()
