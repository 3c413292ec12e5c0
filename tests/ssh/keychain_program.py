"""Uses the system's keychain and prints what happened, as JSON; run inside a D-Bus session."""

from __future__ import annotations

import json
import sys
import time

from jlremote.laptop.secrets import open_secrets


def main() -> None:
    began = time.monotonic()
    secrets = open_secrets(deadline=float(sys.argv[1]))
    told: dict[str, object] = {"name": None if secrets is None else secrets.name}
    if secrets is not None:
        told["unknown"] = secrets.get("password nobody@nowhere")
        told["kept"] = secrets.set("password me@host", "correct horse")
        told["read"] = secrets.get("password me@host")
        told["forgotten"] = secrets.delete("password me@host")
        told["again"] = secrets.delete("password me@host")
        told["after"] = secrets.get("password me@host")
    told["seconds"] = time.monotonic() - began
    print(json.dumps(told))


if __name__ == "__main__":
    main()
