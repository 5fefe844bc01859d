"""Each arrow rule of tools/check_layers.py has a project that violates it."""

import check_layers
import pytest


def findings(root):
    return [f'{path}:{line}: {text}' for path, line, text in check_layers.check(root)]


def include(name):
    return f'#include {name}\n'


@pytest.mark.parametrize(
    'path, name',
    [
        ('common/a.cpp', '"common/b.hpp"'),
        ('common/log/log.cpp', '<spdlog/spdlog.h>'),
        ('rendezvous/server/a.cpp', '"rendezvous/coordinator/effects.hpp"'),
        ('rendezvous/server/a.cpp', '<boost/asio/read.hpp>'),
        ('agent/daemon/a.hpp', '"agent/core/core.hpp"'),
        ('launcher/cpprun/main.cpp', '"rendezvous/server/server.hpp"'),
        ('launcher/cpprunctl/main.cpp', '"rendezvous/server/server.hpp"'),
        ('launcher/options/a.cpp', '<CLI/CLI.hpp>'),
        ('worker_sdk/a.hpp', '<torch/torch.h>'),
        ('tests/unit/a_test.cpp', '"agent/core/core.hpp"'),
        ('tests/integration/a_test.cpp', '<boost/asio/read.hpp>'),
        ('bench/a.cpp', '"rendezvous/server/server.hpp"'),
        ('agent/process/a.cpp', '<unistd.h>'),
        ('agent/daemon/snapshots/a.cpp', '"snapshot_files/folders/b.hpp"'),
        ('launcher/cpprunctl/doctor/a.cpp', '"rendezvous/client/store/b.hpp"'),
        ('worker_sdk/cpprun/worker/a.cpp', '"rendezvous/client/store/b.hpp"'),
    ],
)
def test_allowed_includes(project, path, name):
    assert findings(project({path: include(name)})) == []


@pytest.mark.parametrize(
    'path, name',
    [
        ('common/a.cpp', '"agent/core/core.hpp"'),
        ('common/a.cpp', '"common/log/log.hpp"'),
        ('common/a.cpp', '<spdlog/spdlog.h>'),
        ('common/a.hpp', '<thread>'),
        ('rendezvous/protocol/a.cpp', '"rendezvous/coordinator/effects.hpp"'),
        ('rendezvous/coordinator/a.cpp', '<boost/asio/read.hpp>'),
        ('rendezvous/coordinator/a.cpp', '<mutex>'),
        ('rendezvous/coordinator/a.cpp', '<unistd.h>'),
        ('rendezvous/coordinator/a.cpp', '<sys/socket.h>'),
        ('agent/core/a.cpp', '<boost/process.hpp>'),
        ('agent/core/a.cpp', '"agent/process/process_host.hpp"'),
        ('agent/process/a.cpp', '"agent/core/config.hpp"'),
        ('agent/daemon/a.cpp', '"launcher/options/options.hpp"'),
        ('agent/daemon/a.cpp', '<torch/torch.h>'),
        ('rendezvous/client/a.cpp', '"rendezvous/server/server.hpp"'),
        ('launcher/cpprunctl/main.cpp', '"agent/daemon/agent_daemon.hpp"'),
        ('launcher/cpprun/main.cpp', '<boost/asio/io_context.hpp>'),
        ('worker_sdk/a.cpp', '<boost/asio/io_context.hpp>'),
        ('worker_sdk/a.cpp', '"rendezvous/client/client.hpp"'),
        ('tests/support/sim/a.cpp', '<boost/asio/io_context.hpp>'),
        ('tests/support/sim/a.cpp', '"agent/process/process_host.hpp"'),
        ('common/a.cpp', '"tests/support/fake.hpp"'),
        ('elsewhere/a.cpp', '<string>'),
        ('agent/process/a.cpp', '"cpprun/worker/arena.hpp"'),
        ('agent/daemon/a.cpp', '"worker_sdk/cpprun/worker/arena.hpp"'),
        ('launcher/cpprunctl/a.cpp', '"cpprun/worker/environment.hpp"'),
        ('launcher/cpprun/a.cpp', '"cpprun/snapshot/snapshot.hpp"'),
        ('snapshot_files/folders/a.cpp', '"cpprun/snapshot/snapshot.hpp"'),
        ('rendezvous/coordinator/a.cpp', '"rendezvous/observe/history.hpp"'),
    ],
)
def test_include_findings(project, path, name):
    found = findings(project({path: include(name)}))
    assert len(found) == 1 and found[0].startswith(f'{path}:1: ')


