"""Default groups: the ways to form one, the errors, and the ways to end one."""

import pytest
from launches import BIN, free_port


def sums(world):
    total = world * (world + 1) // 2
    return [f'rank {rank} of {world} sum {total}' for rank in range(world)]


@pytest.mark.parametrize('flags', [(), ('--worker-store=agent',)])
@pytest.mark.parametrize('method', ['', 'init_method=env://', 'init_method=env://?store=agent'])
def test_a_group_forms_from_the_environment(ranks, method, flags):
    words = [method] if method else []
    ended = ranks.cpprun(3, *case('form'), *words, flags=flags).well()
    assert ended.lines() == sums(3)


def case(name):
    return (BIN / 'sdk_dist_cases', name)


@pytest.mark.parametrize('host', ['127.0.0.1', '[::1]', 'localhost'])
def test_tcp_under_the_launcher(ranks, host):
    method = f'init_method=tcp://{host}:{free_port()}'
    assert ranks.case('dist', 3, 'form', method).well().lines() == sums(3)


def test_tcp_without_a_launcher(ranks):
    method = f'init_method=tcp://127.0.0.1:{free_port()}'
    program = ' '.join(str(word) for word in case('form'))
    script = f'for r in 1 2 3 0; do {program} "{method}?rank=$r&world_size=4" & done; wait'
    assert ranks.run('bash', '-c', script).well().lines() == sums(4)


def test_a_group_forms_by_a_file(ranks):
    path = ranks.folder / 'meet'
    for _ in range(2):
        assert ranks.case('dist', 3, 'form', f'init_method=file://{path}').well().lines() == sums(3)
        assert not path.exists()


def test_file_left_by_a_failed_start(ranks):
    path = ranks.folder / 'meet'
    worker = ' '.join(str(word) for word in case('never_destroy'))
    again = ' '.join(str(word) for word in case('form'))
    script = (
        f'if [ $TORCHELASTIC_RESTART_COUNT = 0 ]; then {worker} init_method=file://{path}; '
        f'kill -9 $$; else {again} init_method=file://{path}; fi'
    )
    ended = ranks.cpprun(2, 'bash', '-c', script, flags=('--max-restarts=1',)).well()
    assert ended.lines() == sorted(sums(2) * 2)
    assert not path.exists()


def test_file_without_folder(ranks):
    method = f'init_method=file://{ranks.folder}/none/meet'
    lines = ranks.case('dist', 2, 'form', method).well().lines()
    assert len(lines) == 2
    assert all('DistArgumentError' in line and f"'{ranks.folder}/none'" in line for line in lines)


def test_several_groups_in_sequence(ranks):
    assert ranks.case('dist', 2, 'form_twice').well().lines() == sorted(sums(2) * 3)


def test_one_process_forms_a_group(ranks):
    program, name = case('form_solo')
    assert ranks.run(program, name).well().lines() == ['rank 0 of 1 sum 1']


@pytest.mark.parametrize('name', ['RANK', 'WORLD_SIZE', 'MASTER_ADDR', 'MASTER_PORT'])
def test_a_missing_variable_is_named(ranks, name):
    env = {'RANK': '0', 'WORLD_SIZE': '1', 'MASTER_ADDR': '127.0.0.1', 'MASTER_PORT': '1'}
    env[name] = ''
    (line,) = ranks.run(*case('form'), env=env).well().lines()
    assert 'DistArgumentError' in line
    assert f' {name},' in line


def test_the_network_interface_is_used_or_named(ranks):
    assert ranks.case('dist', 2, 'form', 'gloo_interface=lo').well().lines() == sums(2)
    env = {'GLOO_SOCKET_IFNAME': 'no-such-interface'}
    lines = ranks.case('dist', 2, 'form', env=env).well().lines()
    assert len(lines) == 2
    assert all('no-such-interface' in line for line in lines)


def test_world_sizes_differ(ranks):
    words = ('1:world_size=3', 'timeout=3600000')
    lines = ranks.case('dist', 2, 'form', *words, seconds=15).well().lines()
    assert len(lines) == 2
    for line in lines:
        assert 'DistArgumentError' in line
        assert 'world size 2' in line
        assert 'world size 3' in line


