"""A small server that looks to jlr like the Jupyter server of a session: `stand_in.py NAME`.

It runs on the host, or in a container, with DIRECTORY (the session's folder) and BIND in its
environment. It listens on a free port (or PORT), writes the runtime file, wants the token, and
answers with its pid; it ends when it is asked to.
"""

import json
import os
import secrets
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

name = sys.argv[1]
token = secrets.token_hex(24)
answers = {
    f"/{name}/api/status": {"pid": os.getpid(), "started": str(time.time()), "kernels": 0},
    f"/{name}/api/kernels": [],
    f"/{name}/api/sessions": [],
}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == f"token {token}"
        answer = answers.get(self.path.partition("?")[0]) if allowed else None
        body = json.dumps(answer).encode()
        self.send_response(403 if answer is None else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        allowed = self.headers.get("Authorization") == f"token {token}"
        ends = allowed and self.path == f"/{name}/api/shutdown"
        self.send_response(200 if ends else 403)
        self.send_header("Content-Length", "0")
        self.end_headers()
        if ends:
            threading.Thread(target=server.shutdown).start()

    def log_message(self, *what: object) -> None:
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *what: object) -> None:
        pass  # a connection that was dropped


server = Server((os.environ["BIND"], int(os.environ.get("PORT", "0"))), Handler)
runtime = Path(os.environ["DIRECTORY"]) / "runtime"
runtime.mkdir(mode=0o700, parents=True, exist_ok=True)
for old in runtime.glob("*.json"):
    old.unlink()
facts = {"port": server.server_port, "base_url": f"/{name}/", "token": token, "root_dir": "/"}
draft = runtime / "draft"
draft.write_text(json.dumps(facts), encoding="utf-8")
draft.rename(runtime / f"jpserver-{os.getpid()}.json")
server.serve_forever()
