// The last log lines of one rank, for users who know the admin token. The token stays in its field;
// the page sends only a MAC of the request. Browsers offer the MAC function only in a secure
// context (https, or localhost through a tunnel), so lines cannot be read over plain http.
const log = {runId: null, source: null, received: null, attempt: 0};

async function macOf(token, words) {
  const bytes = text => new TextEncoder().encode(text);
  const kind = {name: 'HMAC', hash: 'SHA-256'};
  const key = await crypto.subtle.importKey('raw', bytes(token), kind, false, ['sign']);
  const mac = new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes(words)));
  return [...mac].map(byte => byte.toString(16).padStart(2, '0')).join('');
}

function closeLog(why = '') {
  log.source?.close();
  Object.assign(log, {source: null, received: null, attempt: log.attempt + 1});
  byId('log-why').textContent = why;
  drawLog();
}

async function openLog() {
  closeLog();
  const attempt = log.attempt;
  const [job, rank] = [runId, Number(byId('log-rank').value)];
  log.runId = job;
  if (!window.isSecureContext) {
    const port = location.port || '80';
    return closeLog('Log lines are shown over a safe way only: ssh -L ' + port + ':localhost:' +
      port + ' ' + location.hostname + ', then open http://localhost:' + port + '/');
  }
  const asked = await fetch('log/nonce');
  const nonce = await asked.text();
  if (attempt !== log.attempt) return undefined;
  if (!asked.ok) return closeLog(nonce);
  const words = ['cpprun log lines', nonce, job, rank].join('\n');
  const mac = await macOf(byId('log-token').value, words);
  if (attempt !== log.attempt) return undefined;
  const query = {job, rank, nonce, mac};
  log.source = new EventSource('log?' + Object.entries(query)
    .map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join('&'));
  log.source.addEventListener('log', event => {
    log.received = JSON.parse(event.data);
    drawLog();
  });
  log.source.onerror = () => onLogBroken(attempt);
  return undefined;
}

// A nonce is valid once, so an automatic reconnect of the browser would be refused.
function onLogBroken(attempt) {
  if (attempt !== log.attempt || log.source.readyState !== EventSource.CLOSED) return;
  const hadLines = Boolean(log.received);
  closeLog(hadLines ? 'Out of touch.' : 'Refused: is that the CPPRUN_ADMIN_TOKEN of the agent ' +
    'that hosts the rendezvous?');
  if (hadLines) setTimeout(() => { if (log.attempt === attempt + 1) openLog(); }, AGAIN_MS);
}

function drawLog() {
  if (log.runId !== null && log.runId !== runId) {
    log.runId = null;
    closeLog();
  }
  const received = log.received;
  byId('log-stop').hidden = !log.source;
  byId('log-lines').hidden = !received;
  if (!received) return;
  byId('log-why').textContent = received.why || `rank ${received.rank} on ${received.node}`;
  for (const stream of ['out', 'err']) {
    const place = byId('log-' + stream);
    const isAtEnd = place.scrollTop + place.clientHeight >= place.scrollHeight - 4;
    place.textContent = received[stream].join('\n');
    place.parentElement.hidden = received[stream].length === 0;
    if (isAtEnd) place.scrollTop = place.scrollHeight;
  }
}

// Called when the user clicks on a rank in the map.
function chooseRank(rank) {
  byId('log-rank').value = rank;
  if (byId('log-token').value) openLog();
  byId('log-part').scrollIntoView({block: 'nearest'});
}

function listenToLog() {
  byId('log-form').addEventListener('submit', event => {
    event.preventDefault();
    openLog();
  });
  byId('log-stop').addEventListener('click', () => closeLog());
  byId('cards').addEventListener('click', event => {
    if (event.target.dataset.rank) chooseRank(Number(event.target.dataset.rank));
  });
  byId('grid').addEventListener('click', event => {
    const node = nodeAt(event);
    if (node && node.baseRank !== null) chooseRank(slowRank(node, grid.progress)?.[0] ?? node.baseRank);
  });
}