@pytest.mark.parametrize(
    'path, code',
    [
        ('common/a.cpp', 'auto t = std::chrono::steady_clock::now();'),
        ('rendezvous/coordinator/a.cpp', 'std::random_device device;'),
        ('agent/core/a.cpp', 'auto* p = std::getenv("X");'),
        ('agent/core/a.cpp', 'auto t = std::time(nullptr);'),
        ('agent/core/a.cpp', 'std::mutex m;'),
        (
            'rendezvous/coordinator/a.cpp',
            'std::unordered_map<int, int> peers_;\nvoid f() { for (auto& p : peers_) g(p); }',
        ),
        ('agent/core/a.cpp', 'std::unordered_set<int> ids;\nauto i = ids.begin();'),
    ],
)
def test_call_findings(project, path, code):
    assert len(findings(project({path: code + '\n'}))) == 1


@pytest.mark.parametrize(
    'path, code',
    [
        ('agent/process/a.cpp', 'auto t = std::chrono::steady_clock::now();'),
        ('agent/core/a.cpp', '// getenv( is not called here\nauto s = "::now()";'),
        ('rendezvous/coordinator/a.cpp', 'std::unordered_map<int, int> a;\nauto i = a.find(1);'),
        (
            'rendezvous/coordinator/a.cpp',
            'std::map<int, int> a;\nvoid f() { for (auto& p : a) g(p); }',
        ),
    ],
)
def test_allowed_calls(project, path, code):
    assert findings(project({path: code + '\n'})) == []


def test_asio_headers_stay_in_their_modules(project):
    files = {
        'agent/process/host.hpp': include('<boost/asio/io_context.hpp>'),
        'agent/daemon/agent_daemon.hpp': include('"agent/process/host.hpp"'),
        'agent/daemon/agent_daemon.cpp': include('"agent/daemon/agent_daemon.hpp"'),
    }
    assert findings(project(files)) == []
    daemon = include('"agent/daemon/agent_daemon.hpp"')
    found = findings(project({'launcher/cpprun/main.cpp': daemon}))
    assert len(found) == 1 and found[0].startswith('agent/process/host.hpp:1: ')
    assert 'launcher/cpprun/main.cpp' in found[0]


CMAKE = {
    'common/CMakeLists.txt': 'cpprun_module(cpprun_common SOURCES a.cpp)\n'
    'cpprun_module(cpprun_log SOURCES log/log.cpp LINKS cpprun_common)\n'
    'target_link_libraries(cpprun_log PRIVATE cpprun_spdlog)\n',
    'agent/core/CMakeLists.txt': 'cpprun_module(cpprun_agent_core SOURCES a.cpp\n'
    '  LINKS cpprun_common)\n',
    'agent/daemon/CMakeLists.txt': 'add_library(cpprun_agent_daemon INTERFACE)\n'
    'target_link_libraries(cpprun_agent_daemon INTERFACE cpprun_agent_core cpprun_asio)\n',
    'tests/CMakeLists.txt': 'add_executable(unit a.cpp)\ntarget_link_libraries(unit cpprun_log)\n',
}


def test_allowed_links(project):
    assert findings(project(CMAKE)) == []


@pytest.mark.parametrize(
    'path, line',
    [
        ('agent/core/CMakeLists.txt', 'target_link_libraries(cpprun_agent_core PUBLIC cpprun_log)'),
        ('agent/core/CMakeLists.txt', 'target_link_libraries(cpprun_agent_core cpprun_asio)'),
        ('common/CMakeLists.txt', 'cpprun_module(x SOURCES b.cpp LINKS cpprun_agent_core)'),
        ('common/CMakeLists.txt', 'target_link_libraries(cpprun_common PRIVATE cpprun_spdlog)'),
        ('agent/daemon/CMakeLists.txt', 'target_link_libraries(cpprun_agent_daemon PUBLIC torch)'),
        ('elsewhere/CMakeLists.txt', 'cpprun_module(x SOURCES b.cpp)\ntarget_link_libraries(x y)'),
    ],
)
def test_link_findings(project, path, line):
    files = dict(CMAKE)
    files[path] = files.get(path, '') + line + '\n'
    found = findings(project(files))
    assert found and all(text.startswith(path) for text in found)
