"""Collectives of the SDK: equal to Python's, beyond Python's, and with failing ranks."""

import os
import signal
import subprocess
import time

import pytest
from launches import BIN, free_port

CASES = BIN / 'sdk_dist_cases'


class Alone:
    """Ranks without a launcher, so that the survivors keep running."""

    def __init__(self, n, name, *words):
        common = {'WORLD_SIZE': str(n), 'MASTER_ADDR': '127.0.0.1', 'OMP_NUM_THREADS': '1'}
        common['MASTER_PORT'] = str(free_port())
        self.ranks = [
            subprocess.Popen(
                [CASES, name, *words],
                env={**os.environ, **common, 'RANK': str(rank), 'LOCAL_RANK': str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for rank in range(n)
        ]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for rank in self.ranks:
            rank.kill()
            rank.communicate()

    def end(self, but=(), seconds=400):
        """Lines of all ranks but those, by topic; each must succeed in time."""
        lines = {}
        deadline = time.monotonic() + seconds
        for number, rank in enumerate(self.ranks):
            if number in but:
                continue
            out, err = rank.communicate(timeout=max(0.1, deadline - time.monotonic()))
            assert rank.returncode == 0, f'rank {number}: {rank.returncode}\n{out}\n{err}'
            for line in out.splitlines():
                what = line.split()[2].rstrip(':')
                lines.setdefault(what, []).append(line.partition(f'{what}: ')[2])
        return lines


def test_results_equal_python(ranks):
    ours = ranks.case('dist', 3, 'differential').well().lines()
    pythons = ranks.twin(3, 'collectives.py').well().lines()
    assert len(ours) > 1000
    assert ours == pythons


def test_calls_beyond_python(ranks):
    done = [f'rank {rank} done' for rank in range(3)]
    assert ranks.case('dist', 3, 'beyond_python').well().lines() == done


def test_debug_checks_accept_matching_calls(ranks):
    done = [f'rank {rank} done' for rank in range(3)]
    assert ranks.case('dist', 3, 'debug_agreement').well().lines() == done


@pytest.mark.parametrize('size', [1000, 40_000_000])
def test_large_objects_are_gathered(ranks, size):
    done = [f'rank {rank} done' for rank in range(3)]
    assert ranks.case('dist', 3, 'big_objects', size).well().lines() == done


@pytest.mark.parametrize(
    ('n', 'case'), [(2, 'peer_killed'), (4, 'peer_killed'), (2, 'peer_killed_before_callback')]
)
def test_a_killed_peer_breaks_the_group(n, case):
    with Alone(n, case, 'timeout=3600000') as job:
        lines = job.end(but=[1])
    assert len(lines['second']) == n - 1
    for line in lines['second']:
        assert line.startswith('DistNetworkError all_reduce in group ')
    for line in lines['third']:
        assert line.startswith('DistStateError all_reduce in group ')
        assert 'is broken since an earlier error' in line


@pytest.mark.parametrize('n', [2, 3])
def test_a_stopped_peer_times_out(n):
    with Alone(n, 'peer_stopped', 'timeout=3000') as job:
        lines = job.end(but=[1])
        job.ranks[1].send_signal(signal.SIGCONT)
    assert len(lines['second']) == n - 1
    assert any(line.startswith('DistTimeoutError') for line in lines['second'])
    for line in lines['second']:
        assert line.startswith(('DistTimeoutError', 'DistNetworkError'))
    assert all(line.startswith('DistStateError') for line in lines['third'])


def test_rank_missing_in_a_barrier():
    with Alone(3, 'barrier_missed', 'timeout=2000') as job:
        lines = job.end()['barrier']
    assert len(lines) == 2
    assert any(line.startswith('DistTimeoutError') for line in lines)


def test_monitored_barrier_names_missing_ranks():
    with Alone(3, 'monitored_barrier_missed') as job:
        lines = job.end()
    assert len(lines['monitored']) == 2
    for line in [*lines['monitored'], *lines['late']]:
        assert 'DistTimeoutError' in line
        assert 'missing rank(s): 1,' in line
    assert [line.split()[0] for line in lines['again']] == ['well'] * 3


def test_one_error_for_all_monitored_barriers_that_a_rank_missed():
    with Alone(2, 'monitored_barriers_missed') as job:
        lines = job.end()
    assert len(lines['monitored']) == 3
    assert ['missing rank(s): 1,' in line for line in lines['late']] == [True]
    assert [line.split()[0] for line in lines['again']] == ['well'] * 4


def test_collective_after_destroy():
    with Alone(2, 'collective_after_destroy') as job:
        lines = job.end()
    for line in lines['default']:
        assert 'there is no default group' in line
    for line in lines['kept']:
        assert line.startswith('DistStateError')
        assert 'was destroyed' in line


def test_exception_on_one_rank():
    with Alone(3, 'exception_on_one', 'timeout=3600000') as job:
        lines = job.end(but=[1])
        assert job.ranks[1].wait(200) == 1
        assert 'out of ideas' in job.ranks[1].stderr.read()
    for line in lines['all_reduce']:
        assert line.startswith('DistNetworkError')


def test_works_that_are_dropped_still_complete():
    with Alone(2, 'dropped', 'timeout=20000') as job:
        lines = job.end()
    assert lines == {'got': ['20 waiting'] * 2}


def both_named(line, first, second):
    return line.startswith('DistMismatchError') and f'rank 0: {first}' in line and second in line


def test_debug_checks_name_both_ranks():
    with Alone(3, 'debug_mismatch', 'timeout=3000') as job:
        lines = job.end()
    wanted = {
        'shape': ('broadcast float32 [2] src=0', 'rank 1: broadcast float32 [4] src=0'),
        'dtype': ('all_reduce SUM int32 [2]', 'rank 1: all_reduce SUM float32 [2]'),
        'op': ('all_reduce SUM float32 [2]', 'rank 1: all_reduce MAX float32 [2]'),
        'call': ('all_reduce SUM float32 [2]', 'rank 1: broadcast float32 [2] src=0'),
        'splits': (
            'all_to_all_single float32 sends 4 element(s) to rank 1',
            'rank 1: takes 2 from rank 0',
        ),
        'objects': ('all_gather_object', 'rank 1: barrier'),
    }
    for what, (first, second) in wanted.items():
        assert len(lines[what]) == 3
        assert all(both_named(line, first, second) for line in lines[what]), lines[what]
    sent = 'rank 1: all_to_all float32 sends 2 element(s) to rank 2'
    assert all(sent in line for line in lines['parts'])
    for line in lines['own']:
        assert line.startswith('DistArgumentError all_to_all_single in group ')
        assert 'own part has 2 element(s) in input and 1 in output' in line
    assert [line.split()[0] for line in lines['well']] == ['well'] * 3
    for line in lines['missing']:
        assert line.startswith('DistTimeoutError')
        assert 'missing rank(s): 1 did not come' in line


def test_objects_of_other_types_and_lists():
    with Alone(3, 'object_mismatch') as job:
        lines = job.end()
    wanted = {
        'DistMismatchError all_gather_object: the object of rank 1: an object has another type: '
        'wanted is an int, it is of the type str',
        'DistMismatchError all_gather_object: the object of rank 0: an object has another type: '
        'wanted is a str, it is of the type int',
    }
    assert {line.partition(' | ')[0] for line in lines['type']} == wanted
    malformed = 'the object of rank 1: malformed object: pickle, at byte 1: has code 110'
    assert sum(malformed in line for line in lines['bytes']) == 2
    announced = f'a peer announces an object of {2**60} bytes'
    assert sum(announced in line for line in lines['size']) == 2
    assert all('2 object(s)' in line and '3 object(s)' in line for line in lines['length'])
    assert all('dst=0' in line and 'dst=1' in line for line in lines['root'])
    for line in lines['list']:
        assert line.startswith('DistArgumentError')
        assert 'the list of rank 0 has 1 object(s)' in line
    assert [line.split()[0] for line in lines['well']] == ['well'] * 3
    assert all(len(found) == 3 for found in lines.values())
