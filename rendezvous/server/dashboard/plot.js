// Plot of the step times of the median and the slowest rank.
const PLOT_MS = 3600000;  // longer ranges would flatten the plot

const GAP_MS = 5000;

// Hatches the times between two points of one round in which no page was open.
function drawGaps(context, points, x, bottom) {
  context.strokeStyle = color('line');
  context.lineWidth = 1;
  points.forEach((point, i) => {
    const before = points[i - 1];
    if (!before || point.at - before.at <= GAP_MS || point.round !== before.round) return;
    const [from, to] = [x(before.at), x(point.at)];
    context.save();
    context.beginPath();
    context.rect(from, 6, to - from, bottom - 6);
    context.clip();
    context.beginPath();
    for (let at = from - bottom; at < to; at += 8) {
      context.moveTo(at, bottom);
      context.lineTo(at + bottom, 0);
    }
    context.stroke();
    context.restore();
  });
}

function drawPlot(points) {
  const newestAt = Math.max(coordinatorNow(), points[points.length - 1]?.at ?? 0);
  const known = points.filter(point => point.median !== null && newestAt - point.at < PLOT_MS);
  byId('plot').hidden = known.length === 0;
  byId('plot-none').hidden = known.length > 0;
  byId('plot-key').hidden = known.length === 0;
  if (known.length === 0) return;
  const newest = known[known.length - 1];
  byId('plot-key').replaceChildren(
    swatch(`median ${stepTime(newest.median)}`, 'running'),
    swatch(`slowest ${stepTime(newest.slowest)}, rank ${newest.rank}`, 'silent'),
    ...(hasGaps(known) ? [swatch('hatched: no reports', 'line')] : []));
  const canvas = byId('plot');
  const {context, width, height} = sheet(canvas, 180);
  const most = Math.max(...known.map(point => point.slowest)) * 1.08;
  const left = 56;
  const bottom = height - 20;
  const until = newestAt;
  const from = Math.min(known[0].at, until - 60000);
  const x = at => left + (at - from) / (until - from) * (width - left - 2);
  const y = us => bottom - us / most * (bottom - 6);
  drawRules(context, most, left, width, y);
  drawGaps(context, known, x, bottom);
  drawLine(context, known, point => point.slowest, x, y, color('silent'));
  drawLine(context, known, point => point.median, x, y, color('running'));
  context.fillStyle = color('quiet');
  for (let i = 0; i <= 4; ++i) {
    const at = from + (until - from) * i / 4;
    const text = clock(at);
    const wide = context.measureText(text).width;
    context.fillText(text, Math.min(x(at) - wide / 2, width - wide), height - 4);
  }
  canvas.setAttribute('aria-label', `Step time: median ${stepTime(newest.median)}`);
}

function drawRules(context, most, left, width, y) {
  for (const us of [0, ...ticks(most, 5)]) {
    context.fillStyle = color('line');
    context.fillRect(left, Math.round(y(us)), width - left, 1);
    context.fillStyle = color('quiet');
    const text = shortTime(us);
    context.fillText(text, left - 8 - context.measureText(text).width, y(us) + 4);
  }
}

function hasGaps(points) {
  return points.some((point, i) => i > 0 && point.at - points[i - 1].at > GAP_MS &&
    point.round === points[i - 1].round);
}

// Interrupted where points are missing or another round began; a dot at its end.
function drawLine(context, points, value, x, y, stroke) {
  context.strokeStyle = stroke;
  context.lineWidth = 1.5;
  context.lineJoin = context.lineCap = 'round';
  context.beginPath();
  points.forEach((point, i) => {
    const before = points[i - 1];
    const isBroken = !before || point.at - before.at > GAP_MS || point.round !== before.round;
    if (isBroken) context.moveTo(x(point.at) - 0.5, y(value(point)));
    context.lineTo(x(point.at), y(value(point)));
  });
  context.stroke();
  const newest = points[points.length - 1];
  context.fillStyle = stroke;
  context.beginPath();
  context.arc(x(newest.at) - 2, y(value(newest)), 3, 0, 2 * Math.PI);
  context.fill();
}
