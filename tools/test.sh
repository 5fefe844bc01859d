#!/usr/bin/env bash
# The whole test suite: installs missing packages, builds, runs every test. The stages:
# docs/testing.md.
#
#   tools/test.sh                  # those in `stages` below, without the tests of tests/slow.txt
#   tools/test.sh --slow           # with the slow tests, as in continuous integration
#   tools/test.sh style check      # only these stages
#   tools/test.sh --all            # the long stages too, and everything in full
#
# After a failed stage the others still run. No failed test runs again. The last line is `N passed,
# N failed, N skipped`; above it are the skipped tests with their reasons.
# CPPRUN_CONFORMANCE_DIR names a contract suite to include, CPPRUN_CONFORMANCE_ARGS gives pytest
# further arguments for it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. tools/run_together.sh

stages=(deps style docs check count asan conformance integration e2e kubernetes torchx slurm_and_sdk
        contract fuzz tidy)
halves=(slurm sdk)  # of a stage above; only by name
# With --all, or by name:
long_stages=(contract_preload browser newcomer packages frameworks gpu sim campaign coverage
             sdk_asan tsan newest torch_tests)
results=$PWD/build/results
python=$PWD/.venv/bin/python
slots=2
disk_gib=20  # for .venv, the build trees of all stages, and the folders of tests
unset PYTHONUNBUFFERED  # with it, print() writes the newline separately, and ranks' lines get mixed
unset PYTHONDONTWRITEBYTECODE  # with it, each process of a test compiles what it imports of torch
failed=()
stage=  # the one that runs
all=no
slow=no  # whether the tests of tests/slow.txt run
named=no  # whether the command line names stages

# measure begin|end NAME PID. Stage deps installs the Python that this needs.
measure() { [ "$stage" = deps ] || tools/budget.py "$1" "$results" "$2" "$3"; }

# A full disk fails a stage after an hour, with errors that name anything but the disk.
check_disk() {
  local free used
  free=$(df --output=avail --block-size=1G . | tail -n 1 | tr -d ' ')
  used=$(du -s --block-size=1G build .venv 2>/dev/null | awk '{sum += $1} END {print sum + 0}')
  [ $((free + used)) -ge "$disk_gib" ] && return 0
  echo "tools/test.sh: all stages need $disk_gib GiB of disk; free: $free GiB, in build/ and" \
    ".venv: $used GiB. Remove files, or run single stages: tools/test.sh style check" >&2
  return 1
}

run_stage() {
  local start=$SECONDS status=0
  stage=$1
  printf '\n=== %s (at %d s)\n' "$stage" "$SECONDS"
  measure begin "$stage" $$
  set +e
  (set -e; "stage_$stage")
  status=$?
  set -e
  measure end "$stage" $$
  if [ "$status" != 0 ]; then failed+=("$stage"); fi
  printf '=== %s: %s, took %d s\n' "$stage" "$([ "$status" = 0 ] && echo ok || echo FAILED)" \
    $((SECONDS - start))
}

# run_all COMMAND...: runs every command line, even after a failure; fails if any fails.
run_all() {
  local command bad=0
  for command in "$@"; do
    bash -euo pipefail -c "$command" || bad=1
  done
  return "$bad"
}

# run_pytest NAME PYTEST-ARGUMENTS...
run_pytest() {
  local name=$1 status=0
  shift
  "$python" -m pytest -q -p no:cacheprovider -p tests.support.left_out_tests \
    -o tmp_path_retention_count=1 \
    --junit-xml="$results/$name.xml" "$@" || status=$?
  [ "$status" = 0 ] || [ "$status" = 5 ]  # 5: there are no tests
}

# run_ctest NAME PRESET CTEST-ARGUMENTS...
run_ctest() {
  local name=$1 preset=$2
  shift 2
  ctest --test-dir "build/$preset" -j "$slots" --timeout 1200 --output-on-failure \
    --no-tests=ignore --output-junit "$results/$name.xml" "$@" |
    grep -vE '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ Test .*(Passed|Skipped) )'
}

