"""A headless Chromium, driven through chromedriver (WebDriver over HTTP, no packages needed)."""

import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.request

# Nothing but the page under test is to be loaded, drawn or remembered.
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
         "--disable-background-networking", "--disable-component-update", "--disable-sync",
         "--disable-dev-shm-usage", "--force-color-profile=srgb", "--hide-scrollbars"]


def found():
    return shutil.which("chromium") is not None and shutil.which("chromedriver") is not None


class Browser:
    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="paceline-browser-")
        self.driver = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)
        port = next(match[1] for line in self.driver.stdout
                    if (match := re.search(r"started successfully on port (\d+)", line)))
        self.url = f"http://127.0.0.1:{port}"
        options = {"binary": shutil.which("chromium"),
                   "args": FLAGS + [f"--user-data-dir={self.profile}"]}
        session = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.url += f"/session/{session['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()
            shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method,
                                         headers={"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=120) as answer:
            return json.load(answer)["value"]

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, path, width=1200, height=900, dark=False):
        """Opens a file and returns when it is loaded. What it logs and loads is counted anew."""
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height,
                      deviceScaleFactor=1, mobile=width < 600)
        self.dark(dark)
        self.logs("browser"), self.logs("performance")
        self.call("POST", "/url", {"url": "file://" + urllib.request.pathname2url(
            os.path.abspath(path))})

    def dark(self, on):
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if on else "light"}])

    def run(self, script):
        """The value of a function's body."""
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def until(self, script, wanted, seconds=30):
        """The value as soon as wanted(value) is true, or what it was at the end of that time: pages
        answer to events when they come to it."""
        end = time.monotonic() + seconds
        while True:
            value = self.run(script)
            if wanted(value) or time.monotonic() > end:
                return value
            time.sleep(0.05)

    def logs(self, kind):
        return self.call("POST", "/se/log", {"type": kind})

    def requests(self):
        """Addresses asked for since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.logs("performance")]
        return [message["params"]["request"]["url"] for message in messages
                if message["method"] == "Network.requestWillBeSent"]

    def screenshot(self, path):
        """The whole page, not the window alone."""
        import base64
        shot = self.devtools("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))
