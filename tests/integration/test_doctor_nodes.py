"""cpprunctl doctor on several nodes at once: hosts in network namespaces, one real fault each."""

import json
import os
import subprocess

import pytest
from launches import BIN

from cpprunctl import refusal_of
from nodes import cluster  # noqa: F401
from nodes_net import namespaces, net  # noqa: F401

PORT = 29411
CHECKS = ['nodes', 'versions', 'reach', 'names', 'clocks', 'latency', 'speed']


def doctors(hosts, count, *args, env=None, nodes=None, wait=20):
    """Runs the doctor on each host. Returns the first one's findings by name, and the exit codes.
    """
    base = {**os.environ, 'LOGLEVEL': 'ERROR'}
    running = []
    for i in range(count if nodes is None else nodes):
        command = [*hosts.wrap(i), BIN / 'cpprunctl', 'doctor', '--json', f'--nnodes={count}',
                   f'--endpoint={hosts.addr(0)}:{PORT}', f'--wait={wait}', *args]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env={**base, **(env or {}).get(i, {})}))
    outputs = [process.communicate(timeout=100) for process in running]
    print(outputs)  # shown by a test that fails
    codes = [process.returncode for process in running]
    findings = [json.loads(out) for out, _ in outputs if out]
    assert findings, outputs
    return {f['check']: f for f in findings[0]}, codes


def name_hosts(hosts, count):
    """All hosts share a name, as namespaces do: it resolves to all of them."""
    name = os.uname().nodename
    for i in range(count):
        lines = ''.join(f'{hosts.addr(j)} {name}\n' for j in range(count))
        hosts.etc(i, 'hosts', '127.0.0.1 localhost\n' + lines)


def test_three_nodes_check_each_other(net):
    hosts = net(3)
    name_hosts(hosts, 3)
    found, codes = doctors(hosts, 3)
    assert list(found) == CHECKS and codes == [0, 0, 0], found
    assert found['reach']['text'] == '6 ways between nodes are open'
    assert all(found[check]['level'] == 'ok' for check in ('nodes', 'versions', 'names', 'clocks'))


def test_a_missing_node_is_counted(net):
    hosts = net(2)
    found, codes = doctors(hosts, 3, nodes=2, wait=3)
    assert '2 of 3 came within 3 s' in found['nodes']['text'] and codes == [1, 1]


def test_nodes_that_cannot_reach_each_other_are_named(net):
    """No packets pass between 1 and 2; both reach 0."""
    hosts = net(3)
    name_hosts(hosts, 3)
    subprocess.run([*hosts.wrap(1), 'ip', 'route', 'add', 'blackhole', f'{hosts.addr(2)}/32'],
                   check=True)
    found, codes = doctors(hosts, 3)
    assert codes == [1, 1, 1] and found['reach']['level'] == 'problem'
    assert found['reach']['text'].count(' to ') == 2, found['reach']
    assert hosts.addr(2) in found['reach']['text'] and hosts.addr(1) in found['reach']['text']


def test_taken_port_is_reported(net):
    hosts = net(2)
    done = subprocess.run(
        [*hosts.wrap(0), 'python3', '-c',
         'import socket, subprocess, sys; s = socket.create_server(("0.0.0.0", 4711));'
         ' sys.exit(subprocess.run(sys.argv[1:]).returncode)', BIN / 'cpprunctl', 'doctor',
         '--nnodes=2', f'--endpoint={hosts.addr(0)}:{PORT}', '--port=4711'],
        capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and 'choose another port' in done.stderr
    assert 'port: 4711, host: (all), reason: Address already in use' in done.stderr


def test_a_clock_that_is_ahead_is_reported(net, tmp_path):
    """A library preloaded before libc sets one node's clock 5 s ahead."""
    source = tmp_path / 'ahead.c'
    source.write_text('''
#define _GNU_SOURCE
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
int clock_gettime(clockid_t clock, struct timespec *t) {
  long got = syscall(SYS_clock_gettime, clock, t);
  if (got == 0 && clock == CLOCK_REALTIME) t->tv_sec += 5;
  return (int)got;
}
''')
    library = tmp_path / 'ahead.so'
    subprocess.run(['cc', '-shared', '-fPIC', '-o', library, source], check=True)
    hosts = net(2)
    name_hosts(hosts, 2)
    found, codes = doctors(hosts, 2, env={1: {'LD_PRELOAD': str(library)}})
    assert found['clocks']['level'] == 'warning' and '5.0 s' in found['clocks']['text'], found
    assert codes == [0, 0], 'jobs run all the same'


def test_minimum_requirements_are_checked(net):
    hosts = net(2)
    name_hosts(hosts, 2)
    found, codes = doctors(hosts, 2, '--min-gbps=100000', '--max-latency-ms=0.001')
    assert found['speed']['level'] == found['latency']['level'] == 'warning' and codes == [0, 0]
    assert 'Gbit/s' in found['speed']['text']


def test_name_of_another_host(net):
    hosts = net(2)
    name = os.uname().nodename
    hosts.etc(0, 'hosts', f'127.0.0.1 localhost\n10.99.0.1 {name}\n')
    hosts.etc(1, 'hosts', f'127.0.0.1 localhost\n{hosts.addr(0)} {name}\n')
    found, _ = doctors(hosts, 2)
    assert found['names']['level'] == 'note' and '10.99.0.1' in found['names']['text']


def test_nodes_need_a_rendezvous_endpoint():
    assert '--endpoint' in refusal_of('doctor', '--nnodes=2')


@pytest.mark.parametrize('sent', [b'', b'cpprun-doctor-1 wrong echo\n' + b'x' * 64])
def test_foreign_connections_do_no_harm(net, sent):
    hosts = net(2)
    name_hosts(hosts, 2)
    code = ('import socket, sys, time\n'
            'end = time.monotonic() + 20\n'
            'while time.monotonic() < end:\n'
            '  try: s = socket.create_connection((sys.argv[1], 4712), 1); break\n'
            '  except OSError: time.sleep(0.01)\n'
            f's.sendall({sent!r}); s.close()\n')
    other = subprocess.Popen([*hosts.wrap(1), 'python3', '-c', code, hosts.addr(0)])
    try:
        found, codes = doctors(hosts, 2, '--port=4712')
        assert codes == [0, 0] and found['reach']['level'] == 'ok', found
    finally:
        other.wait(30)
