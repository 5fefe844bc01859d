// Rounds and recoveries on a time line, and the newest ones as a table.
const ROWS = 8;
const LEAST = 3;  // minimum width in pixels

function drawTimeline(job) {
  const rounds = job.rounds;
  const canvas = byId('timeline');
  canvas.hidden = rounds.length === 0;
  if (rounds.length === 0) return;
  const {context, width} = sheet(canvas, 74);
  const isOver = job.phase === 'ended' || job.phase === 'finishing';
  const end = isOver ? rounds[rounds.length - 1].over_ms ?? coordinatorNow() : coordinatorNow();
  const begin = rounds[0].formed_ms;
  const span = Math.max(1000, end - begin);
  const x = ms => (ms - begin) / span * (width - 2) + 1;
  rounds.forEach((round, i) => drawRound(context, round, rounds[i + 1], x, end));
  drawTimeAxis(context, begin, span, width, x);
  canvas.setAttribute('aria-label', `${count(rounds.length, 'round')} on a time line`);
}

function drawRound(context, round, next, x, end) {
  const bar = (from, to, name) => {
    context.fillStyle = color(name);
    context.fillRect(x(from), 22, Math.max(LEAST, x(to) - x(from)), 26);
  };
  const over = round.over_ms ?? end;
  const stopped = round.stopped_ms ?? over;
  bar(round.formed_ms, round.started_ms ?? stopped, 'starting');
  if (round.started_ms !== null) bar(round.started_ms, stopped, 'running');
  if (round.stopped_ms !== null) {
    bar(stopped, over, 'stopped');
    mark(context, x(stopped), round.class ? 'dead' : 'accent');
  }
  const room = x(next?.formed_ms ?? end) - x(round.formed_ms);
  const name = String(round.round);
  if (room < context.measureText(name).width + 12) return;
  context.fillStyle = '#fff';
  context.fillText(name, x(round.formed_ms) + 7, 39);
}

function mark(context, x, name) {
  context.fillStyle = color(name);
  context.beginPath();
  context.moveTo(x, 20);
  context.lineTo(x - 5, 11);
  context.lineTo(x + 5, 11);
  context.fill();
}

function drawTimeAxis(context, begin, span, width, x) {
  context.fillStyle = color('quiet');
  const wanted = Math.max(1, Math.min(Math.floor(width / 160), Math.floor(span / 1000)));
  for (let i = 0; i <= wanted; ++i) {
    const at = begin + span * i / wanted;
    const text = clock(at);
    const wide = context.measureText(text).width;
    context.fillText(text, Math.min(Math.max(0, x(at) - wide / 2), width - wide), 66);
  }
}

function drawRounds(job) {
  const rows = job.rounds.map((round, i) => roundRow(job, round, i)).slice(-ROWS).reverse();
  byId('rounds').hidden = rows.length === 0;
  byId('rounds').tBodies[0].replaceChildren(...rows);
}

function roundRow(job, round, index) {
  const now = coordinatorNow();
  const row = make('tr');
  const add = (label, text) => row.append(cellOf(label, text));
  add('Round', String(round.round));
  add('Began', clock(round.formed_ms));
  add('Workers', `${count(round.workers, 'rank')}, ${count(round.nodes, 'node')}`);
  add('Started in', round.started_ms === null ? '' : duration(round.started_ms - round.formed_ms));
  const end = round.stopped_ms ?? round.over_ms ?? now;
  add('Ran', round.started_ms === null ? '' : duration(end - round.started_ms));
  row.append(endCell(job, round));
  const recovery = recoveryOf(job.rounds, index);
  add('Recovered in', recovery === null ? '' : duration(recovery));
  return row;
}

function endCell(job, round) {
  const cell = cellOf('Ended by', '');
  if (round.stopped_ms === null) {
    cell.textContent = round.over_ms === null ? 'running' : 'all workers ended well';
  } else if (round.class) {
    cell.append(make('b', round.class.replaceAll('_', ' ')), ' ', round.root_cause);
  } else {
    cell.textContent = causeText(round);
  }
  return cell;
}
