"""Acceptance commands of the SDK's examples: DDP step by step (A), the X-ray pipeline (E)."""

from sdk_checks import Row, both, ctest, has, same_lines, prints

SMALL = '--image-size 32'

ROWS = [
    Row(
        'A5',
        'cpprun --nproc_per_node=4 ex_six_steps --compare-solo --tol 1e-6 >$T/o; echo $?',
        prints('0'),
    ),
    Row(
        'A7',
        "grep -o '^.rank [0-9]. step [1-6]' <(cpprun --nproc_per_node=3 ex_six_steps)",
        prints(*(f'[rank {rank}] step {step}' for rank in range(3) for step in range(1, 7))),
    ),
    Row(
        'A7-lines',
        'wc -l <$ROOT/examples/cpp/ex_six_steps.cpp; grep -c "// [1-6]\\. " '
        '$ROOT/examples/cpp/ex_six_steps.cpp',
        has(r'\A([1-7]?\d|80)\n6\n\Z'),
    ),
    Row(
        'A8',
        'for r in 0 1 2; do ex_init --method manual --port $PORT --rank $r --world-size 3 & done; '
        'wait',
        prints(*['Done'] * 3),
    ),
    Row('A9', 'ex_sampler --n 10 --k 3 --rank 1', prints('1 4 7 0')),
    Row(
        'A10',
        'for r in 0 1 2; do ex_sampler --n 10 --k 3 --rank $r; done',
        prints('0 3 6 9', '1 4 7 0', '2 5 8 1'),
    ),
    Row(
        'A10b',
        'for r in 0 1 2; do ex_sampler --n 10 --k 3 --rank $r --drop-last; done',
        prints('0 3 6', '1 4 7', '2 5 8'),
    ),
    Row('A10b-edges', ctest('SamplerEdges'), prints('0')),
    Row(
        'A11',
        'for e in 0 1 2; do for r in 0 1 2; do ex_sampler --n 10 --k 3 --rank $r --shuffle '
        '--epoch $e; done; done; ex_sampler --n 10 --k 3 --rank 0 --shuffle --seed 1',
        prints(
            *('4 5 0 2', '1 3 8 4', '7 9 6 1'),
            *('5 2 9 4', '6 0 3 5', '1 8 7 6'),
            *('8 5 0 3', '7 6 4 8', '1 9 2 7'),
            '5 2 9 4',
        ),
    ),
    Row(
        'A12',
        'cd $T; cpprun --nproc_per_node=3 ex_ckpt_barrier --eval --n 10 --print-count',
        prints('10'),
    ),
    Row('A13', ctest('CustomSampler'), prints('0')),
    Row('A15', ctest('DdpDeviceMismatch'), prints('0')),
    Row(
        'A16',
        'cpprun --nproc_per_node=2 ex_six_steps --unused-branch; echo exit $?; '
        'cpprun --nproc_per_node=2 ex_six_steps --unused-branch --find-unused >$T/o; echo then $?',
        both(has(r'spare\.weight'), has('^exit 1$'), has('^then 0$')),
    ),
    Row('A17', ctest('DdpAccess'), prints('0')),
    Row(
        'A18',
        'cd $T; ex_prefix --save-wrapped $T/w.pt >o && cpprunctl snapshot ls $T/w.pt >l; '
        "grep -c weight l; grep -c 'module\\.' l",
        prints('1', '0'),
    ),
    Row(
        'A19-cpp',
        'ex_prefix',
        has(r'^stripped: net\.weight module_list\.0\.weight submodule\.bias$', 1),
    ),
    Row('A24', 'grep -c master <(cpprun --nproc_per_node=3 ex_six_steps)', prints('1')),
    Row(
        'A26',
        """grep '"rank":2' <(cpprun --nproc_per_node=3 ex_gather_objects)""",
        prints(
            '['
            + ','.join(
                f'{{"tensor":[{1 + r}],"list":[{1 + r},{2 + r},{3 + r}],"dict":{{"rank":{r}}}}}'
                for r in range(3)
            )
            + ']'
        ),
    ),
    Row(
        'A27',
        'cpprun --nproc_per_node=gpu ex_gather_objects --cuda >$T/o; echo $?',
        prints('0'),
        'gpu',
    ),
    Row(
        'A29',
        "cd $T; grep -c 'loaded generation 1' <(cpprun --nproc_per_node=3 ex_ckpt_barrier "
        '--slow-save 2)',
        prints('3'),
    ),
    Row(
        'A29-no-barrier',
        'cd $T; cpprun --nproc_per_node=3 ex_ckpt_barrier --slow-save 2 --no-barrier >o 2>e; '
        "echo exit $?; echo loaded $(grep -c 'loaded generation 1' o)",
        both(has('^exit 1$'), has('^loaded [012]$')),
    ),
    Row(
        'E1',
        'cd $T; cpprun --standalone --nproc_per_node=2 ex_ranzcr --synthetic 96 '
        f'{SMALL} --epochs 1 >o; echo $?',
        prints('0'),
    ),
    Row(
        'E4',
        "cd $T; grep -c '^Validation loss=' <(cpprun --nproc_per_node=2 ex_ranzcr --synthetic 96 "
        f'{SMALL} --epochs 3)',
        prints('3'),
    ),
    Row(
        'E6',
        f'cd $T; ex_ranzcr --solo --synthetic 96 {SMALL} --epochs 1 >o; echo $?',
        prints('0'),
    ),
    Row(
        'E8',
        'cd $T; cpprun --nproc_per_node=3 ex_ckpt_barrier --rounds 50 --same-name --jitter >o; '
        "echo $?; grep -c 'loaded generation' o",
        prints('0', '150'),
    ),
    Row(
        'E9',
        'ex_ranzcr --help',
        both(
            *(
                has(f'{option}\\b.*{default}')
                for option, default in [
                    ('--batch-size', 64),
                    ('--epochs', 1),
                    ('--lr', '0.003'),
                    ('--weight-decay', 0),
                    ('--train-size', '0.8'),
                    ('--image-size', 224),
                    ('--sample-fraction', 1),
                    ('--fine-tune', ''),
                    ('--seed', 1),
                    ('--log-interval', 5),
                    ('--save-model', ''),
                    ('--backend', 'auto'),
                ]
            )
        ),
    ),
    Row(
        'E11',
        f'cd $T; cpprun --nproc_per_node=2 ex_ranzcr --synthetic 64 {SMALL} --epochs 2 >o; '
        'ls model.checkpoint_0.pt model.checkpoint_1.pt model.pt',
        prints('model.checkpoint_0.pt', 'model.checkpoint_1.pt', 'model.pt'),
    ),
    Row(
        'E12',
        "cd $T; for w in 1 2 3; do grep '^Validation' <(cpprun --nproc_per_node=$w ex_ranzcr "
        f'--synthetic 97 {SMALL} --epochs 1 --eval-only); done',
        same_lines(3),
    ),
    Row('E15', ctest('GroupShuffleSplit'), prints('0')),
]
