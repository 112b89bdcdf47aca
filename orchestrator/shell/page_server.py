"""A page on localhost that reloads when its file changes."""

from __future__ import annotations

import os
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from orchestrator.shell.stamp import state_of

HOST: Final = "127.0.0.1"
_STATE: Final = "/state"
# Milliseconds between two looks, chosen by hand: below a second, so that a finished
# build is seen at once.
_WAIT_MS: Final = 700

_RELOAD: Final = f"""
<script>
(() => {{
  let seen = null;
  setInterval(async () => {{
    try {{
      const state = await (await fetch("{_STATE}", {{ cache: "no-store" }})).text();
      if (seen !== null && state !== seen) location.reload();
      seen = state;
    }} catch {{ /* the server ended */ }}
  }}, {_WAIT_MS});
}})();
</script>
"""
_WAITING: Final = "<!doctype html><title>no report</title><p>No report yet: build it."


class PageServer(ThreadingHTTPServer):
    """Serves one file, and nothing else, to this machine.

    Args:
        file: The page; it may come and go.
        port: 0 for a free one.
    """

    # Ctrl-C ends the server without waiting for requests that are under way.
    daemon_threads = True

    def __init__(self, file: Path, port: int = 0) -> None:
        self.file = file
        super().__init__((HOST, port), _Handler)

    @property
    def url(self) -> str:
        """Where the page is."""
        return f"http://{HOST}:{self.server_address[1]}/"


class _Handler(BaseHTTPRequestHandler):
    server: PageServer

    def do_GET(self) -> None:  # the name that http.server calls
        """Answer with the page, or with the state of its file."""
        # Another name for this machine in `Host` means that a page from elsewhere asks.
        # DNS rebinding: a page from elsewhere whose name resolves to 127.0.0.1 could
        # read the report otherwise.
        host = self.headers.get("Host", "").rpartition(":")[0]
        if host not in (HOST, "localhost"):
            self._answer(b"", "text/plain", HTTPStatus.FORBIDDEN)
        elif self.path == _STATE:
            self._answer(self._state().encode(), "text/plain")
        elif self.path == "/":
            self._answer(self._page().encode(), "text/html; charset=utf-8")
        else:
            self._answer(b"", "text/plain", HTTPStatus.NOT_FOUND)

    def _state(self) -> str:
        return repr(state_of(os.fspath(self.server.file.resolve())))

    def _page(self) -> str:
        try:
            text = self.server.file.read_text(encoding="utf-8")
        except OSError:
            text = _WAITING
        return (
            text.replace("</body>", f"{_RELOAD}</body>") if "</body>" in text else (text + _RELOAD)
        )

    def _answer(self, data: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        # The page is reloaded because it changed: a browser must not answer with what
        # it kept.
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        """Say nothing about requests."""
