"""`jlr open` and `jlr url`."""

from __future__ import annotations

import re
from urllib.parse import parse_qs, urljoin, urlsplit

import click

from jlremote.cli.command import command
from jlremote.cli.invocation import Invocation
from jlremote.cli.options import shared
from jlremote.cli.screen.terminal import answer_either, shown

# A file extension begins with a letter: `cont-2.1` may be a container, `train.ipynb` is a file.
_FILE = re.compile(r"\.[A-Za-z]\w*$")


@command(
    "open",
    examples=(
        "jlr open                      # the only session, or the latest",
        "jlr open cont1",
        "jlr open dgx/cont1 work/train.ipynb",
        "jlr open train.ipynb          # a notebook in the latest session",
        "jlr open --no-browser         # check that it answers, and print the URL",
    ),
)
@shared.session_argument
@click.argument("path", required=False)
@shared.browser_options
@shared.shared_option
@shared.json_option("Print the URL in a JSON object.")
@click.pass_obj
def open_session(
    invocation: Invocation,
    session: str | None,
    path: str | None,
    browser: str | None,
    no_browser: bool,
    as_shared: bool,
) -> None:
    """Open a running session in the browser.

    With PATH, JupyterLab opens that notebook, file or folder. A single argument is a session if one
    has that name, or if it begins with a host; else it is a PATH in the latest session, if it has a
    slash or a file extension. HOST/NAME also finds a session that another laptop started.
    """
    from jlremote.sessions.open import address

    name = shared.chosen_browser(browser, no_browser)
    context = invocation.context()
    selector, wanted = _session_or_path(session, path, invocation)
    found = address(selector, wanted, context, as_shared=as_shared)
    answer_either(shown(found), {"url": found.url})
    shared.browse(found, context, browser=name, asked=browser is not None)


@command("url", examples=("jlr url", "jlr url dgx/cont1", 'curl -fsS "$(jlr url cont1)"'))
@shared.session_argument
@click.option("--base", "part", flag_value="base", help="Print the URL without its token.")
@click.option("--token", "part", flag_value="token", help="Print the token.")
@shared.json_option("Print all three as a JSON object.")
@click.pass_obj
def url(invocation: Invocation, session: str | None, part: str | None) -> None:
    """Print a session's URL and nothing else.

    The URL contains the token, which gives full access to the session. Give it to a script, or to
    the "Existing Jupyter Server" of VS Code. Programs that want both apart take --base and --token.
    """
    from jlremote.sessions.open import address

    found = address(session, None, invocation.context()).url
    token = parse_qs(urlsplit(found).query).get("token", [""])[0]
    parts = {"url": found, "base": urljoin(found, "."), "token": token}
    answer_either(parts[part or "url"], parts)


def _session_or_path(
    session: str | None, path: str | None, invocation: Invocation
) -> tuple[str | None, str | None]:
    """Decide whether one argument is a SESSION or a PATH: a known session wins."""
    if session is None or path is not None:
        return session, path
    from jlremote.laptop.sessions import load_all
    from jlremote.laptop.settings.ssh_hosts import host_names

    records = load_all()
    hosts = {record.host for record in records}
    begin, slash, _ = session.partition("/")
    if any(session == record.name for record in records):
        return session, None
    if slash and ("@" in begin or begin in hosts or begin in host_names(invocation.ssh_config)):
        return session, None
    return (None, session) if slash or _FILE.search(session) else (session, None)
