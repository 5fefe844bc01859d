"""torch's tests that cannot show anything about cpprun: a pattern of names, and the reason.

A name is FILE::CLASS::TEST. The first pattern that matches counts.
"""

import fnmatch

MOCKS_AGENT = "puts a mock in the place of torch's agent or rendezvous inside its process"
TORCH_ALONE = "calls a function of torch's own, neither a launcher nor a store's server"
OTHER_STORE = "uses a store without a server: a file, a hash table or a class in Python"
CLIENT_ALONE = "ends in torch's client, before or without a server"
IN_PROCESS = "is about torch's server as an object of the client's process"

NOT_APPLICABLE = {
    # torch.distributed.run and launcher/api.py
    'test_run.py::ElasticLaunchTest::test_launch_elastic_agent_raise_exception': MOCKS_AGENT,
    'test_run.py::ElasticLaunchTest::test_launch_shutdown': MOCKS_AGENT,
    'test_run.py::ElasticLaunchTest::test_min_max_nodes_parse': TORCH_ALONE,
    'test_run.py::ElasticLaunchTest::test_is_not_torchelastic_launched': TORCH_ALONE,
    'test_run.py::ElasticLaunchTest::test_nproc_gpu_launch_configurations':
        'counts the devices of a mock of torch.cuda; cpprun counts those of the machine',
    'api_test.py::ElasticLaunchTest::test_launch_elastic_agent_raise_exception': MOCKS_AGENT,
    'api_test.py::ElasticLaunchTest::test_launch_shutdown': MOCKS_AGENT,
    'api_test.py::ElasticLaunchTest::test_rdzv_handler_shutdown_on_agent_*': MOCKS_AGENT,
    'api_test.py::ElasticLaunchTest::test_get_entrypoint_name': TORCH_ALONE,
    # Stores
    'test_store.py::FileStoreTest::*': OTHER_STORE,
    'test_store.py::HashStoreTest::*': OTHER_STORE,
    'test_store.py::PrefixFileStoreTest::*': OTHER_STORE,
    'test_store.py::PythonStoreTest::*': OTHER_STORE,
    'test_store.py::TestPythonStore::*': OTHER_STORE,
    'test_store.py::RendezvousFileTest::*': OTHER_STORE,
    'test_store.py::TestMultiThreadedWait::test_wait_*hash_store': OTHER_STORE,
    'test_store.py::TestMultiThreadedWait::test_wait_*file_store': OTHER_STORE,
    'test_store.py::RendezvousTest::*': CLIENT_ALONE,
    'test_store.py::RendezvousTCPTest::test_common_errors': CLIENT_ALONE,
    'test_store.py::RendezvousTCPTest::test_dns_timeout': CLIENT_ALONE,
    'test_store.py::TestClientProtocol::*': CLIENT_ALONE,
    'test_store.py::*TCPStoreTest::test_world_size_0_raises': CLIENT_ALONE,
    'test_store.py::*TCPStoreTest::test_repr': IN_PROCESS,
    'test_store.py::*TCPStoreTest::test_take_over_listen_socket': IN_PROCESS,
    'test_store.py::*TCPStoreTest::test_store_timeout_on_missing_clients':
        IN_PROCESS + ', whose constructor waits for the clients; cpprunctl serve waits for none',
    # elastic/rendezvous and elastic/utils
    'c10d_rendezvous_backend_test.py::FileStoreBackendTest::*': OTHER_STORE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_endpoint_file_*': OTHER_STORE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_file_path_is_invalid': OTHER_STORE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_tempfile_creation_fails':
        OTHER_STORE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_store_is_unreachable':
        CLIENT_ALONE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_store_type_is_invalid':
        TORCH_ALONE,
    'c10d_rendezvous_backend_test.py::CreateBackendTest::test_*_read_timeout_is_invalid':
        TORCH_ALONE,
    'distributed_test.py::DistributedUtilTest::test_create_store_no_port_multi': TORCH_ALONE,
    'distributed_test.py::DistributedUtilTest::test_create_store_timeout_on_worker': CLIENT_ALONE,
    'distributed_test.py::DistributedUtilTest::test_port_already_in_use_on_worker': CLIENT_ALONE,
}

# Their stores are made at import or for the whole class.
MADE_BEFORE = ('test_store.py::TestMultiThreadedWait::',
               'c10d_rendezvous_backend_test.py::TCPStoreBackendTest::')


def reason_for(name):
    """None if cpprun can be shown."""
    return next((reason for pattern, reason in NOT_APPLICABLE.items()
                 if fnmatch.fnmatchcase(name, pattern)), None)


def unmatched(names):
    """The patterns of the names' files that match none of them."""
    files = {name.split('::')[0] for name in names}
    return [pattern for pattern in NOT_APPLICABLE if pattern.split('::')[0] in files
            and not fnmatch.filter(names, pattern)]
