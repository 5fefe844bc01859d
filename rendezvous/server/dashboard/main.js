// The connection to the coordinator, and the page as a whole.
const AGAIN_MS = 15000;
let isDrawingPlanned = false;
let runId;

function plan() {
  if (isDrawingPlanned) return;
  isDrawingPlanned = true;
  requestAnimationFrame(() => {
    isDrawingPlanned = false;
    draw();
  });
}

function draw() {
  const state = model.state;
  if (!state) return;
  runId = chosenRunId(state.jobs, location.hash);
  const job = state.jobs[runId];
  byId('job').hidden = !job;
  byId('empty').hidden = Boolean(job);
  byId('empty').textContent = 'No job is known here. It appears when its first agent connects.';
  byId('host').textContent = `coordinator ${state.host}`;
  byId('version').textContent = `cpprun ${state.version}`;
  drawJobs(state.jobs);
  if (!job) return;
  document.title = `${job.state} · ${runId}`;
  const progress = progressNow(job);
  drawHead(job);
  drawWaiting(job);
  drawFailureSummary(job);
  drawFigures(job);
  drawMap(job, progress);
  drawRankTable(job, progress, processesNow(job));
  drawTimeline(job);
  drawRounds(job);
  drawPlot(model.history.get(runId) ?? []);
  drawWords(job);
  drawLog();
}

// The progress of the current round's ranks, with the median of their step times.
function progressNow(job) {
  const progress = model.progress?.jobs[runId];
  if (!progress || progress.round !== job.round) return null;
  return {...progress, median: model.history.get(runId)?.at(-1)?.median ?? Infinity};
}

// The processes of the current round by rank: pid, MiB, log folder.
function processesNow(job) {
  const workers = model.workers?.jobs[runId];
  return new Map(workers?.round === job.round ? workers.ranks.map(([rank, ...rest]) => [rank, rest]) : []);
}

function drawJobs(jobs) {
  const names = Object.keys(jobs);
  byId('jobs').hidden = names.length < 2;
  byId('jobs').replaceChildren(...names.map(name => {
    const link = make('a', name, name === runId ? 'here' : '');
    link.href = '#' + encodeURIComponent(name);
    return link;
  }));
}

function drawHead(job) {
  byId('run').textContent = runId;
  const mood = {running: 'good', succeeded: 'good', failed: 'bad'}[job.state] ?? 'warn';
  byId('phase').textContent = job.state;
  byId('phase').className = 'pill ' + mood;
  byId('reason').textContent = job.outcome ? '' : job.why_no_round;
  const first = job.rounds[0];
  byId('since').textContent = first ? `since ${clock(first.formed_ms)}, ` +
    `${duration(coordinatorNow() - first.formed_ms)} ago` : '';
}

// Before the first round: how many nodes are missing, and what to type there.
function drawWaiting(job) {
  const missing = missingNodes(job);
  byId('waiting').hidden = missing === 0;
  for (const id of ['figures', 'rounds-part', 'steps-part', 'log-part']) {
    byId(id).hidden = missing > 0;
  }
  if (missing === 0) return;
  byId('waiting-title').textContent = `Waiting for ${count(missing, 'more node')}`;
  byId('waiting-text').textContent = job.has_fixed_ranks
    ? 'Start the same command there with its own --node-rank.'
    : 'Start the same command there, with the same script and arguments:';
  byId('waiting-command').hidden = job.has_fixed_ranks;
  byId('waiting-command').textContent =
    joinCommand(job, runId, model.state.host, location.port || 80);
}

// The error of a failed job, or the last failure of one that continues: small once it is healed.
function drawFailureSummary(job) {
  const box = byId('failure_summary');
  const failed = [...job.rounds].reverse().find(round => round.class);
  box.hidden = !job.outcome && !failed;
  if (box.hidden) return;
  const recovery = failed ? recoveryOf(job.rounds, job.rounds.indexOf(failed)) : null;
  const titles = {success: 'All workers ended well', stopped: 'Stopped; everything is saved',
    failure: failed?.error || 'The job has failed'};
  byId('failure_summary-title').textContent = titles[job.outcome] ?? brokenText(failed, recovery);
  byId('failure_summary-text').textContent = failureText(job, failed);
  const isHealed = !job.outcome && recovery !== null;
  const hint = job.outcome === 'failure' || (!job.outcome && !isHealed) ? failed?.hint : '';
  byId('failure_summary-hint').hidden = !hint;
  byId('failure_summary-hint').textContent = hint ? `Hint: ${hint}` : '';
  const mood = {success: 'good', stopped: 'warn', failure: 'bad'}[job.outcome];
  box.className = 'failure_summary ' + (mood ?? (isHealed ? 'healed' : 'warn'));
}