def test_a_rank_that_is_taken_twice_is_named(ranks):
    words = ('2:rank=1', 'timeout=3600000')
    lines = ranks.case('dist', 3, 'form', *words, seconds=15).well().lines()
    assert len(lines) == 3
    assert all('DistArgumentError' in line and 'rank 1 is taken twice' in line for line in lines)


def test_duplicate_rank_0(ranks):
    lines = ranks.case('dist', 2, 'form', '1:rank=0', 'timeout=4000').well().lines()
    assert len(lines) == 2
    assert any('missing rank(s): 1' in line and 'DistTimeoutError' in line for line in lines)
    assert any('DistNetworkError' in line and 'rank 0' in line for line in lines)


def test_rank_out_of_range(ranks):
    lines = ranks.case('dist', 2, 'form', '1:rank=2', 'timeout=2000').well().lines()
    assert any('DistArgumentError' in line and 'from 0 to 1' in line for line in lines)
    assert any('DistTimeoutError' in line and 'missing rank(s): 1' in line for line in lines)


def test_missing_ranks_are_named(ranks):
    lines = ranks.case('dist', 2, 'form', 'world_size=4', 'timeout=2000').well().lines()
    assert len(lines) == 2
    for line in lines:
        assert 'missing rank(s): 2, 3' in line


def test_a_store_without_a_server_is_named(ranks):
    words = (f'init_method=tcp://127.0.0.1:{free_port()}', 'rank=1', 'world_size=2', 'timeout=1000')
    (line,) = ranks.run(*case('form'), *words, seconds=10).well().lines()
    assert 'DistTimeoutError' in line
    assert '127.0.0.1:' in line
    assert 'Connection refused' in line


@pytest.mark.parametrize('variable', ['SLURM_STEP_NUM_TASKS', 'OMPI_COMM_WORLD_SIZE', 'PMI_SIZE'])
def test_a_single_world_is_refused_among_several_processes(ranks, variable):
    # Each of eight processes would train alone, into one snapshot folder.
    (line,) = ranks.run(*case('form_solo'), env={variable: '8'}).well().lines()
    assert 'DistArgumentError' in line
    assert f'{variable} is 8' in line
    alone = ranks.run(*case('form_solo'), env={variable: '1', 'SLURM_NTASKS': '8'}).well()
    assert alone.lines() == sums(1)


def test_store_and_method(ranks):
    words = ('hash_store=1', 'init_method=env://')
    (line,) = ranks.run(*case('form'), *words).well().lines()
    assert 'DistArgumentError' in line
    assert 'both store and init_method' in line


def test_a_group_can_be_destroyed_and_formed_again(ranks):
    lines = ranks.case('dist', 2, 'destroy_twice').well().lines()
    assert lines == ['initialized no'] * 2 + sums(2)


def test_a_process_may_end_without_destroying_its_group(ranks):
    for _ in range(5):
        assert ranks.case('dist', 3, 'never_destroy', seconds=20).well().lines() == sums(3)


@pytest.mark.parametrize(
    ('name', 'text'),
    [
        ('before_init', 'call init_process_group() first'),
        ('init_twice', 'is there already'),
        ('after_destroy', 'was destroyed'),
    ],
)
def test_calls_in_the_wrong_state_are_refused(ranks, name, text):
    lines = ranks.case('dist', 2, name).well().lines()
    assert len(lines) == 2
    assert all('DistStateError' in line and text in line for line in lines)


def test_destroy_while_a_collective_runs(ranks):
    lines = ranks.case('dist', 2, 'destroy_in_flight', 'timeout=3600000', seconds=30).well().lines()
    assert lines == [f'rank {rank} of 2 left in time' for rank in range(2)]


def test_error_while_a_collective_runs(ranks):
    lines = ranks.case('dist', 2, 'throw_in_flight', 'timeout=3600000', seconds=30).well().lines()
    assert lines == [f'rank {rank} own error early' for rank in range(2)]
