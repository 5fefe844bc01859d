// The map of nodes and ranks: cards if there is room, otherwise a square per node.
const CARDS = 48;
const RANK_ROWS = 256;  // the map shows all

function drawMap(job, progress) {
  const nodes = nodesOf(job);
  byId('map').hidden = nodes.length === 0;
  if (nodes.length === 0) return;
  drawLegend(job, nodes, progress);
  const isSmall = nodes.length <= CARDS && nodes.every(node => node.nproc <= 64);
  byId('cards').hidden = !isSmall;
  byId('grid').hidden = isSmall;
  if (isSmall) {
    byId('cards').replaceChildren(...nodes.map(node => card(node, progress)));
  } else {
    drawGrid(nodes, progress);
  }
}

function drawLegend(job, nodes, progress) {
  const counts = new Map();
  for (const node of nodes) counts.set(node.state, (counts.get(node.state) ?? 0) + 1);
  const items = STATES.filter(state => counts.has(state))
    .map(state => swatch(`${counts.get(state).toLocaleString('en')} ${state}`, state));
  if (job.node_count > nodes.length) {
    items.push(make('span', `and ${count(job.node_count - nodes.length, 'more node')}`));
  }
  if (nodes.some(node => slowRank(node, progress))) {
    const slow = swatch('a rank much slower than most', 'card');
    slow.firstChild.classList.add('ringed');
    items.push(slow);
  }
  byId('legend').replaceChildren(...items);
}

// The rank is noticeably slower than most.
function isSlow(progress, rank) {
  return progress && progress.step_us[rank] > 1.25 * progress.median && progress.step_us[rank] > 0;
}

function rankText(progress, rank) {
  if (!progress || !(progress.steps[rank] >= 0)) return `rank ${rank}`;
  const took = progress.step_us[rank] > 0 ? `, ${stepTime(progress.step_us[rank])} a step` : '';
  return `rank ${rank}: step ${progress.steps[rank].toLocaleString('en')}${took}`;
}

function card(node, progress) {
  const box = make('div', '', 'node');
  const name = make('div', '', 'name');
  const bold = make('b', node.name);
  bold.title = `${node.name}, ${node.address}, role ${node.role}`;
  name.append(bold, make('span', node.groupRank === null ? `${node.state}, not in the round` : node.state));
  const ranks = make('div', '', 'ranks');
  for (let i = 0; i < node.nproc; ++i) {
    const rank = node.baseRank === null ? null : node.baseRank + i;
    const cell = make('i', rank === null ? '·' : String(rank));
    cell.style.background = `var(--${STATES.includes(node.state) ? node.state : 'idle'})`;
    if (node.state === 'idle') cell.className = 'pale';
    if (rank !== null) {
      cell.title = rankText(progress, rank);
      cell.dataset.rank = rank;
    }
    if (rank !== null && isSlow(progress, rank)) cell.classList.add('slow');
    ranks.append(cell);
  }
  box.append(name, ranks);
  return box;
}

// All ranks as a table, for touch screens, where the map shows no details.
function drawRankTable(job, progress, processes) {
  const rows = [];
  for (const node of nodesOf(job)) {
    for (let i = 0; node.baseRank !== null && i < node.nproc; ++i) {
      if (rows.length === RANK_ROWS) break;
      rows.push(rankRow(node, node.baseRank + i, progress, processes));
    }
  }
  byId('ranks-part').hidden = rows.length === 0;
  byId('ranks').tBodies[0].replaceChildren(...rows);
}

function rankRow(node, rank, progress, processes) {
  const [pid, mib, log] = processes.get(rank) ?? [];
  const step = progress?.steps[rank] >= 0 ? progress.steps[rank].toLocaleString('en') : '–';
  const took = progress?.step_us[rank] > 0 ? stepTime(progress.step_us[rank]) : '–';
  const row = make('tr');
  row.append(cellOf('Rank', String(rank)), cellOf('Node', node.name), cellOf('State', node.state),
    cellOf('Step', step), cellOf('Step time', took), cellOf('Pid', pid ? String(pid) : '–'),
    cellOf('Memory', memoryText(mib)), cellOf('Logs', log || '–'));
  return row;
}

const grid = {nodes: [], columns: 1, size: 1, progress: null};

function drawGrid(nodes, progress) {
  const canvas = byId('grid');
  const width = canvas.clientWidth || canvas.parentElement.clientWidth - 34;
  grid.size = Math.max(6, Math.min(26, Math.floor(Math.sqrt(width * 380 / nodes.length))));
  grid.columns = Math.max(1, Math.floor(width / grid.size));
  Object.assign(grid, {nodes, progress});
  const {context} = sheet(canvas, Math.ceil(nodes.length / grid.columns) * grid.size);
  const fills = Object.fromEntries(STATES.map(state => [state, color(state)]));
  const ring = color('ring');
  const gap = grid.size > 10 ? 2 : 1;
  nodes.forEach((node, i) => {
    const x = i % grid.columns * grid.size;
    const y = Math.floor(i / grid.columns) * grid.size;
    const edge = grid.size - gap;
    context.fillStyle = fills[node.state] ?? fills.idle;
    context.fillRect(x, y, edge, edge);
    if (!slowRank(node, progress)) return;
    context.strokeStyle = ring;
    context.lineWidth = 2;
    context.strokeRect(x + 1, y + 1, edge - 2, edge - 2);
  });
  canvas.setAttribute('aria-label', `A map of ${count(nodes.length, 'node')}`);
}

// The first slow rank of a node, as a list, since rank 0 is falsy.
function slowRank(node, progress) {
  for (let i = 0; progress && node.baseRank !== null && i < node.nproc; ++i) {
    if (isSlow(progress, node.baseRank + i)) return [node.baseRank + i];
  }
  return null;
}

function nodeText(node) {
  const lines = [`${node.name}: ${node.state}`, `${node.address}, role ${node.role}`];
  if (node.baseRank === null) return [...lines, 'not in this round'].join('\n');
  const last = node.baseRank + node.nproc - 1;
  lines.push(node.nproc === 1 ? `rank ${last}` : `ranks ${node.baseRank} to ${last}`);
  const shown = slowRank(node, grid.progress)?.[0] ?? node.baseRank;
  if (grid.progress?.steps[shown] >= 0) lines.push(rankText(grid.progress, shown));
  return lines.join('\n');
}

function nodeAt(event) {
  const column = Math.floor(event.offsetX / grid.size);
  if (column >= grid.columns) return undefined;
  return grid.nodes[Math.floor(event.offsetY / grid.size) * grid.columns + column];
}

function showTip(event) {
  const node = nodeAt(event);
  const tip = byId('tip');
  tip.hidden = !node;
  if (tip.hidden) return;
  tip.textContent = nodeText(node);
  const canvas = byId('grid');
  const x = Math.min(event.offsetX + 14, canvas.clientWidth - tip.offsetWidth);
  tip.style.left = canvas.offsetLeft + Math.max(0, x) + 'px';
  tip.style.top = canvas.offsetTop + event.offsetY + 16 + 'px';
}