// Where and how the worker failed; the title has the error.
function failureText(job, failed) {
  if (job.outcome !== 'failure' && job.outcome) return job.failure_summary;
  const place = failed?.location ? `${failed.location}; ` : '';
  if (job.outcome) return place + job.failure_summary;
  return place + failed.root_cause + (failed.error ? `: ${failed.error}` : '');
}

function brokenText(round, recovery) {
  const text = `Round ${round.round} broke at ${clock(round.stopped_ms)}`;
  return recovery === null ? text : `${text}; all ranks ran again ${duration(recovery)} later`;
}

function drawFigures(job) {
  const newest = (model.history.get(runId) ?? []).at(-1);
  const running = job.nodes.filter(node => node[1] === 'running' || node[1] === 'done').length;
  const range = job.min_nodes === job.max_nodes ? `of ${job.max_nodes}`
    : `of ${job.min_nodes} – ${job.max_nodes}`;
  const [used, most] = job.restarts;
  const [hangs, mostHangs] = job.hang_restarts;
  const items = [
    ['Round', job.round, ''],
    ['Nodes running', running.toLocaleString('en'), range],
    ['Ranks', job.world_size.toLocaleString('en'), ''],
    ['Restarts used', used, `of ${most}`],
    ...(hangs ? [['After hangs', hangs, `of ${mostHangs}`]] : []),
    ...(job.node_losses ? [['Node losses', job.node_losses[0], `of ${job.node_losses[1]}`]] : []),
    ['Step', newest && newest.step >= 0 ? newest.step.toLocaleString('en') : '–', behindText(newest)],
    ['Step time', newest?.median ? stepTime(newest.median) : '–', ''],
    ['Newest snapshot', job.snapshot_step === null ? '–' : job.snapshot_step.toLocaleString('en'),
      job.snapshot_step === null ? '' : 'steps'],
    ...(job.slow_ranks?.length ? [['Slow in compute', slowText(job.slow_ranks), '']] : []),
    ...(job.goodput ? [['Goodput', `${(100 * job.goodput).toFixed(1)} %`, goodputText(job)]] : []),
  ];
  byId('figures').replaceChildren(...items.map(([name, value, more]) => {
    const box = make('div');
    const data = make('dd', String(value));
    if (more) data.append(' ', make('small', more));
    box.append(make('dt', name), data);
    return box;
  }));
}

function slowText(ranks) {
  const shown = ranks.slice(0, 4).join(', ');
  const more = ranks.length > 4 ? ` and ${ranks.length - 4} more` : '';
  return `${ranks.length === 1 ? 'rank' : 'ranks'} ${shown}${more}`;
}

function behindText(point) {
  const behind = point && point.last >= 0 ? point.step - point.last : 0;
  return behind > 0 ? `slowest ${point.last.toLocaleString('en')}` : '';
}

function goodputText(job) {
  return job.submissions > 1 ? `of the time, in ${job.submissions} submissions` : 'of the time';
}

function drawWords(job) {
  const failed = [...job.rounds].reverse().find(round => round.last_lines?.length);
  byId('words-part').hidden = !failed;
  if (!failed) return;
  byId('words-of').textContent =
    `Round ${failed.round}: ${failed.root_cause}. Its last lines on stderr:`;
  byId('last-lines').textContent = failed.last_lines.join('\n');
}

function showLine(text, isLive) {
  byId('line').textContent = text;
  byId('line').className = isLive ? 'live' : 'wait';
}

function listen() {
  const events = new EventSource('events');
  const on = (name, take) => events.addEventListener(name, event => {
    model.lag = Date.now() - Number(event.lastEventId);
    take(JSON.parse(event.data), Number(event.lastEventId));
    plan();
  });
  on('state', state => { model.state = state; });
  on('progress', takeProgress);
  on('workers', workers => { model.workers = workers; });
  events.onopen = () => {
    showLine('live', true);
    learnSteps();
  };
  events.onerror = () => {
    if (events.readyState !== EventSource.CLOSED) {
      showLine('disconnected; what is shown may be old', false);
      return;
    }
    showLine('refused', false);  // the browser does not reconnect by itself
    byId('empty').textContent = 'No jobs are coordinated at this port, or too many look already.';
    setTimeout(listen, AGAIN_MS);
  };
}

// Fetches the coordinator's history of steps: from before the page was opened, or while it was
// disconnected.
async function learnSteps() {
  const asked = await fetch('steps');
  if (!asked.ok) return;
  takeHistory(await asked.json());
  plan();
}

byId('grid').addEventListener('mousemove', showTip);
byId('grid').addEventListener('mouseleave', () => { byId('tip').hidden = true; });
addEventListener('hashchange', plan);
addEventListener('resize', plan);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', plan);
setInterval(() => { if (!document.hidden) plan(); }, 1000);
listenToLog();
listen();
