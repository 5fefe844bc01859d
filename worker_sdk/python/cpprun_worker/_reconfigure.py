"""DefaultGroup: torch's default process group, which gets other members in the next round.

Since torch 2.15 a group over Gloo, or over the backend nccl2, can be given new members:
torch.distributed._reconfigure(). torch calls that experimental. Objects that hold the group stay
valid, and a round needs no new one. With an older torch or another backend, each round makes a
group of its own; the ranks of one job need the same torch.
"""

import inspect

import torch.distributed as dist
from torch.distributed import distributed_c10d as c10d

_OF_THE_USER = {'store', 'init_method', 'rank', 'world_size', 'group_name', 'enable_reconfigure'}
_GROUPS_PER_ROUND = 1 << 16


def is_possible(backend, options):
    """Whether this torch may be able to reconfigure a group of these arguments."""
    return (
        'enable_reconfigure' in inspect.signature(dist.init_process_group).parameters
        and isinstance(backend, str)
        and ':' not in backend  # torch reconfigures groups of one backend only
        and not _OF_THE_USER & options.keys()
    )


class _RoundStore(dist.Store):
    """A group keeps the store that it was made with. This one passes each call to the store of the
    current round."""

    def __init__(self):
        super().__init__()
        self.current = None


def _passes(name):
    def call(self, *args):
        return getattr(self.current, name)(*args)

    call.__name__ = name
    return call


for _name in (
    'add append check compare_set delete_key get has_extended_api list_keys multi_get multi_set'
    ' num_keys queue_len queue_pop queue_push set set_timeout wait'
).split():
    setattr(_RoundStore, _name, _passes(_name))


class DefaultGroup:
    """Used by the thread that trains."""

    def __init__(self, sockets):
        self._sockets = sockets
        self._store = _RoundStore()
        self._group = None
        self._arguments = None  # the group was made with
        self._entries = None  # torch's record of the group, between two rounds
        self._number = 0  # of the newest group in its round
        self._round = None

    def init(self, backend, options, this_round):
        """dist.init_process_group() with the ranks of the round. There is no default group."""
        self._number = self._number + 1 if self._round == this_round.number else 0
        self._round = this_round.number
        self._store.current = this_round.connect_store(backend, options)
        if self._entries is not None and self._arguments == (backend, options):
            self._register()
        else:
            self.drop()
            dist.init_process_group(
                backend,
                store=self._store,
                rank=this_round.rank,
                world_size=this_round.world_size,
                enable_reconfigure=True,
                **options,
            )
            if not c10d._supports_reconfigure():
                return  # the group is ready: its backend has ignored the flag
        group = c10d._get_default_group()
        self._reconfigure(group, options, this_round)
        self._group, self._arguments = group, (backend, options)

    def _reconfigure(self, group, options, this_round):
        number = this_round.number * _GROUPS_PER_ROUND + self._number
        size = this_round.world_size
        name = f'cpprun/reconfigure/{number}/'
        self._store.set(f'{name}{this_round.rank}', c10d._get_reconfigure_handle(group))
        handles = self._store.multi_get([f'{name}{rank}' for rank in range(size)])
        with self._sockets.appearing_of_groups():
            c10d._reconfigure(
                number, [each.decode() for each in handles], group, options.get('timeout')
            ).wait()
        # torch leaves these as they were.
        c10d._world.pg_group_ranks[group] = {rank: rank for rank in range(size)}
        c10d._update_default_pg(group)
        config = c10d.BackendConfig(c10d.Backend(c10d._world.pg_map[group][0]))
        c10d._maybe_attach_flight_recorder(group, config, list(range(size)))

    def leave(self):
        """If the next round can use the group: ends all others, and hides this one from torch.
        is_initialized() is false then, until the next init()."""
        # Of a port that stays the same in all rounds, only one store can be served.
        self._store.current = None
        group = c10d.GroupMember.WORLD
        if group is None or group is not self._group:
            self.drop()
            return
        world = c10d._world
        for other in list(world.pg_map):
            if other is not group:
                dist.destroy_process_group(other)
        self._entries = (
            *world.pg_map[group],
            world.pg_names[group],
            world.pg_backend_config[group],
            dict(world.pg_group_ranks[group]),
            world.pg_to_tag[group],
        )
        c10d._cleanup_process_group_global_state(group)
        c10d._update_default_pg(None)

    def drop(self):
        """The next init() makes a new group."""
        if self._entries is not None:
            self._group.shutdown()
        self._group = self._arguments = self._entries = None

    def _register(self):
        entries, self._entries = self._entries, None
        c10d._register_pg_in_world(self._group, *entries, add_to_default_tag=True)
        c10d._world.group_count = 1  # as after init_process_group(): new_group() counts on
        c10d._update_default_pg(self._group)
