"""The picture of layers (docs/ARCHITECTURE.md) as tables: who may name whom, and what outside."""

import re

SDK_PARTS = {
    f'worker_sdk/cpprun/{part}'
    for part in ('worker', 'dist', 'nn', 'data', 'optim', 'snapshot', 'trainer')
}

# Which modules each module may name. A file belongs to the longest folder that fits.
ARROWS = {
    'common': set(),
    **{f'common/{part}': {'common'} for part in ('faults', 'holder', 'machine', 'proof')},
    'common/log': {'common', 'common/machine'},
    'rendezvous/protocol': {'common'},
    'rendezvous/core': {'common', 'rendezvous/protocol'},
    'rendezvous/server': {
        'common',
        'common/log',
        'common/holder',
        'common/machine',
        'common/proof',
        'rendezvous/protocol',
        'rendezvous/core',
    },
    'rendezvous/client': {'common', 'common/log', 'rendezvous/client/core', 'rendezvous/protocol'},
    'rendezvous/etcd': {
        'common',
        'rendezvous/client',  # how a connection is made
        'rendezvous/core',
        'rendezvous/protocol',
    },
    'agent/core': {'common', 'common/faults', 'rendezvous/protocol'},
    'agent/process': {
        'common',
        'common/log',
        'common/holder',
        'common/machine',
        'worker_sdk/cpprun/snapshot_files',
    },
    'agent/daemon': {
        'common',
        'common/faults',
        'common/holder',
        'common/log',
        'common/machine',
        'common/proof',  # the node's key, an order's proof
        'rendezvous/protocol',
        'rendezvous/client',
        'rendezvous/client/core',
        'agent/core',
        'agent/process',
        'worker_sdk/cpprun/archive',  # its crc32
        'worker_sdk/cpprun/snapshot_files',
    },
    'launcher': {
        'agent/process',  # UniqueFd
        'common',
        'common/machine',  # the host's own name
        'common/log',
        'rendezvous/client',  # an heir says at the job's endpoint that it leads
        'rendezvous/etcd',
        'rendezvous/protocol',
        'rendezvous/server',
        'agent/core',  # its configuration
        'agent/daemon',
        'launcher/doctor',  # looks before each start
        'launcher/network',
        'launcher/options',
    },
    'launcher/network': {'common'},
    'launcher/doctor': {'common', 'common/holder', 'launcher/network'},
    # Fills the agent's configuration.
    'launcher/options': {
        'common',
        'common/faults',
        'common/machine',
        'agent/core',
        'launcher/network',
    },
    'launcher/ctl': {
        'common',
        'common/faults',
        'common/log',
        'common/machine',
        'common/proof',
        'launcher/doctor',
        'launcher/network',
        'launcher/options',  # explains them
        'agent/core',  # its configuration, the words of operators
        'rendezvous/server',
        'rendezvous/protocol',  # orders over TCP
        'worker_sdk/cpprun/worker',  # its store client: doctors of several nodes meet
        'worker_sdk/cpprun/pickle',
        'worker_sdk/cpprun/archive',
        'worker_sdk/cpprun/snapshot_files',
    },
    'worker_sdk': SDK_PARTS,  # the target that joins the parts
    'worker_sdk/cpprun/worker': {'common', 'rendezvous/protocol'},
    'worker_sdk/cpprun/pickle': {'common'},
    'worker_sdk/cpprun/archive': {'common', 'worker_sdk/cpprun/pickle'},
    'worker_sdk/cpprun/snapshot_files': {
        'common',
        'worker_sdk/cpprun/pickle',
        'worker_sdk/cpprun/archive',
    },
    'worker_sdk/cpprun/snapshot': {
        'common',
        'worker_sdk/cpprun/worker',
        'worker_sdk/cpprun/pickle',
        'worker_sdk/cpprun/archive',
        'worker_sdk/cpprun/snapshot_files',
        'worker_sdk/cpprun/dist',
        'worker_sdk/cpprun/data',
        'worker_sdk/cpprun/optim',
    },
    'worker_sdk/cpprun/dist': {'worker_sdk/cpprun/worker', 'common'},
    'worker_sdk/cpprun/nccl': {'worker_sdk/cpprun/dist'},
    'worker_sdk/cpprun/nn': {'worker_sdk/cpprun/dist', 'worker_sdk/cpprun/worker'},
    'worker_sdk/cpprun/data': {'worker_sdk/cpprun/dist', 'worker_sdk/cpprun/worker'},
    'worker_sdk/cpprun/optim': {'worker_sdk/cpprun/dist'},
    'worker_sdk/cpprun/trainer': {
        'worker_sdk/cpprun/worker',
        'worker_sdk/cpprun/dist',
        'worker_sdk/cpprun/nn',
        'worker_sdk/cpprun/data',
        'worker_sdk/cpprun/optim',
        'worker_sdk/cpprun/snapshot',
    },
    'worker_sdk/cpprun': SDK_PARTS,  # the umbrella headers
    'examples': {
        'worker_sdk',
        'worker_sdk/cpprun',
        *SDK_PARTS,
    },
    'tests/support/sim': {
        'common',
        'rendezvous/protocol',
        'rendezvous/core',
        'rendezvous/client/core',
        'agent/core',
    },
    'rendezvous/client/core': {'common', 'rendezvous/protocol'},
}
# May name everything: they are above the picture.
ABOVE = ('tests', 'bench')
BUILD_ONLY = ('cmake',)

