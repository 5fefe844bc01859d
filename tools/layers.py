"""The layers of docs/ARCHITECTURE.md as tables: which modules and libraries a module may use."""

import re

SDK_PARTS = {
    f'worker_sdk/cpprun/{part}'
    for part in ('worker', 'dist', 'nn', 'data', 'optim', 'snapshot', 'trainer', 'elastic')
}

# The modules that each module may use. A file belongs to the module with the longest matching path.
# The agent and the launcher never use worker_sdk: code that they share with it is in lower modules.
ARROWS = {
    'common': set(),
    **{
        f'common/{part}': {'common'}
        for part in ('faults', 'machine', 'proof', 'state_dir', 'thread', 'traces')
    },
    'common/log': {'common', 'common/machine', 'common/thread'},
    'common/loop': {'common', 'common/machine', 'common/thread'},
    'common/tls': {'common', 'common/machine'},
    'common/http': {'common', 'common/machine', 'common/tls'},
    'snapshot_files/pickle': {'common'},
    'snapshot_files/archive': {'common', 'snapshot_files/pickle'},
    'snapshot_files/folders': {'common', 'snapshot_files/archive'},
    'rendezvous/protocol': {'common'},
    'rendezvous/protocol/worker': {'common'},
    'rendezvous/protocol/transfer': {
        'common',
        'rendezvous/protocol',
        'snapshot_files/folders',  # the label of an arena slot
    },
    'rendezvous/store': {'common', 'rendezvous/protocol'},
    'rendezvous/coordinator': {'common', 'rendezvous/protocol'},
    'rendezvous/observe': {'common', 'rendezvous/protocol', 'rendezvous/coordinator'},
    'rendezvous/server': {
        'common',
        'common/log',
        'common/loop',
        'common/machine',
        'common/proof',
        'common/thread',
        'common/tls',
        'rendezvous/protocol',
        'rendezvous/store',
        'rendezvous/coordinator',
        'rendezvous/observe',
    },
    'rendezvous/client': {
        'common',
        'common/log',
        'common/loop',
        'common/machine',  # detect_dead_peer(), send_without_delay(): headers alone
        'common/thread',
        'common/tls',
        'rendezvous/client/core',
        'rendezvous/protocol',
    },
    'rendezvous/client/core': {'common', 'rendezvous/protocol'},
    'rendezvous/client/store': {'common', 'common/machine', 'rendezvous/protocol'},
    'rendezvous/client/etcd': {
        'common',
        'common/loop',
        'common/tls',
        'rendezvous/client',  # connecting
        'rendezvous/coordinator',
        'rendezvous/protocol',
    },
    'agent/core': {'common', 'common/faults', 'rendezvous/protocol'},
    'agent/rendezvous': {
        'common',
        'common/log',
        'common/loop',
        'common/machine',
        'common/proof',  # the node's key
        'common/tls',
        'rendezvous/protocol',
        'rendezvous/client',
        'agent/core',
    },
    'agent/process': {
        'common',
        'common/log',
        'common/loop',
        'common/machine',
        'common/thread',
        'rendezvous/protocol/worker',
        'snapshot_files/archive',  # its crc32
    },
    'agent/daemon': {
        'common',
        'common/faults',
        'common/http',  # the notice of a failed job
        'common/log',
        'common/loop',
        'common/machine',
        'common/proof',  # the node's key, the MAC of an admin command
        'common/state_dir',
        'common/thread',
        'common/tls',
        'common/traces',
        'rendezvous/protocol',
        'rendezvous/protocol/transfer',
        'rendezvous/protocol/worker',
        'rendezvous/client',
        'rendezvous/client/core',
        'agent/core',
        'agent/process',
        'snapshot_files/archive',  # its crc32
        'snapshot_files/folders',
    },
    'launcher/cpprun': {
        'common',
        'common/log',
        'common/machine',  # host name, descriptor limit
        'common/thread',  # files that a slow file system holds
        'common/tls',  # loads the job's secret
        'rendezvous/client',  # a standby announces itself at the job's endpoint
        'rendezvous/client/etcd',
        'rendezvous/protocol',
        'rendezvous/server',
        'agent/core',  # its configuration
        'agent/daemon',
        'launcher/doctor',  # preflight checks
        'launcher/options',
        'launcher/report',  # --report
        'launcher/ssh',  # --hosts
    },
    'launcher/doctor': {'common', 'common/machine'},
    'launcher/report': {'common', 'common/machine', 'launcher/doctor'},
    'launcher/options': {
        'common',
        'common/faults',
        'common/machine',
        'common/tls',  # the secret as it is given
        'agent/core',  # its configuration
    },
    'launcher/ssh/plan': {
        'common',
        'common/tls',  # the secret as it is given
        'launcher/options',
    },
    'launcher/ssh': {
        'common',
        'common/machine',
        'common/thread',
        'common/tls',  # the secret as it arrives
        'agent/process',  # spawning, splitting of lines
        'launcher/options',
        'launcher/ssh/plan',
    },
    'launcher/cpprunctl': {
        'common',
        'common/faults',
        'common/http',  # a socket with a deadline
        'common/log',
        'common/machine',
        'common/proof',
        'common/thread',
        'common/tls',
        'launcher/doctor',
        'launcher/options',  # for explain
        'launcher/report',
        'launcher/ssh/plan',
        'agent/core',  # its configuration
        'agent/rendezvous',  # rendezvous-client
        'rendezvous/server',
        'rendezvous/protocol',  # admin commands
        'rendezvous/client/store',  # the meeting point of doctor on several nodes
        'snapshot_files/pickle',
        'snapshot_files/archive',
        'snapshot_files/folders',
    },
    'worker_sdk': SDK_PARTS,  # the target that links all parts
    'worker_sdk/cpprun/worker': {
        'common',
        'common/machine',  # UniqueFd, Mapping: headers alone
        'common/thread',  # BlockedSignals, a header alone
        'rendezvous/protocol/worker',
        'rendezvous/client/store',
    },
    'worker_sdk/cpprun/snapshot': {
        'common',
        'common/machine',  # UniqueFd, a header alone
        'common/thread',  # BlockedSignals, a header alone
        'snapshot_files/pickle',
        'snapshot_files/archive',
        'snapshot_files/folders',
        'worker_sdk/cpprun/worker',
        'worker_sdk/cpprun/dist',
        'worker_sdk/cpprun/data',
        'worker_sdk/cpprun/optim',
    },
    'worker_sdk/cpprun/dist': {
        'worker_sdk/cpprun/worker',
        'common',
        'common/machine',
        'snapshot_files/pickle',  # objects
    },
    'worker_sdk/cpprun/nccl': {'worker_sdk/cpprun/dist'},
    'worker_sdk/cpprun/nn': {'common', 'worker_sdk/cpprun/dist', 'worker_sdk/cpprun/worker'},
    'worker_sdk/cpprun/data': {'common', 'worker_sdk/cpprun/dist', 'worker_sdk/cpprun/worker'},
    'worker_sdk/cpprun/optim': {'worker_sdk/cpprun/dist'},
    'worker_sdk/cpprun/trainer': {
        'worker_sdk/cpprun/worker',
        'worker_sdk/cpprun/dist',
        'worker_sdk/cpprun/nn',
        'worker_sdk/cpprun/data',
        'worker_sdk/cpprun/optim',
        'worker_sdk/cpprun/snapshot',
    },
    'worker_sdk/cpprun/elastic': {
        'common',
        'common/machine',  # UniqueFd, a header alone
        'snapshot_files/archive',  # for the header of snapshot's tensors
        'snapshot_files/pickle',  # the state that ranks share
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
        'rendezvous/store',
        'rendezvous/coordinator',
        'rendezvous/client/core',
        'agent/core',
    },
}
# Above all modules: may use everything.
ABOVE = ('tests', 'bench')
BUILD_ONLY = ('cmake',)

