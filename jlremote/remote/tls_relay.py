"""The relay to a Jupyter server that speaks TLS, proved by the file of its certificate.

The relay is where the server runs, so it reads that file itself, for each connection: Jupyter reads
it for each, too. Nothing that only the wire tells is believed, and no authority or name is asked.
"""

import glob
import os
import re
import ssl
from contextlib import suppress
from typing import Any, Dict, Iterator, List

from jlremote.remote import relay

# Why a server is refused, as the counts of the relay's frame.
NO_TLS, NO_FILE, OTHER_CERTIFICATE, WANTS_CERTIFICATE = range(1, 5)

_MOST_BYTES = 1 << 20
_KINDS = (".pem", ".crt", ".cer", ".cert")
_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"


class Certificates:
    """The certificates that a server may have, and connections that prove to have one of them.

    `blocked` are the exceptions of a socket that has nothing to read or cannot write now, and
    `wants_to_read` is the one that waits for more to read.
    """

    no_tls = NO_TLS
    wants_to_read = ssl.SSLWantReadError
    blocked = (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)

    def __init__(self, pid: int) -> None:
        self.process = f"/proc/{pid}"
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname, self.context.verify_mode = False, ssl.CERT_NONE
        self.become_its_user()

    def become_its_user(self) -> None:
        """Become the server's user: not even root may look into the processes of others here."""
        facts = dict(line.split(":", 1) for line in _text(self.process + "/status").splitlines())
        with suppress(OSError, LookupError):
            uid, gid = (int(facts[name].split()[0]) for name in ("Uid", "Gid"))
            if os.geteuid() == 0 != uid:
                os.setgroups([int(group) for group in facts["Groups"].split()])
                os.setgid(gid)
                os.setuid(uid)

    def why(self, error: OSError) -> int:
        return WANTS_CERTIFICATE if "CERTIFICATE" in str(error) else 0

    def refusal(self, sock: Any) -> int:
        """Return why the server behind a connection is refused, 0 for none."""
        shown, found = sock.getpeercert(True), False
        for path in self.paths():
            certificate = _certificate(path)
            if certificate == shown:
                return 0
            found = found or certificate != b""
        return OTHER_CERTIFICATE if found else NO_FILE

    def paths(self) -> Iterator[str]:
        """Yield the paths in its command line and configuration, and in Jupyter's folders.

        Only Jupyter itself could tell which text of a configuration is the path, if any.
        """
        words = _text(self.process + "/environ").split("\0")
        variables = dict(word.split("=", 1) for word in words if "=" in word)
        named = _text(self.process + "/cmdline").replace("=", "\0").split("\0")
        for folder in map(glob.escape, filter(None, self.folders(variables, named[0]))):
            for kind in ("*.py", "*.json", "*.d/*.json"):
                named += self.quoted(os.path.join(folder, kind))
            for kind in _KINDS:
                named += glob.glob(os.path.join(folder, "*" + kind))
        for word in list(named):
            if word.endswith((".py", ".json")):
                named += self.quoted(self.absolute(word))
        for word in named:
            for path in (word, variables.get(word, "")):
                # Others may write to the working folder: a word is not enough.
                if os.path.isabs(path) or path.endswith(_KINDS):
                    yield self.absolute(path)

    def quoted(self, pattern: str) -> Any:
        """Return the texts in quotes of the files of a pattern."""
        texts = (_text(path) for path in glob.glob(pattern))
        return [word for text in texts for word in re.findall(r"""["']([^"'\n]+)["']""", text)]

    def absolute(self, path: str) -> str:
        return os.path.join(self.process + "/cwd", path)

    def folders(self, variables: Dict[str, str], python: str) -> Iterator[str]:
        """Yield the folders of Jupyter's configuration and data.

        Source: https://docs.jupyter.org/en/latest/use/jupyter-directories.html
        """
        home = variables.get("HOME", "/root")
        data = variables.get("XDG_DATA_HOME") or home + "/.local/share"
        yield from variables.get("JUPYTER_CONFIG_PATH", "").split(":")
        yield variables.get("JUPYTER_CONFIG_DIR") or home + "/.jupyter"
        yield variables.get("JUPYTER_DATA_DIR") or data + "/jupyter"
        prefix = os.path.dirname(os.path.dirname(python))
        for place in (prefix, home + "/.local", "/usr/local", ""):
            yield place + "/etc/jupyter"


def _text(path: str) -> str:
    with suppress(OSError, ValueError):
        if os.path.isfile(path):
            with open(path, errors="surrogateescape") as file:
                return file.read(_MOST_BYTES)
    return ""


def _certificate(path: str) -> bytes:
    """Return the first certificate of a file, which is the server's own; empty for none."""
    _, begin, rest = _text(path).partition(_BEGIN)
    body, end, _ = rest.partition(_END)
    with suppress(ValueError):
        return ssl.PEM_cert_to_DER_cert(begin + body + end) if end else b""
    return b""


def main(argv: List[str]) -> None:
    """Serve frames for the server whose process id is given."""
    relay.main([], Certificates(int(argv[0])))
