"""Programs of this machine: `jlr open`, `url`, `code`, `local`, `config ssh` and `proxy`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urljoin, urlsplit

import click

from jlremote.cli.command import Invocation, command, option
from jlremote.cli.completion import candidates
from jlremote.cli.options import shared
from jlremote.cli.screen import reports
from jlremote.cli.screen.terminal import answer, answer_either, answer_json, as_json, shown, tell
from jlremote.errors import JlrError, Usage
from jlremote.laptop.settings.options import EDITORS

if TYPE_CHECKING:
    from jlremote.hosts.context import Context

_PROGRAM = "jlremote.cli.kernel_program"
_ACTIONS = click.Choice(("install", "list", "remove"))
# A file extension begins with a letter: `cont-2.1` may be a container, `train.ipynb` is a file.
_FILE = re.compile(r"\.[A-Za-z]\w*$")


@command("open", json="Print both URLs as a JSON object: `page` is for a browser, `url` else.")
@shared.session_argument
@click.argument("path", required=False)
@shared.browser_options
@shared.shared_option
def open_session(
    context: Context, /, *, session: str | None, path: str | None, no_browser: bool, **options: Any
) -> None:
    """Open a running session in the browser.

    With PATH, JupyterLab opens that notebook, file or folder. A single argument is a session if one
    has that name, or if it begins with a host; else it is a PATH in the latest session, if it has a
    slash or a file extension. HOST/NAME also finds a session that another laptop started.

    Examples:
        jlr open                      # the only session, or the latest
        jlr open dgx/cont1 work/train.ipynb
        jlr open train.ipynb          # a notebook in the latest session
        jlr open --no-browser         # check that it answers, and print the URL
    """
    from jlremote.laptop.typed_place import is_known_host, resolved
    from jlremote.sessions.open import address

    name = shared.chosen_browser(options["browser"], no_browser)
    if session is not None and path is None and ("/" in session or _FILE.search(session)):
        typed = resolved(session, context.ssh_config)
        has_host = typed.host and (
            "@" in typed.host or is_known_host(typed.host, context.ssh_config)
        )
        if not typed.session and not has_host:
            session, path = None, session
    opened, page = address(session, path, context, as_shared=options["as_shared"])
    answer_either(shown(page), vars(page))
    shared.follow_ports(opened.host, opened.name)
    shared.browse(page, context, browser=name, asked=options["browser"] is not None)


@command("url", json="Print all four as a JSON object: `url`, `page`, `base`, `token`.")
@shared.session_argument
def url(context: Context, session: str | None) -> None:
    """Print a session's URL and nothing else.

    The URL contains the token, which gives full access to the session. It is for programs, as a
    script or the "Existing Jupyter Server" of VS Code: http://127.0.0.1:PORT. --json has the `page`
    for a browser, http://NAME-HOST.localhost:PORT, and address and token apart, too.

    Examples:
        jlr url dgx/cont1
        curl -fsS "$(jlr url cont1)"
        jlr url cont1 --json | jq -r .token
    """
    from jlremote.sessions.open import address

    _, found = address(session, None, context)
    token = parse_qs(urlsplit(found.url).query).get("token", [""])[0]
    parts = vars(found) | {"base": urljoin(found.url, "."), "token": token}
    answer_either(found.url, parts)


@command("code", json="Print the name for ssh, the folder and the command as a JSON object.")
@shared.where_argument
@click.argument("path", required=False)
@option("--editor", "Editor to open. Default: vscode.", type=click.Choice(EDITORS))
@option("--print only_shown", "Print the command and open nothing.")
def code(
    context: Context, where: str | None, path: str | None, editor: str | None, only_shown: bool
) -> None:
    """Open an editor of this machine on a session's folder.

    The editor reaches it by ssh, as NAME.jlr (see `jlr config ssh`), over the connection that jlr
    has: no second login, in a container or on a cluster's node, and nothing installed there but
    what the editor itself puts into the home folder. PyCharm is opened by JetBrains Toolbox.

    Examples:
        jlr code                              # VS Code on the latest session's folder
        jlr code cont1 --editor cursor        # in config.toml: editor = "cursor"
        jlr code dgx/cont1 --print            # the command, and nothing else
    """
    from jlremote.editors import code as workflow

    chosen = shared.setting("editor", editor=editor) or EDITORS[0]
    with shared.named_as_set(None, {"editor": editor}, ("editor",)):
        opening = workflow.code(where, path, chosen, context, only_shown=only_shown)
    if as_json():
        answer_json({"editor": chosen, **vars(opening)})
    elif only_shown:
        answer(opening.command)


@command("config ssh", json="Print the block, or what was changed, as a JSON object.")
@click.argument("action", metavar="[install|list|remove]", type=_ACTIONS, default="list")
@option("--plain", "List a block for each session, with nothing fancy.")
@option("-y --yes", "Do not ask before ~/.ssh/config is changed.")
def config_ssh(context: Context, action: str, plain: bool, yes: bool) -> None:
    """Let ssh, and all that uses it, reach sessions as `NAME.jlr`.

    `cont1.jlr` and `cont1.dgx.jlr` are a session, `dgx.jlr` is the host itself. They go over the
    connection that jlr has anyway, so there is no second login, and nothing is installed there.

    `install` adds one `Include` line to ~/.ssh/config, shows it first, and leaves all else as it
    is. Programs that follow no such line (Claude Desktop, paramiko) read what --plain prints.

    Examples:
        jlr config ssh install             # then: ssh cont1.jlr, scp, rsync, git, editors
        jlr config ssh                     # the block, to look at or to copy
        jlr config ssh --plain             # for programs with an SSH library of their own
    """
    from jlremote.editors import ssh_config as workflow

    if plain and action != "list":
        raise Usage(f"`--plain` is for `list`, and not for `{action}`", hint="leave it out")
    if action == "list":
        block = workflow.plain_blocks() if plain else workflow.block()
        if as_json():
            answer_json({"block": block, "installed": workflow.is_installed()})
        else:
            answer(block, newline=False)
        return
    act = workflow.install if action == "install" else workflow.remove
    change = act(context.asker, tell, agreed=yes)
    if not change.done:
        raise JlrError(f"left `{change.file}` as it is, because the answer was no")
    if as_json():
        line = change.line or None
        answer_json({"file": str(change.file), "changed": line is not None, "line": line})
    elif not change.line:
        has = "has" if action == "install" else "does not have"
        tell(f"`{change.file}` {has} the line already")
    elif action == "install":
        tell("ssh, scp, rsync, git and editors reach a session as `NAME.jlr`")


@command("proxy")
@click.argument("name", shell_complete=candidates.ssh_names)
def proxy(invocation: Invocation, name: str) -> None:
    """Connect an ssh client with a session; ssh runs this, by `jlr config ssh`.

    Its stdin and stdout carry the SSH protocol. Questions of the host are asked on the terminal.

    Examples:
        jlr proxy cont1.jlr       # as ssh runs it: ProxyCommand jlr proxy %n
    """
    from jlremote.editors import proxy as workflow

    invocation.quiet = True  # ssh shows what goes to stderr, above the person's own output
    workflow.proxy(name, invocation.context(), stdin=0, stdout=1)


@command("local lab", takes_command=True)
@shared.session_argument
def lab(context: Context, session: str | None, command: tuple[str, ...]) -> int:
    """Run the JupyterLab of this machine on a session's kernels.

    Files and notebooks are those of the current folder here, kernels run there. What follows `--`
    goes to `jupyter lab`. Ctrl-C ends it, with the kernels that it started.

    Examples:
        jlr local lab                          # the latest session
        jlr local lab cont1 -- --port 9000     # the rest is `jupyter lab`'s
    """
    from jlremote.kernels import lab as workflow

    return workflow.lab(session, command, context)


@command("local kernels", json="Print a JSON array.")
@click.argument("action", type=_ACTIONS)
@shared.session_argument
def kernels(context: Context, action: str, session: str | None) -> None:
    """Install the kernels of a session in every Jupyter of this machine, list or remove them.

    `install` writes a kernel spec for each kind of kernel of the session. VS Code, JupyterLab,
    nbclient and `jupyter nbconvert` here then offer it, and what they run runs there. No spec has a
    token. Interrupt and restart work, and a lost connection comes back by itself; while the session
    does not run, its kernels do not start.

    `list` without SESSION shows all that are installed, `remove` takes those of one session away;
    with those of several sessions installed, it must be named.

    Examples:
        jlr local kernels install cont1        # for VS Code, JupyterLab, nbclient here
        jlr local kernels remove cont1
    """
    from jlremote.kernels import specs

    if action == "install":
        installed = specs.install(session, context, _PROGRAM)
    else:
        installed = specs.remove(session) if action == "remove" else specs.listed(session)
    none = "no kernels are installed; `jlr local kernels install` installs the latest session's"
    reports.show_reports(installed, reports.KERNEL_SPECS, context, none=none)