PURE = {
    'common',
    'snapshot_files/pickle',
    'snapshot_files/archive',
    'rendezvous/protocol',
    'rendezvous/protocol/worker',
    'rendezvous/protocol/transfer',
    'rendezvous/store',
    'rendezvous/coordinator',
    'rendezvous/observe',
    'rendezvous/client/core',
    'agent/core',
    'launcher/ssh/plan',
}
ASIO = {
    'common/loop',
    'rendezvous/server',
    'rendezvous/client',
    'rendezvous/client/etcd',
    'agent/daemon',
    'agent/process',
    'agent/rendezvous',
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
    'worker_sdk/cpprun/elastic',
    'examples',
}

# (include or target, modules that may use it, why). No header may pass it on to other modules.
OUTSIDE = [
    (
        r'boost/(asio|beast)|cpprun_asio$',
        ASIO,
        'Asio stays in common/loop, server, client, etcd and agent',
    ),
    (r'boost/process', {'agent/process', 'agent/daemon'}, 'only the agent manages processes'),
    (r'spdlog|cpprun_spdlog$', {'common/log'}, 'the log library stays behind common/log'),
    (
        r'CLI/|CLI11',
        {'launcher/options', 'launcher/cpprunctl', 'examples'},
        "only programs parse options",
    ),
    (r'(torch|ATen|c10)/|(lib)?torch|cpprun_torch', TORCH, 'LibTorch is for the SDK and examples'),
]
IMPURE_HEADERS = re.compile(
    r'^(thread|mutex|shared_mutex|condition_variable|future|stop_token|semaphore|barrier|latch'
    r'|filesystem|fstream|iostream|unistd\.h|pthread\.h|signal\.h|fcntl\.h|poll\.h|spawn\.h'
    r'|netdb\.h|time\.h|ctime|csignal|sys/.*|linux/.*|netinet/.*|arpa/.*)$'
)
# A table of signal names needs them; they do no I/O.
PURE_EXCEPTIONS = {('common/signals.cpp', 'csignal'), ('common/signals.cpp', 'signal.h')}
IMPURE_CALLS = [
    (r'::now\s*\(', 'asks a clock; time is passed in'),
    (r'\brandom_device\b', 'asks for randomness; it is passed in'),
    (r'\b(?:secure_)?getenv\s*\(|\benviron\b', 'reads the environment; it is passed in'),
    (r'(?<![\w.>])(?:clock_gettime|gettimeofday|std::time|std::clock)\s*\(', 'asks a clock'),
    (r'\bstd::(?:this_thread|thread|jthread|mutex|async)\b', 'pure modules use no threads'),
]