PURE = {
    'common',
    'rendezvous/protocol',
    'rendezvous/core',
    'rendezvous/client/core',
    'agent/core',
    'worker_sdk/cpprun/pickle',
    'worker_sdk/cpprun/archive',
}
ASIO = {
    'rendezvous/server',
    'rendezvous/client',
    'rendezvous/etcd',
    'agent/daemon',
    'agent/process',
}
TORCH = {
    'worker_sdk',
    'worker_sdk/cpprun',
    'worker_sdk/cpprun/dist',
    'worker_sdk/cpprun/nccl',
    'worker_sdk/cpprun/nn',
    'worker_sdk/cpprun/data',
    'worker_sdk/cpprun/optim',
    'worker_sdk/cpprun/snapshot',
    'worker_sdk/cpprun/trainer',
    'examples',
}

# (include or target, modules that may name it, why). It must not reach others by a header.
OUTSIDE = [
    (
        r'boost/(asio|beast)|cpprun_asio$',
        ASIO,
        'Asio stays in server, client, etcd, daemon and process',
    ),
    (r'boost/process', {'agent/process', 'agent/daemon'}, 'processes are the business of agent'),
    (r'spdlog|cpprun_spdlog$', {'common/log'}, 'the log library stays behind common/log'),
    (
        r'CLI/|CLI11',
        {'launcher', 'launcher/options', 'launcher/ctl', 'examples'},
        "options are the programs' business",
    ),
    (r'(torch|ATen|c10)/|(lib)?torch|cpprun_torch', TORCH, 'LibTorch is for the SDK and examples'),
]
IMPURE_HEADERS = re.compile(
    r'^(thread|mutex|shared_mutex|condition_variable|future|stop_token|semaphore|barrier|latch'
    r'|filesystem|fstream|iostream|unistd\.h|pthread\.h|signal\.h|fcntl\.h|poll\.h|spawn\.h'
    r'|netdb\.h|time\.h|ctime|csignal|sys/.*|linux/.*|netinet/.*|arpa/.*)$'
)
# May be used below where a text table or exit needs it, and does no I/O.
PURE_EXCEPTIONS = {('common/signals.cpp', 'csignal'), ('common/signals.cpp', 'signal.h')}
IMPURE_CALLS = [
    (r'::now\s*\(', 'asks a clock; time is passed in'),
    (r'\brandom_device\b', 'asks for randomness; it is passed in'),
    (r'\b(?:secure_)?getenv\s*\(|\benviron\b', 'reads the environment; it is passed in'),
    (r'(?<![\w.>])(?:clock_gettime|gettimeofday|std::time|std::clock)\s*\(', 'asks a clock'),
    (r'\bstd::(?:this_thread|thread|jthread|mutex|async)\b', 'threads do not belong here'),
]