# run_gtest NAME PROGRAM...: runs GoogleTest programs in a few processes each, not in one per test:
# the start of a process with sanitizers or LibTorch takes longer than most tests. Many of these
# tests only wait, those in integration_tests most, so more processes run than there are slots.
run_gtest() {
  local name=$1 program shard shards report commands=()
  shift
  for program in "$@"; do
    if is_unchanged "$program"; then continue; fi
    shards=2
    if [[ $program = *integration_tests ]]; then shards=$((4 * slots)); fi
    for ((shard = 0; shard < shards; shard++)); do
      report=$results/$name.$(basename "$program").$shard
      commands+=("GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$shard GTEST_OUTPUT=xml:$report.xml \
        timeout 1200 $program >$report.log 2>&1 || { tail -n 200 $report.log; false; }")
    done
  done
  printf '%s\n' ${commands[@]+"${commands[@]}"} | xargs -r -P $((4 * slots)) -I{} bash -c '{}' ||
    return 1
  has_passed "$@"
}

# digest PROGRAM: of the program and of what tests read or start besides.
digest() {
  local build=${1%%/tests/*}
  cat "$1" docs/*.md docs/*/*.md tests/sim/seeds.txt tests/scenarios/*.txt \
    "$build/bin/channel_worker" "$build"/tests/support/{bad_worker,mini_agent,snapshot_writer} |
    sha256sum
}

has_passed() {
  local program
  for program in "$@"; do digest "$program" >"$program.passed"; done
}

# is_unchanged PROGRAM...: in a run of named stages, programs that have passed as they are do not
# run again.
is_unchanged() {
  local program
  [ "$named" = yes ] && [ "$all" = no ] || return 1
  for program in "$@"; do
    [ -f "$program.passed" ] && digest "$program" | cmp -s - "$program.passed" || return 1
  done
  echo "=== $*: unchanged since the tests passed"
}

# compile PRESET BUILD-ARGUMENTS...: configures, builds, and prints how long that took.
# UBSan's checks of each pointer take a quarter of the time of preset asan: only with --slow.
compile() {
  local status=0 preset=$1 pointers=ON
  shift
  if [ "$preset" = asan ] && [ "$slow" = no ]; then pointers=OFF; fi
  measure begin "$stage.compile" "$BASHPID"
  { cmake --preset "$preset" -DCPPRUN_SANITIZE_POINTERS=$pointers >/dev/null &&
    cmake --build --preset "$preset" -j "$slots" "$@"; } || status=$?
  measure end "$stage.compile" "$BASHPID"
  return "$status"
}

has_tests() { compgen -G "$1/test_*.py" >/dev/null; }

cpp_files() { git ls-files -co --exclude-standard -- '*.cpp' '*.hpp' | while read -r file; do
  if [ -f "$file" ]; then echo "$file"; fi; done; }

stage_deps() { tools/deps.sh --test; }

stage_style() {
  local scripts
  scripts=$(git ls-files -co --exclude-standard -- 'tools/*.sh' .ci/run)
  run_together "cpp_files | xargs -r clang-format-14 --dry-run -Werror" \
    tools/tidy.py tools/check_layers.py \
    "for script in $(echo "$scripts" | tr '\n' ' '); do bash -n \$script; done" \
    "! command -v shellcheck >/dev/null || shellcheck $(echo "$scripts" | tr '\n' ' ')" \
    "run_pytest style tests/tools"
}

# The site that mkdocs.yml describes, and all links of all pages.
stage_docs() {
  tools/deps.sh --docs
  tools/api_reference.py
  NO_MKDOCS_2_WARNING=1 build/venv-docs/bin/mkdocs build -q
  "$python" tools/check_docs.py
}

stage_check() {
  compile check -- -k 0
  run_together "run_gtest check build/check/tests/{integration,unit}_tests \
      build/check/tests/sdk/sdk_*_tests" ctest_check
}

# Scenarios, seeds of the simulator, examples. StoreInterop runs in stage sdk.
ctest_check() {
  local sim=build/check/tests/sim labels=gtest programs
  programs=("$sim"/{sim_run,sim_tests,goodput_run} build/check/tests/scenarios/scenario_run)
  if [ "$all" = no ]; then labels+="|long"; fi
  if is_unchanged "${programs[@]}"; then labels+="|sim|scenarios"; fi
  run_ctest check check -LE "$labels" -E StoreInterop
  has_passed "${programs[@]}"
}

# Compares instructions per operation with bench/instructions.json; one transfer of transfer_bench.
stage_count() {
  compile check --target bench_parts transfer_bench
  run_all "$python bench/count.py" "build/check/bin/transfer_bench 1 1"
}

# Tests that repeat the same code for each instruction or system call of a writer, or for the
# largest permitted input: with sanitizers only with --all. Stage check runs them.
repetitions='ArenaSlotsCrash.*:SnapshotKill.*:ProcessOutput.PassesAGigabyte*:ReportPage.HasALimit'
repetitions+=':SnapshotsBetweenAgents.KeepsTheManifestAsItCame'
# Tests that take seconds of processor time with sanitizers: only with --slow.
slow_with_sanitizers='ControlCodec.AnyChangedByte*:ControlCodec.EveryMessageSurvivesEncoding'
slow_with_sanitizers+=':FaultPlan.AcceptsOrRejectsAnyBytes:EtcdGateway.RejectsInvalidReplies'
slow_with_sanitizers+=':Spawns.TheLeaseContinuesMeanwhile:Files.TheLeaseContinuesMeanwhile'
slow_with_sanitizers+=':JobTest.Stores_AFailedPortIsRequestedAgainWhenNeeded'
slow_with_sanitizers+=':Agent.Fetch_NoWorkersBeforeItEnds:Agent.JoinTimeout_*'
slow_with_sanitizers+=':Agent.Replicas_NoWorkersBeforeTheSearchEnds'
slow_with_sanitizers+=':LinkChecksTest.RandomBadNodesAreFoundAndNoGoodOneIs'
slow_with_sanitizers+=':Coordinator.FormsARoundOfAThousandAgents:*/SnapshotCrash.APowerCutAnywhere*'

# No programs besides those that the stages asan and fuzz run.
stage_asan() {
  compile asan --target integration_tests unit_tests scenario_run fuzzers -- -k 0
  export UBSAN_OPTIONS=print_stacktrace=1
  if [ "$all" = no ]; then export GTEST_FILTER=-$repetitions; fi
  if [ "$slow" = no ]; then GTEST_FILTER+=:$slow_with_sanitizers; fi
  run_together "run_gtest asan build/asan/tests/{integration,unit}_tests" \
    "run_ctest asan asan -L scenarios"
}

stage_conformance() { pytest_folder conformance; }
# Most of its tests wait. The files in `checked` run with a cpprun whose loops abort when they call
# what may block (tests/support/loop_check.cpp), the others with cpprun as users get it.
stage_integration() {
  local folder=tests/integration checked status=0
  checked=("$folder"/test_{admin_commands,drain,events,hangs,output,preload,restarts}.py
           "$folder"/test_nodes_{forming,hosting,losses}.py
           "$folder"/test_{snapshot_dir,snapshot_memory,store_allow,worker_channel}.py)
  pytest_folder integration -n $((4 * slots)) "${checked[@]/#/--ignore=}" || status=1
  CPPRUN_BIN=$PWD/build/check/bin/checked run_pytest loops "${checked[@]}" \
    -n $((4 * slots)) --dist worksteal --timeout 600 || status=1
  return "$status"
}
stage_e2e() {
  compile check --target bench_parts  # bench/compare runs it
  pytest_folder e2e
}

# A real Slurm, and hosts with sshd, in namespaces; one process, because the tests share them.
stage_slurm() {
  if [ -n "${CPPRUN_ALL-}" ]; then tools/deps.sh --submitit; fi
  CPPRUN_BIN=$PWD/build/check/bin \
    run_pytest labs tests/labs/test_{slurm,slurm_faults,submitit,ssh}.py -n 0 --timeout 600
}

# The manifests of packaging/kubernetes, against schemas and in pods made of namespaces.
stage_kubernetes() {
  tools/deps.sh --kubernetes
  local python=$PWD/build/venv-kubernetes/bin/python
  CPPRUN_BIN=$PWD/build/check/bin \
    run_pytest kubernetes tests/labs/test_{manifests,exclude_hook,pods}.py \
    -n $((2 * slots)) --dist worksteal --timeout 600
}

# The TorchX component of packaging/torchx.
stage_torchx() {
  tools/deps.sh --torchx
  CPPRUN_BIN=$PWD/build/check/bin run_pytest torchx tests/labs/test_torchx.py --timeout 600
}

# README.md and the first tutorial, followed literally on a bare Debian.
stage_newcomer() { pytest_folder newcomer -n 0 --timeout 7200; }

# The wheels for older hosts and for aarch64, TLS with OpenSSL 1.1, the container image. Each test
# file makes its subject once.
stage_packages() {
  tools/deps.sh --wheel-aarch64 --container
  compile check  # cpack installs every target, and TLS is tested by the C++ tests
  pytest_folder packages --dist loadfile --timeout 3600
}

# Programs of the frameworks with two ranks, on one node and on two: docs/reference/frameworks.md.
stage_frameworks() {
  tools/deps.sh --frameworks-long --torchx
  compile check --target cpprun cpprunctl
  pytest_folder frameworks --dist loadgroup --timeout 7200
}

# torch's own tests of its launcher and its store, with cpprun in the place of both.
stage_torch_tests() {
  tools/deps.sh --torch-tests
  compile check --target cpprun cpprunctl
  local python=$PWD/build/venv-torch-tests/bin/python tests=$PWD/build/torch_tests/test/distributed
  # The last folder of PYTHONPATH: c10d_rendezvous_backend_test.py imports a file beside it.
  CPPRUN_BIN=$PWD/build/check/bin \
    PYTHONPATH=$PWD/tests/torch_tests:$PWD/tests/support:$tests/elastic/rendezvous \
    run_pytest torch_tests -p stand_ins.plugin --rootdir "$tests" -n "$slots" --timeout 600 \
    "$tests"/launcher/{test_run,launch_test,api_test}.py "$tests/test_store.py" \
    "$tests"/elastic/{rendezvous/c10d_rendezvous_backend,utils/distributed}_test.py
}

# The dashboard in a real browser.
stage_browser() {
  tools/deps.sh --docs
  tools/deps.sh --browser
  tools/api_reference.py  # a part of the site
  pytest_folder browser
}

pytest_folder() {  # pytest_folder NAME PYTEST-ARGUMENTS...
  local name=$1
  shift
  has_tests "tests/$name" || { echo "no tests yet"; return 0; }
  CPPRUN_BIN=${CPPRUN_BIN:-$PWD/build/check/bin} \
    run_pytest "$name" "tests/$name" -n "$slots" --dist worksteal --timeout 600 "$@"
}

stage_contract() { contract_suite contract "$PWD/build/check/bin/cpprun"; }

# The same with workers forked from a preload process, which must not spawn them after a failure.
# Jobs keep their events, by which that is checked, also where a test sets PET_LOG_DIR.
stage_contract_preload() {
  local folder=$PWD/build/contract_preload status=0
  rm -rf "$folder"
  mkdir -p "$folder/logs"
  cat >"$folder/cpprun" <<END
#!/bin/sh
[ -n "\${PET_LOG_DIR:-}" ] || set -- "--log-dir=$folder/logs" "\$@"
exec "$PWD/build/check/bin/cpprun" --preload=torch "\$@"
END
  chmod +x "$folder/cpprun"
  contract_suite contract_preload "$folder/cpprun" || status=1
  if [ -n "${CPPRUN_CONFORMANCE_DIR:-}" ]; then
    tools/preload_reasons.py "$folder/logs" || status=1
  fi
  return "$status"
}

contract_suite() {  # contract_suite NAME LAUNCHER
  local bin=$PWD/build/check/bin name=$1 launcher=$2 status=0
  if [ -z "${CPPRUN_CONFORMANCE_DIR:-}" ]; then
    echo "CPPRUN_CONFORMANCE_DIR is not set: no contract suite"
    return 0
  fi
  [ -x "$bin/cpprun" ] || { echo "cpprun is not built"; return 1; }
  export LAUNCHER=$launcher TORCH_PYTHON=$python TORCHRUN=$PWD/.venv/bin/torchrun
  export STORE_SERVER_CMD="$bin/cpprunctl serve --listen 127.0.0.1:{port}"
  # torch's gloo threads sometimes abort a process that is ending (README, "Limits"), under torchrun
  # too. So tests with the mark `torch` (test_ddp_python, test_mixed, test_store) run once more if
  # their failure names SIGABRT; -rR lists them.
  contract_pytest "$name" '(contract or better) and not torch' || status=1
  contract_pytest "$name-torch" '(contract or better) and torch' \
    --reruns 1 --only-rerun SIGABRT -rR || status=1
  return "$status"
}

contract_pytest() {  # contract_pytest NAME MARKS PYTEST-ARGUMENTS...
  local name=$1 marks=$2
  shift 2
  # shellcheck disable=SC2086  # CPPRUN_CONFORMANCE_ARGS is split into words on purpose
  run_pytest "$name" "$CPPRUN_CONFORMANCE_DIR" -m "$marks" -n "$slots" --dist worksteal \
    --timeout 600 "$@" ${CPPRUN_CONFORMANCE_ARGS:-}
}

# The tests under Slurm and ssh wait most of the time, and those of the SDK compute.
stage_slurm_and_sdk() { run_together stage_slurm stage_sdk; }

# Ranks of the worker SDK together with Python ranks, and users' projects against an installed SDK.
# Tests of the SDK that need only one process are in stage check.
stage_sdk() {
  compile check  # users' projects install every target
  sdk_pytest check
}

sdk_pytest() {  # sdk_pytest PRESET PYTEST-ARGUMENTS...
  local preset=$1
  shift
  CPPRUN_BIN=$PWD/build/$preset/bin run_pytest "sdk-$preset" tests/sdk -n "$slots" \
    --dist loadfile --timeout 1800 "$@"
}

sdk_all() {  # sdk_all PRESET: builds and runs only the SDK's tests
  local preset=$1
  compile "$preset" --target cpprun sdk_tests -- -k 0
  run_all "$(declare -f run_ctest); slots=$slots results=$results
      run_ctest sdk-ctest-$preset $preset -L sdk" \
    "$(declare -f run_pytest sdk_pytest); slots=$slots python=$python results=$results
      sdk_pytest $preset --ignore tests/sdk/package --ignore tests/sdk/campaign"
}

# Runs new seeds of the simulator, and checks that it finds each bug in tests/sim/mutants. Stage
# check runs the fixed seeds.
stage_sim() {
  compile check --target sim_run
  run_all "tools/run_seeds.py --minutes 5" "tools/mutants.py"
}

# Coverage of the cores by unit tests, scenarios and the simulator.
stage_coverage() {
  tools/deps.sh --coverage
  tools/coverage.py
}

# On machines with a GPU. docs/testing.md names the NCCL that lets it run on one GPU.
stage_gpu() {
  compile check --target cpprun cpprunctl sdk_tests cpprun_nccl
  CPPRUN_BIN=$PWD/build/check/bin run_pytest gpu tests/gpu -n "$slots" --timeout 600
}

# One job on hosts made of network namespaces, with 200 random faults; stage sdk injects eight.
stage_campaign() {
  compile check --target cpprun cpprunctl sdk_proof_training
  CPPRUN_BIN=$PWD/build/check/bin CAMPAIGN_FAULTS=200 \
    run_pytest campaign tests/sdk/campaign -s --timeout 7200
}

# LibTorch is not instrumented, so container checks are off: a vector that LibTorch grows would look
# corrupt. tests/support/lsan.supp lists its leaks at exit.
stage_sdk_asan() {
  export ASAN_OPTIONS=detect_container_overflow=0:detect_odr_violation=0
  export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp:print_suppressions=0
  export UBSAN_OPTIONS=print_stacktrace=1
  sdk_all sdk-asan
}

# Tests that start each of the agent's and the coordinator's threads: a file, then names.
tsan_jobs() {
  local file names name
  while read -r file names; do
    for name in $names; do echo "tests/integration/test_$file.py::test_$name"; done
  done <<'END'
workers exit_codes worker_that_ignores_sigterm_is_killed_after_the_grace
workers workers_that_fail_simultaneously
restarts budget_is_exact simultaneous_failures_cost_one_restart
output every_byte_is_passed
terminal progress_bar_is_live
events failure_and_its_restart
probes probes_are_answered_from_start_to_end
hangs suspended_rank expired_file_timer
preload restarts_fork_again the_end_of_the_preload_process_touches_no_worker
drain worker_that_can_save_is_asked_instead_of_signalled drain_while_a_round_reforms
snapshot_memory next_worker_gets_the_memory_of_a_killed_one
nodes_forming mixed_nodes_share_ranks_and_one_master failure_while_a_node_joins
nodes_losses leave_reforms_the_round_immediately
nodes_losses killed_agent_ends_its_workers_and_the_others_continue
nodes_standby others_reform_immediately_when_the_host_is_killed
snapshot_dir node_without_the_snapshot_fetches_it new_node_fetches_from_the_others
snapshot_dir workers_wait_for_the_fetch_and_a_lost_source_costs_nothing
snapshot_dir host_leaves_the_job_to_its_standby
admin_commands admin_restart_costs_no_budget_and_reaches_all_nodes
dashboard events_follow_a_job_through_a_failure
tls standby_takes_over_with_the_secret
END
}

# ThreadSanitizer on unit and integration tests, and on jobs of agents with their coordinators.
# LibTorch is not built for TSan, so the SDK's tests do not run. Each process with a race writes a
# file of its own: a test may expect the end of a process, but no such file.
stage_tsan() {
  local reports=$results/tsan_reports status=0
  compile tsan --target unit_tests integration_tests cpprun cpprunctl channel_worker -- -k 0
  mkdir -p "$reports"
  # The agent forks the reaper process while its threads run, and that process starts none.
  export TSAN_OPTIONS="die_after_fork=0:second_deadlock_stack=1:log_path=$reports/race\
:suppressions=$PWD/tests/support/tsan.supp"
  run_gtest tsan build/tsan/tests/{integration,unit}_tests || status=1
  # shellcheck disable=SC2046  # a word per test
  CPPRUN_BIN=$PWD/build/tsan/bin run_pytest tsan-jobs $(tsan_jobs) \
    -n $((2 * slots)) --dist worksteal --timeout 600 || status=1
  if compgen -G "$reports/*" >/dev/null; then
    cat "$reports"/*
    status=1
  fi
  return "$status"
}

# The SDK's tests with the newest torch on PyPI, for C++ and Python ranks, and in-process restart.
stage_newest() {
  tools/deps.sh --newest
  local venv=$PWD/build/venv-newest folder
  folder=$("$venv/bin/python" -c \
    'import importlib.util as u; print(u.find_spec("torch").submodule_search_locations[0])')
  cmake --preset newest -DLIBTORCH="$folder" >/dev/null
  TORCH_PYTHON=$venv/bin/python sdk_all newest
  CPPRUN_BIN=$PWD/build/newest/bin TORCH_PYTHON=$venv/bin/python run_pytest newest-elastic \
    tests/integration/test_elastic*.py tests/integration/test_reconfigure.py -n "$slots"
}

# Each target starts from its corpus in the tree and adds new inputs to build/corpus.
stage_fuzz() {
  [ -f tests/fuzz/CMakeLists.txt ] || { echo "no fuzz targets yet"; return 0; }
  compile asan --target fuzzers
  local target name seconds=3 commands=()
  if [ "$slow" = yes ]; then seconds=10; fi
  if [ "$all" = yes ]; then seconds=600; fi
  while read -r target; do
    name=$(basename "$target" _fuzz)
    mkdir -p "build/corpus/$name"
    commands+=("$target -max_total_time=$seconds -timeout=10 -rss_limit_mb=2048 -verbosity=0 \
      -artifact_prefix=build/corpus/$name. build/corpus/$name tests/fuzz/corpus/$name")
  done < <(find build/asan/tests/fuzz -type f -perm -u+x -name '*_fuzz' | sort)
  [ ${#commands[@]} -gt 0 ] || { echo "no fuzz targets built"; return 1; }
  printf '%s\n' "${commands[@]}" | xargs -P "$slots" -I{} bash -c '{}'
}

# clang-tidy on files that differ from origin/main; on all files with --all or without an origin.
# Files that include LibTorch take half a minute each, so they are checked only with --all.
stage_tidy() {
  local list log=build/results/tidy.log torch=OFF
  if [ "$all" = yes ]; then torch=ON; else echo "files that include LibTorch: only with --all"; fi
  cmake -S . -B build/tidy -G Ninja -DCPPRUN_TESTS=ON -DCPPRUN_TORCH=$torch \
    -DCMAKE_CXX_COMPILER=clang++-14 -DCMAKE_CXX_COMPILER_LAUNCHER= \
    -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON >/dev/null
  if [ "$all" = no ] && git rev-parse -q --verify origin/main >/dev/null; then
    list=$({ git diff --name-only --diff-filter=d origin/main -- '*.cpp'
             git ls-files -o --exclude-standard -- '*.cpp'; } | sort -u)
  else
    list=$(git ls-files -co --exclude-standard -- '*.cpp')
  fi
  list=$(for file in $list; do
    if grep -qF "/$file\"" build/tidy/compile_commands.json; then echo "$file"; fi; done)
  [ -n "$list" ] || { echo "nothing differs"; return 0; }
  if [ "$all" = no ] && [ "$(echo "$list" | wc -l)" -gt 100 ]; then
    echo "$(echo "$list" | wc -l) files differ: 100 of them; the others only with --all"
    list=$(echo "$list" | head -n 100)
  fi
  echo "clang-tidy: $(echo "$list" | wc -l) files"
  if ! echo "$list" | timeout "$([ "$all" = yes ] && echo 14400 || echo 1800)" \
      xargs -P "$slots" -n 1 clang-tidy-14 -p build/tidy --quiet >"$log" 2>&1; then
    grep -E 'error|warning: .*\[' "$log" || echo "clang-tidy: stopped at its time limit"
    return 1
  fi
}

main() {
  local name wanted=() known="${stages[*]} ${halves[*]} ${long_stages[*]}"
  for name in "$@"; do
    if [ "$name" = --all ]; then all=yes
    elif [ "$name" = --slow ]; then slow=yes
    elif [[ " $known " == *" $name "* ]]; then wanted+=("$name")
    else
      echo "usage: tools/test.sh [--slow | --all] [STAGE...] with $known" >&2
      exit 2
    fi
  done
  if [ "$all" = yes ]; then
    stages+=("${long_stages[@]}")
    slow=yes
    export CPPRUN_ALL=yes  # long tests check it
  fi
  if [ "$slow" = yes ]; then export CPPRUN_SLOW=yes; fi  # for left_out_tests.py
  if [ ${#wanted[@]} -gt 0 ]; then named=yes; else wanted=("${stages[@]}"); fi
  [ "$named" = yes ] || check_disk || exit 1
  rm -rf "$results"
  mkdir -p "$results"
  for name in "${wanted[@]}"; do run_stage "$name"; done
  printf '\n=== all stages took %d s\n' "$SECONDS"
  # The long tests of --all have no budget.
  [ "$all" = yes ] || tools/budget.py check "$results" ${failed[@]+"${failed[@]}"} ||
    failed+=(budget)
  python3 tools/summary.py "$results" ${failed[@]+"${failed[@]}"}
}

main "$@"
