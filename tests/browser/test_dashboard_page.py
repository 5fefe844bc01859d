"""The dashboard page of a job in a real browser."""

import sys

from feed import T0, finished, job, node, running
from nodes import HERE, Job, wait_for
from stories import play, thousand_nodes, two_nodes

STEPPER = ('--no-python', sys.executable, str(HERE / 'dashboard_worker.py'))
FLUENT_MS = 150  # for all updates of a second, on a busy machine without a GPU


def open_with(browser, feed, now, **jobs):
    feed.state(now, **jobs)
    browser.opens(feed.url)
    browser.wait('!document.getElementById("job").hidden')


def play_job(browser, feed, name, job, **how):
    """Opens the page before the first event: it keeps everything that it receives."""
    now, whole = job
    open_with(browser, feed, now, **{name: whole})
    play(feed, name, now, whole, **how)
    points = how.get('seconds', 240) // how.get('every', 1)
    browser.wait(f'(model.history.get(runId) ?? []).length >= {points}', 60)


def test_job_of_two_nodes_with_a_failure(browser, cluster, pictures):
    real = Job(cluster, 2, run_id='two nodes', restarts=3)
    for number in (0, 1):
        real.agent(number, nproc=2, program=STEPPER, SLOW='3', WORDS='out of luck')
    wait_for(real.is_open, 'the rendezvous')
    browser.opens(f'http://127.0.0.1:{real.port}/')
    browser.wait('document.getElementById("phase").textContent === "running"')
    browser.wait('document.querySelectorAll(".ranks i").length === 4')
    browser.wait('document.querySelectorAll(".ranks i.slow").length === 1')
    assert browser.text('.ranks i.slow') == '3'
    browser.wait('!document.getElementById("plot").hidden')
    assert browser.text('#run') == 'two nodes' and browser.text('#line') == 'live'
    browser.run('byId("ranks-part").open = true')
    browser.wait('[...document.querySelectorAll("#ranks tbody tr")].filter(row => '
                 '/^\\d+$/.test(row.cells[5].textContent) && '
                 'row.cells[6].textContent.endsWith("MiB")).length === 4')
    browser.run('byId("ranks-part").open = false')
    broken = real.status()['round']
    (cluster.folder / f'exit-rank-1-round-{broken}').write_text('3')
    browser.wait('document.querySelectorAll("#rounds tbody tr").length === 2')
    browser.wait('document.querySelector("#rounds tbody td:last-child") && '
                 'document.querySelectorAll("#rounds tbody tr")[1].lastChild.textContent !== ""')
    assert 'user error rank 1 (pid ' in browser.text('#rounds')
    assert browser.text('#words') == 'out of luck'
    assert 'all ranks ran again' in browser.text('#failure_summary-title')
    browser.picture(pictures / 'real.png')
    cluster.finish()


TOKEN = 'a token that nobody guesses'
PRINTER = ('--no-python', 'sh', '-c',
          'echo "rank $RANK: <b>epoch 1</b>"; for n in $(seq 60); do echo "step $n"; done; '
          'while [ ! -e "$NODES_DIR/exit-all" ]; do sleep 0.1; done')


def show_log(browser, rank, token):
    browser.run(f'byId("log-rank").value = {rank}; byId("log-token").value = "{token}"; '
                'byId("log-form").requestSubmit()')


def test_log_lines_of_a_rank_with_the_token(browser, cluster, pictures):
    real = Job(cluster, 2, run_id='a job & its log')
    for number in (0, 1):
        real.agent(number, '--tee=3', f'--log-dir={cluster.tmp}/logs{number}', nproc=2,
                   program=PRINTER, CPPRUN_ADMIN_TOKEN=TOKEN)
    wait_for(real.is_open, 'the rendezvous')
    browser.opens(f'http://127.0.0.1:{real.port}/')
    browser.wait('document.querySelectorAll(".ranks i").length === 4')
    show_log(browser, 0, 'some other token of this length')
    browser.wait('byId("log-why").textContent.startsWith("Refused")')
    browser.complaints()  # the rejection: 403
    assert browser.run('return byId("log-lines").hidden')
    browser.wait('fetch("log/nonce").then(answer => answer.ok)')  # after a wrong one it waits 1 s
    browser.complaints()
    browser.run(f'byId("log-token").value = "{TOKEN}"')
    browser.run('document.querySelectorAll(".ranks i")[3].click()')
    browser.wait('byId("log-out").textContent.endsWith("step 60")')
    shown = browser.text('#log-out')
    assert shown.startswith('step 11\n') and shown.count('\n') == 49
    assert browser.text('#log-why').startswith('rank 3 on ')
    assert not browser.run('return byId("log-stop").hidden')
    browser.picture(pictures / 'log.png')
    browser.run('byId("log-stop").click()')
    assert browser.run('return byId("log-lines").hidden && log.source === null')
    cluster.finish()


def test_without_web_crypto_the_page_names_a_safe_way(browser, feed):
    now, whole = two_nodes()
    open_with(browser, feed, now, two=whole)
    browser.run('Object.defineProperty(window, "isSecureContext", {value: false})')
    show_log(browser, 0, TOKEN)
    browser.wait('byId("log-why").textContent.includes("ssh -L ")')


