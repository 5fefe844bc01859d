"""Acceptance commands of the SDK's examples: processes and communication (B), the Trainer (C)."""

from sdk_checks import Row, both, ctest, has, near_truth, prints

# Gloo's answers on three ranks that hold [r + 1, 6]; the SDK computes AVG from SUM.
FAILS = r'error: .*'
REDUCE_OPS = [
    ('SUM', r'\[6, 18\]', r'\[6, 18\]'),
    ('PRODUCT', r'\[6, 216\]', r'\[6, 216\]'),
    ('MIN', r'\[1, 6\]', r'\[1, 6\]'),
    ('MAX', r'\[3, 6\]', r'\[3, 6\]'),
    ('BAND', FAILS, r'\[0, 6\]'),
    ('BOR', FAILS, r'\[3, 6\]'),
    ('BXOR', FAILS, r'\[0, 6\]'),
    ('AVG', r'\[2, 6\]', FAILS),
    ('PREMUL_SUM', FAILS, FAILS),
]
reduce_table = both(*(has(rf'^{op} \| {a} \| {b}$', 1) for op, a, b in REDUCE_OPS))

TOY = 'ex_toy_trainer'

ROWS = [
    Row(
        'B1',
        f'cd $T; cpprun --standalone --nproc_per_node=2 {TOY} --total-epochs 1 --save-every 1 '
        '>$T/o && test -s snapshot.pt; echo $?',
        prints('0'),
    ),
    Row(
        'B2',
        f"grep -c 'effective batch size 128' <(cpprun --nproc_per_node=4 {TOY} --batch_size 32 "
        '--total-epochs 1 2>&1)',
        prints('1'),
    ),
    Row('B3', ctest('InitOptions'), prints('0')),
    Row(
        'B4',
        'cpprun --nproc_per_node=3 ex_collectives --backend gloo --table; echo $?',
        both(reduce_table, has('^gloo has .*all_reduce'), has('^0$', 1)),
    ),
    Row(
        'B5',
        'for r in 0 1 2 3; do ex_init --init-method tcp://127.0.0.1:$PORT --world-size 4 '
        '--rank $r & done; wait',
        prints(*['Done'] * 4),
    ),
    Row(
        'B5-ipv6',
        "for r in 0 1; do ex_init --init-method 'tcp://[::1]:'$PORT --world-size 2 --rank $r & "
        'done; wait',
        prints(*['Done'] * 2),
        'ipv6',
    ),
    Row(
        'B6',
        'grep -c Done <(timeout 20 cpprun --nproc_per_node=4 $E/init_method.py '
        '--init-method=tcp://127.0.0.1:$PORT)',
        prints('4'),
    ),
    Row(
        'B6-cpp',
        'grep -c Done <(timeout 20 cpprun --nproc_per_node=4 ex_init '
        '--init-method=tcp://127.0.0.1:$PORT)',
        prints('4'),
    ),
    Row(
        'B7',
        'cpprun --nproc_per_node=2 --max_restarts=1 ex_init --init-method file://$T/f '
        '--crash-rank 0 --crash-attempt 0 >$T/o 2>$T/e; echo $?; cat $T/o',
        prints('0', 'Done', 'Done'),
    ),
    Row(
        'B8',
        'for i in 1 2; do cpprun --nproc_per_node=2 ex_init --init-method file://$T/g >$T/o; '
        'echo $?; done; ls $T/g 2>&1',
        both(has('^0$', 2), has('No such file')),
    ),
    Row(
        'B9',
        'env -u RANK ex_init --init-method env://; echo exit $?',
        both(has(r'\bRANK\b'), has('^exit [1-9]')),
    ),
    Row('B11', ctest('InitPrecedence'), prints('0')),
    Row(
        'B12',
        'timeout 10 cpprun --nproc_per_node=2 ex_init --no-destroy >$T/o; echo $?',
        prints('0'),
    ),
    Row('B13', ctest('StoreInterop'), prints('0')),
    Row(
        'B14',
        "grep -e 'recv 7 tag 5' -e 'irecv 8' <(cpprun --nproc_per_node=2 ex_collectives "
        '--only p2p)',
        prints('recv 7 tag 5', 'irecv 8'),
    ),
    Row(
        'B15',
        'timeout 30 cpprun --nproc_per_node=2 ex_collectives --only broadcast --mismatch; '
        'echo exit $?',
        both(has('rank 0'), has('rank 1'), has('^exit 1$')),
    ),
    Row(
        'B16',
        r"grep -c 'all_reduce SUM \[6, 18\]' <(cpprun --nproc_per_node=3 ex_collectives "
        '--only all_reduce)',
        prints('3'),
    ),
    Row(
        'B17',
        r"grep 'reduce dst=2 rank2 \[6\]' <(cpprun --nproc_per_node=3 ex_collectives "
        '--only reduce)',
        prints('reduce dst=2 rank2 [6]'),
    ),
    Row(
        'B18',
        r"grep -c 'all_gather \[0, 1, 2\]' <(cpprun --nproc_per_node=3 ex_collectives "
        '--only all_gather)',
        prints('3'),
    ),
    Row('B19', 'cpprun --nproc_per_node=3 ex_collectives --only all >$T/o; echo $?', prints('0')),
    Row('B20', ctest('AsyncWork'), prints('0')),
    Row('B21', ctest('SubGroups'), prints('0')),
    Row(
        'B22',
        r"grep 'missing rank(s): 1' <(cpprun --nproc_per_node=2 ex_collectives "
        '--only monitored_barrier --skip-rank 1 2>&1)',
        has(r'missing rank\(s\): 1'),
    ),
    Row(
        'B23', 'cpprun --nproc_per_node=3 ex_collectives --only reduce_ops; echo $?', reduce_table
    ),
    Row(
        'B29-cpp',
        'diff <(sort <(sed "s/Id:[0-9]*/Id:N/; s|$BIN/ex_launch_args|X|" <(cpprun '
        '--nproc_per_node=4 $BIN/ex_launch_args a "b c" 2>$T/e1))) '
        '<(sort <(sed "s/Id:[0-9]*/Id:N/; '
        's|$E/launch_args_test.py|X|" <(cpprun --nproc_per_node=4 $E/launch_args_test.py a "b c" '
        '2>$T/e2))); echo $?',
        prints('0'),
    ),
    Row(
        'C2',
        "cd $T; CPPRUN_FAULTS='kill:rank=1,epoch=2,attempt=0' cpprun --standalone "
        f'--nproc_per_node=2 --max_restarts=3 {TOY} --total-epochs 6 --save-every 1 >o 2>e; '
        'echo $?; '
        "grep -c 'Resuming training from snapshot at Epoch' o",
        prints('0', '2'),
    ),
    Row(
        'C3',
        f'cd $T; {TOY} --solo --task regression --total-epochs 6 --hash >a; rm snapshot.pt; '
        "CPPRUN_FAULTS='kill:rank=0,epoch=3,attempt=0' cpprun --standalone --max_restarts=1 "
        f'--nproc_per_node=1 {TOY} --task regression --total-epochs 6 --save-every 1 --hash '
        '>b 2>e; '
        'echo $?; diff <(tail -1 a) <(tail -1 b); grep -c Resuming b',
        prints('0', '1'),
    ),
    Row(
        'C6',
        f'cd $T; C="cpprun --standalone --nproc_per_node=2 {TOY} --save-every 1"; '
        "$C --total-epochs 3 >o1; $C --total-epochs 5 >o2; grep -ho '^[^|]*Epoch [0-9]* |' o2 | "
        "grep -o 'Epoch [0-9]*' | sort -u",
        prints('Epoch 3', 'Epoch 4'),
    ),
    Row(  # `grep -m1` on the run itself would start the next one beside it, in the same folder
        'C13',
        'for w in 1 2 3 4 8; do cd $T; rm -f snapshot.pt; '
        f"cpprun --nproc_per_node=$w {TOY} --total-epochs 1 >o 2>e; grep -o 'Steps: [0-9]*' -m1 o; "
        'done',
        prints('Steps: 64', 'Steps: 32', 'Steps: 22', 'Steps: 16', 'Steps: 8'),
    ),
    Row(
        'C14',
        "cd $T; grep -c 'Training snapshot saved at snapshot.pt' <(cpprun --nproc_per_node=2 "
        f'{TOY} --total-epochs 3 --save-every 2)',
        prints('2'),
    ),
    Row(
        'C15',
        'diff <(ex_sampler --n 10 --k 3 --rank 0 --shuffle --epoch 0) '
        '<(ex_sampler --n 10 --k 3 --rank 0 --shuffle --epoch 1)',
        has('^<'),
    ),
    Row(
        'C17',
        'cd $T; for n in 0 1; do cpprun --nnodes=2 --node_rank=$n --nproc_per_node=2 '
        f'--master_port=$PORT {TOY} --total-epochs 1 --save-every 1 >n$n 2>e$n & done; wait; '
        "cat n0 n1 >o; grep -c 'snapshot saved' o",
        prints('1'),
    ),
    Row(
        'C19',
        f'cd $T; {TOY} --total-epochs 2 --save-every 1 --solo >o; python3 -c \'import torch; '
        's=torch.load("snapshot.pt"); print(sorted(s), s["EPOCHS_RUN"]); '
        'torch.nn.Linear(20,1).load_state_dict(s["MODEL_STATE"])\'',
        has(r"'EPOCHS_RUN', .*'MODEL_STATE', .* 2$", 1),
    ),
    Row(
        'C22',
        f'{TOY} --help',
        both(has('--total-epochs.*50'), has('--save-every.*10'), has('--batch_size.*32')),
    ),
    Row(
        'C23',
        f'cd $T; cpprun --nproc_per_node=2 {TOY} --task regression --total-epochs 100 '
        '--print-params',
        near_truth,
    ),
    Row(
        'C26',
        f'cd $T; cpprun --nproc_per_node=4 {TOY} --total-epochs 2 --hash-each-epoch >$T/o; '
        "grep -c 'epoch=1 hash=' $T/o; sort -u <(grep -o 'epoch=1 hash=.*' $T/o)",
        both(has('^4$', 1), has('^epoch=1 hash=', 1)),
    ),
    Row(
        'C3-literal',
        f'cd $T; {TOY} --solo --total-epochs 6 --hash >a; '
        "CPPRUN_FAULTS='kill:rank=0,epoch=3,attempt=0' cpprun --standalone --max_restarts=1 "
        f'--nproc_per_node=1 {TOY} --total-epochs 6 --save-every 1 --hash >b; '
        'diff <(tail -1 a) <(tail -1 b) && grep -c Nothing b',
        prints('1'),
    ),
    Row(
        'C1',
        'for f in exit:13 signal:SEGV oom stop; do cpprun --standalone --nproc_per_node=2 '
        '--log-dir=$T/$f $E/fault.py --how $f 2>$T/$f.txt; '
        "grep -ho '\"class\":\"[a-z_]*' $T/$f/*/failure_summary.json; done",
        prints(*(f'"class":"{kind}' for kind in ('user_error', 'crash', 'out_of_memory', 'hang'))),
    ),
    Row(
        'C4',
        "grep -c 'World Size: 6' <(cpprun --nproc_per_node=6 $E/launch_args_test.py)",
        prints('6'),
    ),
    Row('C5', 'cpprun --nproc_per_node=2 --no_python /bin/true; echo $?', prints('0')),
    Row(
        'C8',
        'CPPRUN_TEST_GPUS=4 cpprun --standalone --nproc_per_node=gpu $E/argv.py',
        prints(*['[]'] * 4),
    ),
    Row(
        'C8-gpu',
        'diff <(wc -l < <(cpprun --standalone --nproc_per_node=gpu $E/argv.py)) '
        '<(wc -l < <(nvidia-smi -L)) && echo same',
        prints('same'),
        'gpu',
    ),
    Row(
        'C9',
        'CPPRUN_TEST_GPUS=2 cpprun --nproc_per_node=3 $E/argv.py 2>$T/e; '
        "grep -c '3 workers but 2 visible GPUs' $T/e",
        prints('[]', '[]', '[]', '1'),
    ),
    Row(
        'C10',
        'CPPRUN_TEST_GPUS=8 CUDA_VISIBLE_DEVICES=2,3 cpprun --standalone --nproc_per_node=gpu '
        '$E/envdump.py --names CUDA_VISIBLE_DEVICES',
        prints('2,3', '2,3'),
    ),
    Row(
        'C11',
        'cpprun --nproc_per_node=1 $E/multi_gpu_spawn.py --cpu --nprocs 2; echo exit $?; '
        'python3 $E/multi_gpu_spawn.py --cpu --nprocs 2; echo exit $?',
        both(has('^exit 0$', 2), has(r'^\[process [01] of 2\] trained$', 4)),
    ),
    Row('C20', ctest('LocalDevice'), prints('0')),
    Row(
        'C21',
        'grep -c ok <(timeout 60 cpprun --nproc_per_node=2 $E/override_master.py $PORT)',
        prints('2'),
    ),
    Row(
        'C25',
        'ldd "$(which cpprun)" >$T/l 2>&1; wc -l <$T/l; grep -c -e libtorch -e libpython $T/l',
        has(r'\A[1-9]\d*\n0\n\Z'),
    ),
    Row(  # only processes of this run: others may run the same program at the same time
        'C27',
        'cpprun --standalone --nproc_per_node=2 $E/grandchild.py; echo exit $?; sleep 1; '
        "for p in $(pgrep -f '^sleep 45[.]123'); do "
        'grep -qsz "^T=$T\\$" /proc/$p/environ && echo left $p; done; true',
        both(has('^exit 1$', 1), has('^left', 0)),
    ),
    Row('C7', ctest('ExampleSkeleton'), prints('0')),
    Row('C12', ctest('TrainerApi'), prints('0')),
    Row(
        'C16',
        f'cd $T; cpprun --nproc_per_node=2 {TOY} --total-epochs 1 >o; '
        "cpprunctl snapshot ls snapshot.pt >l; grep -o 'MODEL_STATE/[a-z]*' l | sort -u; "
        "grep -c 'module\\.' l",
        prints('MODEL_STATE/bias', 'MODEL_STATE/weight', '0'),
    ),
    Row('C18', ctest('SnapshotMapLocation'), prints('0')),
    Row(
        'C28',
        f'cd $T; mkdir s; cpprun --snapshot-dir s --nproc_per_node=2 {TOY} --total-epochs 3 '
        '--save-every 1 >o; truncate -s -200 "$(cpprunctl snapshot latest s)"; '
        f'cpprun --snapshot-dir s --nproc_per_node=2 {TOY} --total-epochs 5 2>e >o; echo $?; '
        "grep -c 'fell back' e",
        prints('0', '1'),
    ),
]
