// The page's data and its texts. Does not touch the page.
const model = {
  state: null,          // the newest event `state`
  progress: null,       // the newest event `progress`
  workers: null,        // the newest event `workers`
  lag: 0,               // the browser's clock minus the coordinator's, in ms
  history: new Map(),   // by run id: points of the step time plot, oldest first
};
const STATES = ['running', 'starting', 'done', 'idle', 'stopped', 'draining', 'excluded', 'silent', 'dead'];
const POINTS = 900;  // per plot: fifteen minutes, one per second

function coordinatorNow() {
  return Date.now() - model.lag;
}

// Converts the feed's node arrays into objects.
function nodesOf(job) {
  return job.nodes.map(([name, state, nproc, role, address, groupRank, baseRank]) =>
    ({name, state, nproc, role, address, groupRank, baseRank}));
}

function chosenRunId(jobs, hash) {
  const wanted = decodeURIComponent(hash.replace(/^#/, '') || '');
  const names = Object.keys(jobs);
  if (names.includes(wanted)) return wanted;
  return names.find(name => jobs[name].phase !== 'ended') ?? names[names.length - 1];
}

function median(sorted) {
  return sorted[Math.floor((sorted.length - 1) / 2)];
}

// One point of the plot, over the ranks that report their step's duration.
function pointOf(progress, at) {
  let slowest = -1;
  let rank = -1;
  const known = [];
  progress.step_us.forEach((us, i) => {
    if (us <= 0) return;
    known.push(us);
    if (us > slowest) [slowest, rank] = [us, i];
  });
  const steps = progress.steps.filter(step => step >= 0);
  const step = steps.reduce((a, b) => Math.max(a, b), -1);
  const last = steps.reduce((a, b) => Math.min(a, b), step);
  if (known.length === 0) return {at, step, last, median: null, slowest: null, rank};
  return {at, step, last, median: median(known.sort((a, b) => a - b)), slowest, rank};
}

function takeProgress(progress, at) {
  model.progress = progress;
  for (const [id, ofJob] of Object.entries(progress.jobs)) {
    const points = model.history.get(id) ?? [];
    const newest = points[points.length - 1];
    const point = {round: ofJob.round, ...pointOf(ofJob, ofJob.at_ms ?? at)};
    if (newest && newest.at >= point.at) continue;  // known: the page has connected again
    points.push(point);
    if (points.length > POINTS) points.shift();
    model.history.set(id, points);
  }
}

// Puts the coordinator's history in front of the points received since.
function takeHistory(history) {
  for (const [id, rows] of Object.entries(history.jobs)) {
    const points = rows.map(([at, round, step, last, middle, slowest, rank]) =>
      ({at, round, step, last, median: middle, slowest, rank}));
    const end = points.length ? points[points.length - 1].at : 0;
    const since = (model.history.get(id) ?? []).filter(point => point.at > end);
    model.history.set(id, [...points, ...since].slice(-POINTS));
  }
}

// Time from the stop of this round until the workers of a later one ran; null: not (yet).
function recoveryOf(rounds, index) {
  const stopped = rounds[index].stopped_ms;
  const next = rounds.slice(index + 1).find(round => round.started_ms !== null);
  return stopped === null || !next ? null : next.started_ms - stopped;
}

function duration(ms) {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 10000) return `${(ms / 1000).toFixed(1)} s`;
  const s = Math.round(ms / 1000);
  const two = (big, unit, small, part) =>
    small ? `${big} ${unit} ${small} ${part}` : `${big} ${unit}`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return two(Math.floor(s / 60), 'min', s % 60, 's');
  if (s < 86400) return two(Math.floor(s / 3600), 'h', Math.floor(s % 3600 / 60), 'min');
  return two(Math.floor(s / 86400), 'd', Math.floor(s % 86400 / 3600), 'h');
}

function memoryText(mib) {
  if (!(mib >= 0)) return '–';
  return mib < 1024 ? `${mib} MiB` : `${(mib / 1024).toFixed(1)} GiB`;
}

function stepTime(us) {
  if (us < 1000) return `${us} µs`;
  return us < 1e6 ? `${(us / 1000).toPrecision(3)} ms` : `${(us / 1e6).toPrecision(3)} s`;
}

// The same for an axis: 50 ms instead of 50.0 ms.
function shortTime(us) {
  const [number, unit] = stepTime(us).split(' ');
  return us === 0 ? '0' : `${Number(number)} ${unit}`;
}

// A time of the coordinator's clock in the browser's time zone, with the day if it is not today.
function clock(ms) {
  const at = new Date(ms + model.lag);
  const time = at.toLocaleTimeString('en-GB');
  if (at.toDateString() === new Date().toDateString()) return time;
  return `${at.toLocaleDateString('en-GB', {day: 'numeric', month: 'short'})} ${time.slice(0, 5)}`;
}

function count(n, noun) {
  return `${n.toLocaleString('en')} ${noun}${n === 1 ? '' : 's'}`;
}

// The number of nodes that a job of this state waits for before its first round; 0: it does not wait.
function missingNodes(job) {
  if (job.state !== 'waiting' || job.rounds.length > 0) return 0;
  return Math.max(1, job.min_nodes - job.nodes.filter(node => node[1] !== 'dead').length);
}

// What to type on another node, except for the script and its arguments.
function joinCommand(job, id, host, port) {
  const quoted = /^[\w.:@-]+$/.test(id) ? id : `'${id.replaceAll("'", "'\\''")}'`;
  const nodes = job.min_nodes === job.max_nodes ? job.max_nodes
    : `${job.min_nodes}:${job.max_nodes}`;
  return `cpprun --nnodes=${nodes} --rdzv-backend=c10d --rdzv-endpoint=${host}:${port} ` +
    `--rdzv-id=${quoted} ...`;
}

function causeText(round) {
  const words = {failure: 'a failure', node_lost: 'a lost node', node_left: 'a node that left',
    growth: 'growth: a node joined', admin: 'an operator', drain: 'a node asked to stop',
    snapshot: 'a damaged snapshot', scale: 'an operator changed the number of nodes',
    exclusion: 'an excluded host'};
  return words[round.cause] ?? round.cause;
}