def test_steps_from_before_the_page_was_opened(browser, feed):
    now, whole = two_nodes()
    feed.steps = {'jobs': {'two': [[now - 60_000 + i * 1000, whole['round'], 4000 + i, 3999 + i,
                                    51_200, 60_000, 5] for i in range(50)]}}
    open_with(browser, feed, now, two=whole)
    browser.wait('!byId("plot").hidden')
    assert 'slowest 60.0 ms, rank 5' in browser.text('#plot-key')
    assert '4,049' in browser.text('#figures')
    feed.progress(now, two={'round': whole['round'], 'steps': [5000] * 8, 'step_us': [50_000] * 8})
    browser.wait('model.history.get("two").length === 51')


def test_outcome_of_a_failed_job(browser, feed, pictures):
    whole = job([], [finished(1, T0, 300, 9000, 50, ('failure', 'crash', 'rank 0 crashed'), 2, 8)],
                phase='ended', state='failed', outcome='failure',
                failure_summary='rank 0 crashed; restarts used: 0 of 0')
    open_with(browser, feed, T0 + 20_000, lost=whole)
    assert browser.text('#phase') == 'failed'
    assert browser.text('#failure_summary-title') == 'The job has failed'
    assert browser.text('#failure_summary-text') == 'rank 0 crashed; restarts used: 0 of 0'
    assert browser.run('return document.title') == 'failed · lost'
    assert 'Nodes and ranks' not in browser.text('#job'), 'none is left'
    browser.picture(pictures / 'failed.png')


def test_error_of_a_failed_job_stands_first(browser, feed, pictures):
    why = ('failure', 'user_error', 'rank 1 exited with code 1')
    end = finished(1, T0, 300, 9000, 50, why, 1, 2)
    end |= {'error': 'ValueError: bad batch at index 17', 'location': 'train.py:4 in load',
            'hint': 'look at the batch', 'last_lines': ['ValueError: bad batch at index 17']}
    whole = job([], [end], phase='ended', state='failed', outcome='failure',
                failure_summary='rank 1 exited with code 1; restarts used: 0 of 0')
    steps = {'round': 1, 'at_ms': T0 + 9000, 'steps': [2730, 1740], 'step_us': [51_000, 80_000]}
    open_with(browser, feed, T0 + 20_000, lost=whole)
    feed.progress(T0 + 20_000, lost=steps)
    assert browser.text('#failure_summary-title') == 'ValueError: bad batch at index 17'
    assert browser.text('#failure_summary-text').startswith('train.py:4 in load; rank 1 exited')
    assert browser.text('#failure_summary-hint') == 'Hint: look at the batch'
    browser.wait('byId("figures").innerText.includes("2,730")')
    assert 'slowest 1,740' in browser.text('#figures')
    assert browser.run('return model.history.get("lost")[0].at') == T0 + 9000
    browser.picture(pictures / 'failed_error.png')


def test_healed_failure_is_one_small_line(browser, feed):
    now, whole = two_nodes()
    whole['rounds'][1] |= {'error': 'the node died', 'hint': 'look at the node', 'location': ''}
    open_with(browser, feed, now, two=whole)
    assert 'healed' in browser.run('return byId("failure_summary").className')
    assert browser.run('return byId("failure_summary").offsetHeight') < 60
    assert browser.text('#failure_summary-hint') == ''


def rank_row(browser, rank):
    return browser.run('return [...document.querySelectorAll("#ranks tbody tr")]'
                       f'[{rank}].innerText').split('\t')


def test_rank_table_names_pids_memory_and_logs(browser, feed, pictures):
    now, whole = two_nodes()
    open_with(browser, feed, now, two=whole)
    browser.run('byId("ranks-part").open = true')
    assert [cell.strip() for cell in rank_row(browser, 0)[5:]] == ['–', '–', '–']
    feed.progress(now, two={'round': whole['round'], 'steps': [2730] * 8, 'step_us': [51_000] * 8})
    evil = '/logs/<img src=x>/attempt_0/1'
    feed.workers(now, two={'round': whole['round'],
                           'ranks': [[0, 4711, 812, ''], [1, 4712, 24_371, evil],
                                     [2, 4713, -1, '/logs/attempt_0/2']]})
    browser.wait('byId("ranks").innerText.includes("4712")')
    rows = [[cell.strip() for cell in rank_row(browser, rank)] for rank in range(4)]
    assert rows[0][3:] == ['2,730', '51.0 ms', '4711', '812 MiB', '–']
    assert rows[1][5:] == ['4712', '23.8 GiB', evil]
    assert rows[2][5:] == ['4713', '–', '/logs/attempt_0/2']
    assert rows[3][5:] == ['–', '–', '–']
    assert browser.run('return document.images.length') == 0
    browser.picture(pictures / 'ranks.png')
    feed.workers(now, two={'round': whole['round'] - 1, 'ranks': [[0, 4600, 1, '']]})
    browser.wait('!byId("ranks").innerText.includes("471")')
    assert rank_row(browser, 0)[5].strip() == '–', 'of an earlier round'


