#include "cpprun/dist/group/round.hpp"

#include "cpprun/dist/group/group_sockets.hpp"
#include "cpprun/dist/group/make_group.hpp"
#include "cpprun/dist/init/store_rendezvous.hpp"

namespace cpprun::dist {

void begin_round(int64_t round) {
  begin_round_of_stores(round);
  GroupSockets::forget();
  GroupSockets::follow();
}

void wake_round() { GroupSockets::shut_down(); }

void leave_round() { abandon_groups(); }

}  // namespace cpprun::dist
