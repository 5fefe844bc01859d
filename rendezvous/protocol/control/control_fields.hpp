// The fields of each control message, listed once for both directions of the codec.
//
// fields(visit, message) calls visit("name", member) for each; name_of(message) is its name on the
// wire.
#pragma once

#include "rendezvous/protocol/control/control.hpp"
#include "rendezvous/protocol/control/election_values.hpp"

namespace cpprun::control {

void fields(auto&& v, NodeId& m) {
  v("name", m.name);
  v("incarnation", m.incarnation);
}
void fields(auto&& v, Hello& m) {
  v("protocol", m.protocol);
  v("version", m.version);
  v("run_id", m.run_id);
  v("node", m.node);
  v("connection", m.connection);
  v("token", m.token);
}
void fields(auto&& v, JobSpec& m) {
  v("min_nodes", m.min_nodes);
  v("max_nodes", m.max_nodes);
  v("max_restarts", m.max_restarts);
  v("has_fixed_ranks", m.has_fixed_ranks);
  v("is_agent_store", m.is_agent_store);
  v("is_store_for_members", m.is_store_for_members);
  v("is_store_on_main_port", m.is_store_on_main_port);
  v("master_addr", m.master_addr);
  v("master_port", m.master_port);
  v("last_call_ns", m.last_call);
  v("expected_nodes", m.expected_nodes);
  v("scale_up_interval_ns", m.scale_up_interval);
  v("heartbeat_ns", m.heartbeat);
  v("node_lease_ns", m.lease);
  v("startup_failures", m.startup_failures);
  v("link_check_bytes", m.link_check_bytes);
  v("exclude_after", m.exclude_after);
  v("stops_on_repeat", m.stops_on_repeat);
  v("max_hangs", m.max_hangs);
  v("max_node_losses", m.max_node_losses);
  v("restart_backoff_ns", m.restart_backoff);
  v("stragglers", m.stragglers);
}
void fields(auto&& v, SnapshotName& m) {
  v("step", m.step);
  v("id", m.id);
}
void fields(auto&& v, PeerAddress& m) {
  v("address", m.address);
  v("port", m.port);
}
void fields(auto&& v, HostRecord& m) {
  v("host", m.host);
  v("failures", m.failures);
  v("failed_starts", m.failed_starts);
  v("hangs", m.hangs);
  v("failed_checks", m.failed_checks);
  v("losses", m.losses);
  v("slow", m.slow);
  v("exclusion", m.exclusion);
  v("reason", m.reason);
}
void fields(auto&& v, HostRecords& m) {
  v("revision", m.revision);
  v("hosts", m.hosts);
}
void fields(auto&& v, NodeCheck& m) {
  v("check_state", m.state);
  v("why", m.why);
}
void fields(auto&& v, Standby& m) {
  v("node", m.node);
  v("address", m.address);
  v("port", m.port);
}
void fields(auto&& v, ResumePoint& m) {
  v("snapshot", m.snapshot);
  v("source_address", m.source_address);
  v("source_port", m.source_port);
}
void fields(auto&& v, PastFailures& m) {
  v("last", m.last);
  v("last_step", m.last_step);
  v("repeats", m.repeats);
  v("fruitless", m.fruitless);
  v("best_step", m.best_step);
  v("best_snapshot", m.best_snapshot);
  v("quick", m.quick);
}
void fields(auto&& v, ClassBudgets& m) {
  v("max_hangs", m.max_hangs);
  v("node_losses", m.node_losses);
  v("max_node_losses", m.max_node_losses);
}
void fields(auto&& v, RankAssignment& m) {
  v("term", m.term);
  v("round", m.round);
  v("group_rank", m.group_rank);
  v("group_size", m.group_size);
  v("base_rank", m.base_rank);
  v("world_size", m.world_size);
  v("base_role_rank", m.base_role_rank);
  v("role_world_size", m.role_world_size);
  v("master_addr", m.master_addr);
  v("master_port", m.master_port);
  v("store_port", m.store_port);
  v("is_agent_store", m.is_agent_store);
  v("restart_count", m.restart_count);
  v("hang_restarts", m.hang_restarts);
  v("admin_restarts", m.admin_restarts);
  v("wanted_nodes", m.wanted_nodes);
  v("max_restarts", m.max_restarts);
  v("resume", m.resume);
  v("snapshot_secret", m.snapshot_secret);
  v("replicas_of", m.replicas_of);
  v("replicas_at", m.replicas_at);
  v("host_rank", m.host_rank);
  v("is_led_by_standby", m.is_led_by_standby);
  v("needs_proof", m.needs_admin_token);
  v("standby", m.standby);
  v("job_key", m.job_key);
  v("past_failures", m.past_failures);
  v("budgets", m.budgets);
}
void fields(auto&& v, JobResult& m) {
  v("is_success", m.is_success);
  v("failure_summary", m.failure_summary);
  v("is_resumable", m.is_resumable);
  v("root_cause", m.root_cause);
  v("world_size", m.world_size);
  v("same_startup_failures", m.same_startup_failures);
  v("same_failures", m.same_failures);
  v("why_no_retry", m.why_no_retry);
}
void fields(auto&& v, Register& m) {
  v("job_spec", m.job_spec);
  v("addresses", m.addresses);
  v("interface_addresses", m.interface_addresses);
  v("local_addr", m.local_addr);
  v("nproc", m.nproc);
  v("role", m.role);
  v("node_rank", m.node_rank);
  v("reserved_port", m.reserved_port);
  v("reported_phase", m.reported_phase);
  v("round", m.round);
  v("term", m.term);
  v("is_draining", m.is_draining);
  v("has_snapshot_dir", m.has_snapshot_dir);
  v("snapshots", m.snapshots);
  v("snapshot_port", m.snapshot_port);
  v("keeps_replicas", m.keeps_replicas);
  v("fault_counts", m.fault_counts);
  v("clock_domain", m.clock_domain);
  v("control_port", m.control_port);
  v("assignment", m.assignment);
  v("has_evidence", m.has_evidence);
  v("knows_standby", m.knows_standby);
  v("has_worker_lease", m.has_worker_lease);
  v("charged", m.charged);
  v("is_stop_requested", m.is_stop_requested);
  v("job_result", m.decided);
  v("reports_progress", m.reports_progress);
  v("reports_log_lines", m.reports_log_lines);
  v("has_default_run_id", m.has_default_run_id);
  v("pid", m.pid);
  v("host_records", m.host_records);
  v("node_check", m.node_check);
  v("knows_slow_ranks", m.knows_slow_ranks);
  v("reads_log_files", m.reads_log_files);
  v("link_port", m.link_port);
  v("link_secret", m.link_secret);
}
void fields(auto&& v, Ping& m) { v("seq", m.seq); }
void fields(auto&& v, WorkerStarts& m) {
  v("forked", m.forked);
  v("spawned", m.spawned);
  v("spawned_by", m.spawned_by);
  v("preload_state", m.preload);
  v("import_time_ns", m.import_time);
  v("saved_time_ns", m.saved_time);
  v("shared_bytes", m.shared_bytes);
}
void fields(auto&& v, Started& m) {
  v("round", m.round);
  v("starts", m.starts);
}
void fields(auto&& v, ErrorReport& m) {
  v("path", m.path);
  v("message", m.message);
  v("traceback", m.traceback);
  v("stamp_us", m.stamp);
  v("file_time_us", m.file_time);
  v("is_readable", m.is_readable);
  v("is_consequence", m.is_consequence);
}
void fields(auto&& v, WorkerExit& m) {
  v("local_rank", m.local_rank);
  v("rank", m.rank);
  v("pid", m.pid);
  v("exit_code", m.exit_code);
  v("has_core", m.has_core);
  v("is_oom_kill", m.is_oom_kill);
  v("is_stopped_by_us", m.is_stopped_by_us);
  v("hang", m.hang);
  v("step", m.step);
  v("started_at_ns", m.started_at);
  v("ended_at_ns", m.ended_at);
  v("ended_at_wall_us", m.ended_at_wall);
  v("error", m.error);
  v("last_lines", m.last_lines);
}
void fields(auto&& v, RootCause& m) {
  v("node", m.node);
  v("end", m.end);
  v("why", m.why);
}
void fields(auto&& v, Failed& m) {
  v("round", m.round);
  v("end", m.end);
  v("is_fatal", m.is_fatal);
  v("why", m.why);
  v("damaged_snapshot", m.damaged_snapshot);
  v("sent_at_ns", m.sent_at);
}
void fields(auto&& v, Done& m) { v("round", m.round); }
void fields(auto&& v, Stopped& m) {
  v("round", m.round);
  v("reserved_port", m.reserved_port);
  v("snapshots", m.snapshots);
  v("has_saved", m.has_saved);
  v("failure", m.failure);
  v("node_check", m.node_check);
  v("step", m.step);
}
void fields(auto&& v, Leave& m) {
  v("why", m.why);
  v("has_saved", m.has_saved);
  v("is_unusable", m.is_unusable);
}
void fields(auto&& v, Draining& m) { v("round", m.round); }
void fields(auto&& v, Snapshots& m) {
  v("snapshots", m.snapshots);
  v("unusable", m.unusable);
}
void fields(auto&& v, FaultPermitRequest& m) {
  v("fault", m.fault);
  v("times", m.times);
  v("where", m.where);
  v("step", m.step);
  v("epoch", m.epoch);
}
void fields(auto&& v, Ack& m) { v("is_success", m.is_success); }
void fields(auto&& v, Registered& m) {
  v("term", m.term);
  v("coordinator", m.coordinator);
  v("version", m.version);
  v("heartbeat_ns", m.heartbeat);
  v("node_lease_ns", m.lease);
  v("is_standby", m.is_standby);
  v("takes_time_spent", m.takes_time_spent);
  v("takes_compute_times", m.takes_compute_times);
  v("takes_processes", m.takes_processes);
}
void fields(auto&& v, Occupant& m) {
  v("host", m.host);
  v("pid", m.pid);
}
void fields(auto&& v, Refused& m) {
  v("why", m.why);
  v("occupant", m.occupant);
  v("is_other_job", m.is_other_job);
}
void fields(auto&& v, Wait& m) {
  v("why", m.why);
  v("is_spare", m.is_spare);
  v("is_reminder", m.is_reminder);
  v("standby", m.standby);
  v("awaits_redirect", m.awaits_redirect);
  v("is_excluded", m.is_excluded);
  v("missing_nodes", m.missing_nodes);
  v("delay_ns", m.delay);
}
void fields(auto&& v, Pong& m) {
  v("seq", m.seq);
  v("worker_lease_ns", m.worker_lease);
}
void fields(auto&& v, Stop& m) {
  v("round", m.round);
  v("cause", m.cause);
  v("why", m.why);
  v("charged", m.charged);
}
void fields(auto&&, Bye&) {}
void fields(auto&& v, FaultPermit& m) {
  v("fault", m.fault);
  v("count", m.count);
  v("is_permitted", m.is_permitted);
  v("is_answer", m.is_answer);
  v("where", m.where);
  v("step", m.step);
  v("epoch", m.epoch);
}
void fields(auto&& v, AdminCommand& m) {
  v("id", m.id);
  v("kind", m.kind);
  v("is_resumable", m.is_resumable);
  v("node", m.node);
  v("nodes", m.nodes);
  v("reason", m.reason);
}
void fields(auto&& v, AdminReply& m) {
  v("id", m.id);
  v("is_done", m.is_done);
  v("text", m.text);
}
void fields(auto&& v, ShutdownRequest& m) {
  v("saves", m.saves);
  v("why", m.why);
  v("others_continue", m.others_continue);
}
void fields(auto&& v, AdminHello& m) {
  v("protocol", m.protocol);
  v("version", m.version);
}
void fields(auto&& v, AdminRequest& m) {
  v("run_id", m.run_id);
  v("admin_command", m.command);
  v("mac", m.mac);
}
void fields(auto&& v, Challenge& m) {
  v("nonce", m.nonce);
  v("id", m.id);
}
void fields(auto&& v, Watch& m) { v("lasts_ns", m.lasts); }
void fields(auto&& v, Progress& m) {
  v("round", m.round);
  v("steps", m.steps);
  v("step_us", m.step_us);
}
void fields(auto&& v, TimeSpent& m) {
  v("spent_ns", m.spent);
  v("submissions", m.submissions);
}
void fields(auto&& v, ComputeTimes& m) {
  v("round", m.round);
  v("steps", m.steps);
  v("compute_us", m.compute_us);
}
void fields(auto&& v, WorkerProcesses& m) {
  v("round", m.round);
  v("pids", m.pids);
  v("memory_mib", m.memory_mib);
  v("log_dir", m.log_dir);
}
void fields(auto&& v, SlowRank& m) {
  v("round", m.round);
  v("rank", m.rank);
  v("is_slow", m.is_slow);
  v("compute_us", m.compute_us);
  v("median_us", m.median_us);
  v("action", m.action);
}
void fields(auto&& v, CheckLink& m) {
  v("number", m.number);
  v("peer", m.peer);
  v("secret", m.secret);
  v("bytes", m.bytes);
}
void fields(auto&& v, LinkResult& m) {
  v("number", m.number);
  v("why", m.why);
  v("bytes", m.bytes);
  v("took_ns", m.took);
}
void fields(auto&& v, LogTailRequest& m) {
  v("local_rank", m.local_rank);
  v("lasts_ns", m.lasts);
}
void fields(auto&& v, LogLines& m) {
  v("round", m.round);
  v("local_rank", m.local_rank);
  v("has_files", m.has_files);
  v("out", m.out);
  v("err", m.err);
}
void fields(auto&& v, LogRequest& m) {
  v("id", m.id);
  v("run_id", m.run_id);
  v("mac", m.mac);
  v("reader", m.reader);
  v("node", m.node);
  v("skip", m.skip);
  v("round", m.round);
  v("lines", m.lines);
  v("offsets", m.offsets);
  v("files", m.files);
}
void fields(auto&& v, LogPart& m) {
  v("stream", m.stream);
  v("offset", m.offset);
  v("file", m.file);
  v("gap", m.gap);
  v("bytes", m.bytes);
}
void fields(auto&& v, LogNode& m) {
  v("id", m.id);
  v("group_rank", m.group_rank);
  v("can_read", m.can_read);
}
void fields(auto&& v, LogReply& m) {
  v("id", m.id);
  v("why", m.why);
  v("is_job_over", m.is_job_over);
  v("nodes_in_all", m.nodes_in_all);
  v("nodes", m.nodes);
  v("round", m.round);
  v("next_round", m.next_round);
  v("base_rank", m.base_rank);
  v("has_files", m.has_files);
  v("is_ended", m.is_ended);
  v("has_more", m.has_more);
  v("parts", m.parts);
}
void fields(auto&& v, AnnounceLeader& m) {
  v("term", m.term);
  v("address", m.address);
  v("port", m.port);
  v("mac", m.mac);
}
void fields(auto&& v, Redirect& m) {
  v("term", m.term);
  v("address", m.address);
  v("port", m.port);
}
void fields(auto&& v, Leader& m) {
  v("node", m.node);
  v("address", m.address);
  v("port", m.port);
}
void fields(auto&& v, PersistedJobState& m) {
  v("term", m.term);
  v("first_term", m.first_term);
  v("round", m.round);
  v("group_size", m.group_size);
  v("host_rank", m.host_rank);
  v("restart_count", m.restart_count);
  v("hang_restarts", m.hang_restarts);
  v("node_losses", m.node_losses);
  v("admin_restarts", m.admin_restarts);
  v("wanted_nodes", m.wanted_nodes);
  v("resume", m.resume);
  v("is_resume_fetched", m.is_resume_fetched);
  v("past_failures", m.past_failures);
  v("job_result", m.decided);
  v("host_records", m.host_records);
}

// The greatest valid number of the enum.
inline int64_t last_value(ReportedPhase) { return static_cast<int64_t>(ReportedPhase::Done); }
inline int64_t last_value(PreloadState) { return static_cast<int64_t>(kPreloadStates) - 1; }
inline int64_t last_value(StopCause) { return static_cast<int64_t>(StopCause::Exclusion); }
inline int64_t last_value(RestartCharge) { return static_cast<int64_t>(RestartCharge::NodeLoss); }
inline int64_t last_value(AdminCommandKind) {
  return static_cast<int64_t>(AdminCommandKind::Readmit);
}
inline int64_t last_value(Exclusion) { return static_cast<int64_t>(Exclusion::Operator); }
inline int64_t last_value(StragglerPolicy) {
  return static_cast<int64_t>(StragglerPolicy::Exclude);
}
inline int64_t last_value(LogGap) { return static_cast<int64_t>(LogGap::Removed); }
inline int64_t last_value(CheckState) { return static_cast<int64_t>(CheckState::Failed); }

inline const char* name_of(const Hello&) { return "hello"; }
inline const char* name_of(const Register&) { return "register"; }
inline const char* name_of(const Ping&) { return "ping"; }
inline const char* name_of(const Started&) { return "started"; }
inline const char* name_of(const Failed&) { return "failed"; }
inline const char* name_of(const Done&) { return "done"; }
inline const char* name_of(const Stopped&) { return "stopped"; }
inline const char* name_of(const Leave&) { return "leave"; }
inline const char* name_of(const Ack&) { return "ack"; }
inline const char* name_of(const Draining&) { return "draining"; }
inline const char* name_of(const Snapshots&) { return "snapshots"; }
inline const char* name_of(const FaultPermitRequest&) { return "fault_permit_request"; }
inline const char* name_of(const FaultPermit&) { return "fault_permit"; }
inline const char* name_of(const Registered&) { return "registered"; }
inline const char* name_of(const Refused&) { return "refused"; }
inline const char* name_of(const Wait&) { return "wait"; }
inline const char* name_of(const RankAssignment&) { return "rank_assignment"; }
inline const char* name_of(const Pong&) { return "pong"; }
inline const char* name_of(const Stop&) { return "stop"; }
inline const char* name_of(const JobResult&) { return "job_result"; }
inline const char* name_of(const Bye&) { return "bye"; }
inline const char* name_of(const AdminCommand&) { return "admin_command"; }
inline const char* name_of(const AdminReply&) { return "admin_reply"; }
inline const char* name_of(const ShutdownRequest&) { return "shutdown_request"; }
inline const char* name_of(const AdminHello&) { return "admin_hello"; }
inline const char* name_of(const AdminRequest&) { return "admin_request"; }
inline const char* name_of(const Challenge&) { return "challenge"; }
inline const char* name_of(const Watch&) { return "watch"; }
inline const char* name_of(const Progress&) { return "progress"; }
inline const char* name_of(const TimeSpent&) { return "time_spent"; }
inline const char* name_of(const ComputeTimes&) { return "compute_times"; }
inline const char* name_of(const WorkerProcesses&) { return "worker_processes"; }
inline const char* name_of(const SlowRank&) { return "slow_rank"; }
inline const char* name_of(const CheckLink&) { return "check_link"; }
inline const char* name_of(const LinkResult&) { return "link_result"; }
inline const char* name_of(const LogTailRequest&) { return "log_tail_request"; }
inline const char* name_of(const LogLines&) { return "log_lines"; }
inline const char* name_of(const LogRequest&) { return "log_request"; }
inline const char* name_of(const LogReply&) { return "log_reply"; }
inline const char* name_of(const AnnounceLeader&) { return "announce_leader"; }
inline const char* name_of(const HostRecords&) { return "host_records"; }
inline const char* name_of(const NodeCheck&) { return "node_check"; }
inline const char* name_of(const Redirect&) { return "redirect"; }
inline const char* name_of(const Leader&) { return "leader"; }
inline const char* name_of(const PersistedJobState&) { return "job_state"; }

}  // namespace cpprun::control