def test_narrow_screen_shows_whole_rows(browser, feed, pictures):
    now, whole = two_nodes()
    browser.devtools('Emulation.setDeviceMetricsOverride', width=420, height=900,
                     deviceScaleFactor=1, mobile=True)
    open_with(browser, feed, now, two=whole)
    browser.wait('document.querySelectorAll("#rounds tbody tr").length === 3')
    assert browser.run('return document.documentElement.scrollWidth') <= 420
    widest = browser.run('return Math.max(...[...document.querySelectorAll("#rounds td")]'
                         '.map(cell => cell.getBoundingClientRect().right))')
    assert widest <= 420
    browser.run('byId("ranks-part").open = true')
    label = browser.run('return getComputedStyle(document.querySelector("#ranks td"), "::before")'
                        '.content')
    assert 'Rank' in label
    assert browser.run('return document.querySelectorAll("#ranks tbody tr").length') == 8
    browser.picture(pictures / 'narrow.png')


def test_waiting_job_names_the_missing_nodes(browser, feed):
    whole = job([node(0, 'idle', part=False)], [running(0, T0, 0, 0, 0)], phase='waiting_for_nodes',
                state='waiting', why_no_round='1 of at least 2 nodes joined')
    whole['rounds'] = []
    open_with(browser, feed, T0, **{'its name': whole})
    assert browser.text('#phase') == 'waiting'
    assert '1 of at least 2 nodes joined' in browser.text('.title')
    assert browser.text('#waiting-title') == 'Waiting for 1 more node'
    command = browser.text('#waiting-command')
    assert '--nnodes=2 ' in command and '--rdzv-endpoint=node0000:' in command
    assert "--rdzv-id='its name'" in command
    for empty in ('figures', 'rounds-part', 'steps-part', 'log-part'):
        assert browser.run(f'return byId("{empty}").hidden'), empty


def test_hostile_text_stays_text(browser, feed):
    evil = '<img src=x onerror="window.broken=1"><script>window.broken=1</script>'
    end = finished(1, T0, 300, 9000, 50, ('failure', 'crash', evil), 1, 1)
    end['last_lines'] = [evil, '\u202e\x1b[31m']
    whole = job([node(0, name=evil, nproc=1), node(1, state=evil, nproc=1)],
                [end, running(2, T0 + 10_000, 100, 2, 2)], why_no_round=evil, failure_summary=evil)
    open_with(browser, feed, T0 + 20_000, **{evil: whole, 'other"\'&': whole})
    for place in ('#run', '#cards', '#rounds', '#words', '#failure_summary', '#jobs'):
        assert evil in browser.text(place), place
    assert browser.run('return document.images.length + document.scripts.length') == 1
    assert browser.run('return typeof window.broken') == 'undefined'
    browser.run('document.querySelectorAll("nav a")[1].click()')
    browser.wait('document.getElementById("run").textContent === "other\\"\'&"')


def test_thousand_nodes_render_fluently(browser, feed, pictures):
    play_job(browser, feed, 'llm-70b', thousand_nodes(), base_us=2_310_000, slow=3344, every=4)
    for text in ('984 running', '14 starting', '1 silent', '1 dead', '6 idle', 'much slower'):
        assert text in browser.text('#legend')
    took = browser.run('const begun = performance.now(); for (let i = 0; i < 10; ++i) draw();'
                       'return (performance.now() - begun) / 10')
    assert took < FLUENT_MS
    browser.run('showTip({offsetX: (418 % grid.columns) * grid.size + 2, '
                'offsetY: Math.floor(418 / grid.columns) * grid.size + 2})')
    tip = browser.text('#tip')
    assert 'node0418: running' in tip and 'ranks 3344 to 3351' in tip and 'rank 3344: step' in tip
    browser.run('document.getElementById("tip").hidden = true')
    browser.picture(pictures / 'thousand.png')
    browser.scheme('dark')
    browser.wait('color("page") !== "#f6f6f3"')
    browser.picture(pictures / 'thousand-dark.png')


def test_light_and_dark(browser, feed, pictures):
    play_job(browser, feed, 'resnet50', two_nodes(), base_us=51_200, slow=5)
    seen = set()
    for scheme in ('light', 'dark'):
        browser.scheme(scheme)
        dark = str(scheme == 'dark').lower()
        browser.wait(f'matchMedia("(prefers-color-scheme: dark)").matches === {dark}')
        browser.run('draw()')
        seen.add(browser.run('return getComputedStyle(document.body).backgroundColor + '
                             'document.getElementById("timeline").getContext("2d")'
                             '.getImageData(60, 60, 1, 1).data.join()'))
        browser.picture(pictures / f'two-{scheme}.png')
    assert len(seen) == 2


def test_lost_coordinator_is_shown(browser, feed):
    now, whole = two_nodes()
    open_with(browser, feed, now, two=whole)
    browser.wait('document.getElementById("line").textContent === "live"')
    feed.close()
    browser.wait('document.getElementById("line").textContent.startsWith("disconnected")')
    assert browser.text('#run') == 'two', 'what was known stays'
    browser.opens('about:blank')
    browser.complaints()  # the broken connection
