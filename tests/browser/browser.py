"""A headless Chromium, driven over WebDriver, with only the calls that the tests need."""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

MISSING = next((name for name in ('chromedriver', 'chromium') if not shutil.which(name)), None)


class Browser:
    def __init__(self, folder, width=1280, height=900):
        self.home = tempfile.TemporaryDirectory(dir=folder)
        self.log = open(f'{folder}/chromedriver.log', 'wb')
        self.driver = subprocess.Popen(['chromedriver', '--port=0'], stdout=subprocess.PIPE,
                                       stderr=self.log, text=True, start_new_session=True)
        self.session = None
        self.base = None
        try:
            self._begin(width, height)
        except BaseException:
            self.close()
            raise

    def _begin(self, width, height):
        for line in self.driver.stdout:
            if found := re.search(r'started successfully on port (\d+)', line):
                self.base = f'http://127.0.0.1:{found[1]}'
                break
        arguments = ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage',
                     '--hide-scrollbars', '--force-device-scale-factor=1', '--no-first-run',
                     f'--user-data-dir={self.home.name}', f'--window-size={width},{height}']
        wants = {'browserName': 'chrome', 'goog:chromeOptions': {'args': arguments},
                 'goog:loggingPrefs': {'browser': 'ALL'}}
        made = self._call('POST', '/session', {'capabilities': {'alwaysMatch': wants}})
        self.session = f'/session/{made["sessionId"]}'
        self.devtools('Emulation.setDeviceMetricsOverride', width=width, height=height,
                      deviceScaleFactor=1, mobile=False)

    def _call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        ask = urllib.request.Request(self.base + path, data, method=method,
                                     headers={'Content-Type': 'application/json'})
        with urllib.request.urlopen(ask, timeout=90) as answer:
            return json.load(answer)['value']

    def devtools(self, command, **parameters):
        return self._call('POST', f'{self.session}/goog/cdp/execute',
                          {'cmd': command, 'params': parameters})

    def opens(self, url):
        self._call('POST', f'{self.session}/url', {'url': url})
        return self

    def run(self, script):
        """The script's return value."""
        return self._call('POST', f'{self.session}/execute/sync', {'script': script, 'args': []})

    def wait(self, script, seconds=30):
        """Waits until the expression is true; returns its value."""
        until = time.monotonic() + seconds
        while not (got := self.run(f'return {script}')):
            assert time.monotonic() < until, f'not within {seconds} s: {script}\n{self.text()}'
            time.sleep(0.05)
        return got

    def text(self, what='body'):
        return self.run(f'return document.querySelector({json.dumps(what)}).innerText')

    def scheme(self, name):
        """light or dark, as the user prefers."""
        self.devtools('Emulation.setEmulatedMedia',
                      features=[{'name': 'prefers-color-scheme', 'value': name}])

    def picture(self, path):
        """The whole page, at any height."""
        height = self.run('return document.documentElement.scrollHeight')
        width = self.run('return innerWidth')
        shot = self.devtools('Page.captureScreenshot', captureBeyondViewport=True, format='png',
                             clip={'x': 0, 'y': 0, 'width': width, 'height': height, 'scale': 1})
        path.write_bytes(base64.b64decode(shot['data']))

    def complaints(self):
        """Errors in the browser's console."""
        entries = self._call('POST', f'{self.session}/se/log', {'type': 'browser'})
        return [line['message'] for line in entries if line['level'] == 'SEVERE']

    def close(self):
        try:
            if self.session:
                self._call('DELETE', self.session)
        finally:
            self.driver.terminate()
            self.driver.wait(20)
            self.driver.stdout.close()
            self.log.close()
            self.home.cleanup()
