#include "tests/support/sim/heard.hpp"

#include <algorithm>
#include <utility>

namespace cpprun::sim {

namespace {

// More than the jobs that one coordinator begins.
constexpr int64_t kOwnEpochs = 100;

std::string name_of(const control::World& world) {
  return "round " + std::to_string(world.round.value) + " of epoch " +
         std::to_string(world.epoch.value);
}

}  // namespace

// ---------------------------------------------------------------- what agents say

void Heard::on_message(const Membership* job, const control::Hello& from,
                       const control::AgentMessage& message) {
  const auto* facts = std::get_if<control::Register>(&message);
  const bool is_anew = facts && (!job || (job->is_over() && !job->has_led(facts->epoch)));
  if (is_anew) begin_anew();
  Member& member = members_[from.node.incarnation];
  const bool is_forgotten = facts && !is_anew && !job->nodes().contains(from.node.incarnation);
  if (from.connection < member.connection && !is_forgotten) return;
  if (facts) {
    member = Member{from.connection,
                    facts->has_snapshot_dir,
                    facts->addresses.empty() ? "" : facts->addresses.front(),
                    facts->snapshots,
                    {}};
    on_register(is_anew || has_no_memory(*job), from.node.incarnation, *facts);
  } else if (const auto* stopped = std::get_if<control::Stopped>(&message)) {
    member.snapshots = stopped->snapshots;
  } else if (const auto* told = std::get_if<control::Snapshots>(&message)) {
    member.snapshots = told->snapshots;
    const auto was = formed_.find(from.node.incarnation);
    const bool is_of_now = was != formed_.end() && was->second.resume &&
                           was->second.resume->snapshot.id == told->unusable;
    if (is_of_now) unusable_.insert(told->unusable);
    if (!told->unusable.empty()) doubted_.insert(told->unusable);
  } else if (const auto* strike = std::get_if<control::Strike>(&message)) {
    member.questions.emplace_back(strike->fault, strike->times);
  } else if (std::holds_alternative<control::Draining>(message)) {
    going_.insert(from.node.incarnation);
  } else if (const auto* leave = std::get_if<control::Leave>(&message)) {
    gone_.insert(from.node.incarnation);
    if (leave->is_unusable) going_.insert(from.node.incarnation);
  }
}

// Of the job before it nothing counts. Who has taken a job over may lead that one and no other.
void Heard::begin_anew() {
  *this = Heard(*checks_, first_epoch_, host_, is_heir_ && !has_begun_);
  has_begun_ = true;
}

void Heard::on_register(bool is_memory, Incarnation from, const control::Register& message) {
  if (message.is_draining) going_.insert(from);
  for (size_t i = 0; i < message.strikes.size(); ++i) {
    int64_t& known = strikes_[static_cast<int64_t>(i)];
    known = std::max(known, message.strikes[i]);
  }
  if (!is_memory) return;
  came_.insert(from);
  remember(from, message);
}

// Of worlds that this coordinator has not formed itself.
void Heard::remember(Incarnation from, const control::Register& message) {
  if (!message.world) return;
  const control::World& world = *message.world;
  const bool is_own =
      world.epoch >= first_epoch_ && world.epoch.value < first_epoch_.value + kOwnEpochs;
  if (is_own) return;
  const auto rank = [](const control::World& w) { return RoundName{w.epoch, w.round}; };
  if (newest_ && rank(world) < rank(*newest_)) return;
  if (!newest_ || rank(*newest_) < rank(world)) {
    newest_ = world;
    is_failure_charged_ = is_hang_charged_ = has_evidence_ = false;
  }
  const bool is_witness = !world.heir || world.heir->node == from;
  has_evidence_ = has_evidence_ || (is_witness && message.has_evidence);
  is_failure_charged_ = is_failure_charged_ || message.charged == control::Charge::Failure;
  is_hang_charged_ = is_hang_charged_ || message.charged == control::Charge::Hang;
}

// ---------------------------------------------------------------- what the coordinator says

void Heard::on_sent(Epoch epoch, Incarnation to, const control::CoordinatorMessage& message) {
  if (const auto* world = std::get_if<control::World>(&message)) {
    // Who has missed its world is told again, also one of a coordinator before this one.
    if (world->epoch != epoch) return;
    judge_memory(*world);
    const bool is_known = !formed_.empty() && formed_.begin()->second.round == world->round;
    if (!is_known) formed_now_[to] = *world;
  } else if (std::holds_alternative<control::Welcome>(message)) {
    judge_going_on();
  } else if (const auto* struck = std::get_if<control::Struck>(&message)) {
    on_struck(members_[to], *struck);
  }
}

void Heard::after_call(const Membership& job) {
  if (formed_now_.empty()) return;
  judge_heir(job);
  // Who is not told has lost its connection just now: then not all is known here.
  const control::World& world = formed_now_.begin()->second;
  if (static_cast<int64_t>(formed_now_.size()) == world.group_size) judge_snapshots();
  formed_ = std::exchange(formed_now_, {});
}

// ---------------------------------------------------------------- R13

void Heard::judge_memory(const control::World& world) {
  if (!newest_) return;
  const std::string where = name_of(world) + ": ";
  checks_->require(world.round > newest_->round, "S2: " + where + "its number was given before");
  const int64_t failures = newest_->restart_count + (is_failure_charged_ ? 1 : 0);
  const int64_t hangs = newest_->hang_restarts + (is_hang_charged_ ? 1 : 0);
  checks_->require(world.restart_count >= failures && world.hang_restarts >= hangs,
                   "R13: " + where + "restarts that agents know of are forgotten");
  checks_->require(world.operator_restarts >= newest_->operator_restarts,
                   "R13: " + where + "an operator's restarts are forgotten");
}

// ---------------------------------------------------------------- R17

// A job with an heir is led by it, or by whoever has heard from it; one that an heir has led, by
// nobody before that one is known to be dead.
void Heard::judge_going_on() {
  if (!newest_ || std::exchange(has_gone_on_, true) || is_heir_) return;
  const std::string where = "R17: gone on from " + name_of(*newest_);
  checks_->require(!newest_->heir || came_.contains(newest_->heir->node),
                   where + " without its heir");
  checks_->require(!newest_->is_moved || has_evidence_,
                   where + ", and nobody who must know says that who led it is dead");
}

// ---------------------------------------------------------------- R14, R15

// By this coordinator or by the one before it; null: there was none.
const control::World* Heard::round_before() const {
  if (!formed_.empty()) return &formed_.begin()->second;
  return newest_ ? &*newest_ : nullptr;
}

void Heard::judge_heir(const Membership& job) {
  const control::World* before = round_before();
  const std::optional<control::Heir>& now = formed_now_.begin()->second.heir;
  const std::string where = name_of(formed_now_.begin()->second) + ": ";
  if (before == nullptr) return;
  if (!before->heir) {  // who knows whether it was lost in silence
    checks_->require(!now || !formed_.empty(), "R14: " + where + "an heir after a round without");
    return;
  }
  const Incarnation heir = before->heir->node;
  if (heir == host_) return;  // that was us
  const auto node = job.nodes().find(heir);
  const bool is_there = node != job.nodes().end() &&
                        node->second.life == cpprun::Node::Life::Present &&
                        !node->second.is_draining();
  const bool is_free = gone_.contains(heir) || going_.contains(heir);
  checks_->require(!now || now->node == heir || (!is_there && is_free),
                   "R14: " + where + "another heir, though the one before has not gone");
  const bool stays = is_there && now;  // one that was lost in silence may be there, and is none
  checks_->require(!stays || node->second.is_connected(),
                   "R14: " + where + "formed while its heir is cut off");
  const bool is_host_going = host_ && going_.contains(*host_);
  checks_->require(
      !stays || !is_host_going,
      "R15: " + where + "formed by a coordinator that leaves, though its heir is there");
}

// ---------------------------------------------------------------- snapshots

bool Heard::has(const Member& member, const control::SnapshotName& snapshot) const {
  return std::find(member.snapshots.begin(), member.snapshots.end(), snapshot) !=
         member.snapshots.end();
}

// The newest that every node of the round has.
std::optional<control::SnapshotName> Heard::newest_of_all() const {
  std::vector<const Member*> owners;
  for (const auto& [incarnation, world] : formed_now_) {
    const Member& member = members_.at(incarnation);
    if (member.has_dir) owners.push_back(&member);
  }
  std::optional<control::SnapshotName> newest;
  if (owners.empty()) return newest;
  for (const control::SnapshotName& snapshot : owners.front()->snapshots) {
    const bool is_everywhere = !doubted_.contains(snapshot.id) &&
                               std::all_of(owners.begin(), owners.end(),
                                           [&](const Member* m) { return has(*m, snapshot); });
    if (is_everywhere && (!newest || newest->step < snapshot.step)) newest = snapshot;
  }
  return newest;
}

bool Heard::is_served(const control::Resume& resume) const {
  return std::any_of(formed_now_.begin(), formed_now_.end(), [&](const auto& entry) {
    const Member& member = members_.at(entry.first);
    return member.address == resume.source_address && has(member, resume.snapshot);
  });
}

void Heard::judge_snapshots() {
  const std::string where = "snapshots: " + name_of(formed_now_.begin()->second) + ": ";
  const std::optional<control::SnapshotName> newest = newest_of_all();
  std::optional<control::SnapshotName> chosen;
  for (const auto& [incarnation, world] : formed_now_) {
    const Member& member = members_.at(incarnation);
    if (!member.has_dir) continue;
    checks_->require(world.resume || !newest, where + "begins anew, though all have one");
    if (!world.resume) continue;
    const control::SnapshotName& snapshot = world.resume->snapshot;
    checks_->require(!chosen || *chosen == snapshot, where + "nodes begin with different ones");
    chosen = snapshot;
    checks_->require(!newest || snapshot.step >= newest->step,
                     where + "begins with an older one than all have");
    checks_->require(!unusable_.contains(snapshot.id), where + "begins with one that is unusable");
    const bool is_fetched = !world.resume->source_address.empty();
    checks_->require(is_fetched ? is_served(*world.resume) : has(member, snapshot),
                     where + "nobody has what a node is to begin with");
  }
}

// ---------------------------------------------------------------- faults of a plan

void Heard::on_struck(Member& member, const control::Struck& message) {
  const std::string where = "faults: fault " + std::to_string(message.fault) + " ";
  if (message.is_answer) {
    const bool is_asked =
        !member.questions.empty() && member.questions.front().first == message.fault;
    checks_->require(is_asked, where + "is answered, and was not asked for next");
    if (!is_asked) return;
    const int64_t times = std::exchange(member.questions.front().second, 0);
    member.questions.erase(member.questions.begin());
    checks_->require(!message.is_given || message.count <= times,
                     where + "strikes more often than it may");
  }
  if (!message.is_given) return;
  int64_t& known = strikes_[message.fault];
  // To all nodes with one count.
  checks_->require(message.count == known || message.count == known + 1, where + "is miscounted");
  known = std::max(known, message.count);
}

}  // namespace cpprun::sim
