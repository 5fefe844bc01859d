"""One of the clients of store_stress.py, and their shared memory.

A client writes its next command and the store's answers into shared memory, so that they survive
its death. A command in flight at that moment may or may not have an effect, and its bytes may reach
the store after its successor's first ones; everything else is exact:

  count     a client's own counter: what `add` answers grows by 1, and by no more than was asked for
  ticket    numbers that all draw from one counter: no two get the same
  gate      `wait` ends after its key was set, not before; then `get` has what was set
  lock      compare_set lets one in at a time
  big       a value is there whole or not at all
"""

import datetime
import mmap
import time

import torch.distributed as dist

CLIENTS, LOCKS, TICKETS = 64, 4, 20_000  # tickets are counted for each client
LONG = datetime.timedelta(seconds=30)
# The record of a client: commands begun, commands answered, the newest answer, and so on.
FIELDS = ('begun', 'answered', 'newest', 'tickets', 'asked', 'passed', 'opening', 'opened',
          'expired', 'sums', 'cut', 'doing', 'big')
NOTHING, IN_WAIT, IN_LOCK = range(3)


class Shared:
    """Numbers of 64 bits that survive the process that wrote them."""

    def __init__(self):
        size = CLIENTS * len(FIELDS) + LOCKS + 1 + CLIENTS * TICKETS
        self.all = memoryview(mmap.mmap(-1, 8 * size)).cast('q')
        self.inside = self.all[CLIENTS * len(FIELDS) :][: LOCKS + 1]  # stops after this one
        self.drawn = self.all[CLIENTS * len(FIELDS) + LOCKS + 1 :]

    def of(self, client):
        return Known(self.all[client * len(FIELDS) :][: len(FIELDS)])

    @property
    def is_over(self):
        return self.inside[LOCKS] != 0

    def end(self):
        self.inside[LOCKS] = 1

    def tickets_of(self, client):
        return self.drawn[client * TICKETS :][: self.of(client).tickets]


class Known:
    """The numbers of one client, by their names."""

    def __init__(self, numbers):
        object.__setattr__(self, 'numbers', numbers)

    def __getattr__(self, name):
        return self.numbers[FIELDS.index(name)]

    def __setattr__(self, name, value):
        self.numbers[FIELDS.index(name)] = value


def must(holds, text):
    if not holds:
        raise AssertionError(text)


def payload(client, number):
    return f'{client}.{number} '.encode() * (1 + number % 50)


class Client:
    def __init__(self, port, shared, number, life, chance):
        self.name = f'{number}.{life}'
        self.store = dist.TCPStore('127.0.0.1', port, is_master=False, wait_for_workers=False,
                                   timeout=LONG)
        self.shared, self.number, self.chance = shared, number, chance
        self.known = shared.of(number)
        self.next_one = (number + 1) % CLIENTS  # the client whose gates this one opens

    def run(self):
        self.clean_up()
        acts = (self.count, self.draw_ticket, self.open_gate, self.pass_gate, self.take_lock,
                self.keep_big)
        while not self.shared.is_over:
            self.chance.choice(acts)()
            time.sleep(self.chance.uniform(0, 0.04))  # otherwise 64 clients only wait for a CPU

    def clean_up(self):
        """The work of the client's predecessor, which may have died with a lock."""
        self.known.doing = NOTHING
        for lock in range(LOCKS):
            if self.shared.inside[lock] == self.number + 1:
                self.known.cut += 1
                self.shared.inside[lock] = 0
            self.release_for_the_dead(lock, self.store.get(f'lock/{lock}').decode())

    def release_for_the_dead(self, lock, holder):
        """A late command of a predecessor may have taken a lock that no client then entered."""
        if holder.split('.')[0] == str(self.number):
            self.store.compare_set(f'lock/{lock}', holder, 'free')

    def count(self):
        known = self.known
        known.begun += 1
        got = self.store.add(f'count/{self.number}', 1)
        must(known.newest < got <= known.begun,
             f'count: {got} after {known.newest}, asked {known.begun} times')
        known.newest = got
        known.answered += 1

    def draw_ticket(self):
        if self.known.tickets == TICKETS:
            return
        self.known.asked += 1
        got = self.store.add('tickets', 1)
        self.shared.drawn[self.number * TICKETS + self.known.tickets] = got
        self.known.tickets += 1

    def open_gate(self):
        theirs, mine = self.shared.of(self.next_one), self.known
        number = mine.opened
        if number >= theirs.passed + 3:
            return
        mine.opening = number + 1
        self.store.set(f'gate/{self.next_one}/{number}', payload(self.next_one, number))
        mine.opened = number + 1

    def pass_gate(self):
        opener, number = self.shared.of((self.number - 1) % CLIENTS), self.known.passed
        is_open = opener.opened > number
        key = f'gate/{self.number}/{number}'
        patience = datetime.timedelta(milliseconds=self.chance.choice((5, 50, 500)))
        self.known.doing = IN_WAIT
        try:
            self.store.wait([key], LONG if is_open else patience)
        except dist.DistStoreError as error:
            must(not is_open and 'timeout' in str(error), f'wait for {key}: {error}')
            self.known.expired += 1
            return
        finally:
            self.known.doing = NOTHING
        must(opener.opening > number, f'the wait for {key} ended before it was set')
        got = self.store.get(key)
        must(got == payload(self.number, number), f'{key} has {got[:40]}')
        self.known.passed = number + 1
        self.store.delete_key(key)

    def take_lock(self):
        lock, inside = self.chance.randrange(LOCKS), self.shared.inside
        holder = self.store.compare_set(f'lock/{lock}', 'free', self.name).decode()
        if holder != self.name:
            return self.release_for_the_dead(lock, holder)
        must(inside[lock] == 0, f'lock {lock}: {inside[lock] - 1} is there with {self.name}')
        inside[lock] = self.number + 1
        self.known.doing = IN_LOCK
        value = int(self.store.get(f'sum/{lock}'))
        time.sleep(self.chance.uniform(0, 0.01))  # time for others to enter, and to be killed
        self.store.set(f'sum/{lock}', str(value + 1))
        self.known.sums += 1
        must(inside[lock] == self.number + 1, f'lock {lock}: {inside[lock] - 1} came in as well')
        self.known.doing = NOTHING
        inside[lock] = 0
        self.store.compare_set(f'lock/{lock}', self.name, 'free')

    def keep_big(self):
        """64 KiB and more of equal bytes: a torn value would have two kinds."""
        self.known.big += 1
        number = self.known.big
        self.store.set(f'big/{self.number}', bytes([number % 251]) * (65536 + number))
        got = self.store.get(f'big/{self.number}')
        newest = len(got) - 65536
        must(0 < newest <= number and got == bytes([newest % 251]) * len(got), 'a torn value')
