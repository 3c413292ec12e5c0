"""The program `jlr`: the table of its commands, and groups that load one once it is called."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from jlremote import __version__
from jlremote.cli.command import (
    Command,
    CommandContext,
    Invocation,
    global_options,
    is_typed,
    keep_words,
    usage_line,
    write_lines,
    write_page,
    write_sections,
)
from jlremote.errors import Usage
from jlremote.text import closest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

# By heading and name: the module in `commands`, none for a group, and the line in the help.
# A command without a heading is hidden.
COMMANDS = {
    "Sessions": {
        "start": ("starting", "Start or reuse a session and open it."),
        "open": ("clients", "Open a running session in the browser."),
        "url": ("clients", "Print a session's URL and nothing else."),
        "list": ("viewing", "List the sessions, or show one of them."),
        "logs": ("viewing", "Show the log of a session or a job."),
        "output": ("viewing", "Show what the cells of a session printed."),
        "stop": ("stopping", "Stop a session; its container runs on."),
        "restart": ("stopping", "Stop a session and start it again."),
        "rm": ("stopping", "Stop a session and delete its container."),
    },
    "Work there": {
        "shell": ("attaching", "Open a terminal in a session's container."),
        "exec": ("executing", "Execute code in a kernel of a session."),
        "run": ("running", "Run a command or notebook as a lasting job."),
        "job": ("", "List, show, stop and delete jobs."),
        "wait": ("attaching", "Wait until jobs, runs or sessions are done."),
        "cp": ("ports_and_files", "Copy files to and from a session."),
        "sync": ("ports_and_files", "Make a folder there like this one."),
        "mount": ("ports_and_files", "Mount a folder of the host on this machine."),
        "forward": ("ports_and_files", "Forward a further port of a session."),
        "local": ("", "Use a session's kernels in Jupyter here."),
        "code": ("clients", "Open your editor on a session's folder."),
    },
    "Host and this machine": {
        "image": ("", "Pull, build, save, push and remove images."),
        "gpus": ("inspection", "Show the GPUs of a host and their users."),
        "doctor": ("inspection", "Find out what is wrong, and how to mend it."),
        "disconnect": ("stopping", "End the connection to a host."),
        "config": ("", "Show and change settings; ssh to sessions."),
        "agent": ("", "Tell a coding agent how to use jlr."),
        "demo": ("this_machine", "Try jlr on this machine, without a server."),
        "completion": ("this_machine", "Print the completion script for your shell."),
    },
    "": {
        "proxy": ("clients", "Connect an ssh client with a session; ssh runs it."),
        "mcp": ("this_machine", "Give an agent tools for a session; its program runs this."),
    },
}
GROUPS = {
    "job": {
        "list": ("attaching", "List the jobs, one per line."),
        "logs": ("viewing", "Show the output of a job."),
        "attach": ("attaching", "Show a job's output again, to its end."),
        "stop": ("stopping", "Stop a job; its output stays."),
        "rm": ("stopping", "Stop a job and delete it with its output."),
    },
    "image": {
        "list": ("images_and_registries", "List the images on a host."),
        "pull": ("images_and_registries", "Pull an image on a host."),
        "build": ("images_and_registries", "Build an image on a host from a folder."),
        "save": ("images_and_registries", "Save a session's container as an image."),
        "push": ("images_and_registries", "Push an image of a host to its registry."),
        "rm": ("images_and_registries", "Remove images from a host."),
        "prune": ("images_and_registries", "Remove untagged (dangling) images from a host."),
        "login": ("images_and_registries", "Let a host use a registry with your key."),
    },
    "local": {
        "lab": ("clients", "Run JupyterLab here on a session's kernels."),
        "kernels": ("clients", "Install a session's kernels in Jupyter here."),
    },
    "agent": {"install": ("this_machine", "Write a skill file for a coding agent, or print it.")},
    "config": {
        "show": ("this_machine", "Show the settings and the source of each."),
        "set": ("this_machine", "Change a setting."),
        "notify": ("this_machine", "Show a notice on the desktop, to try `--notify`."),
        "ssh": ("clients", "Let ssh reach sessions as NAME.jlr."),
    },
}

EXAMPLES = (
    "jlr start dgx cont1                    # JupyterLab in container cont1 on dgx",
    "jlr start dgx cont1 --image me/torch   # create it if it is missing",
    "jlr open                               # open the browser again",
    "jlr stop                               # stop it; the container keeps running",
    "jlr demo                               # try it without a server",
)
EXIT_CODES = (
    "  0  done",
    "  1  expected failure",
    "  2  usage",
    "  3  bug in jlr",
    "  4  authentication or host key",
    "  5  host unreachable",
    "  6  no such session, container, image or file",
    "  7  busy: kernels, a GPU, a port",
    "124  not in time: wait --timeout",
    "130  interrupted",
)

# Short words for commands of ours.
ALIASES = {"ls": ("list",), "ps": ("list",), "images": ("image", "list"), "runs": ("job", "list")}
# Names that people try, and what they may mean; `None` is not guessed.
_OTHER_NAMES = {
    "exec": "shell",
    "ssh": "shell",
    "jobs": "job list",
    "rmi": "image rm",
    "status": "list",
    "top": "gpus",
    "umount": "mount --unmount",
    "unmount": "mount --unmount",
    "version": "--version",
    **dict.fromkeys(("delete", "kill", "remove")),
}
# They destroy something, so a typo of another command must not lead to them.
DESTRUCTIVE = {
    *("stop", "restart", "rm", "disconnect", "job stop", "job rm"),
    *("image rm", "image prune"),
}
_DEFAULTS = {"config": "show"}  # what a group means that is called without one of its commands


class LazyGroup(click.Group):
    """A group made from the tables; `path` has the words before its commands, without `jlr`."""

    context_class = CommandContext

    def __init__(self, *arguments: Any, path: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        sections = {"Commands": GROUPS[path]} if path else COMMANDS
        self._path, self._default = path, _DEFAULTS.get(path)
        self._table = {name: row for rows in sections.values() for name, row in rows.items()}
        self._rows = {
            title: [(name, line) for name, (_, line) in rows.items()]
            for title, rows in sections.items()
            if title
        }

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for rows in self._rows.values() for name, _ in rows]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        path = f"{self._path} {cmd_name}".strip()
        module_name, line = self._table[cmd_name]
        if not module_name:
            bare = path not in _DEFAULTS
            inherited = global_options(hidden=True)
            return LazyGroup(path, path=path, help=line, params=inherited, no_args_is_help=bare)
        module = import_module(f"jlremote.cli.commands.{module_name}")
        commands = (found for found in vars(module).values() if isinstance(found, Command))
        return next(command for command in commands if command.name == path)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        keep_words(ctx, args)
        flags = {"-h", "--help", *(name for one in self.params for name in one.opts)}
        word = next((word for word in args if word not in flags), None)
        helps = {"-h", "--help"} & set(args[:1])
        if self._default and word not in self._table and not helps and not ctx.resilient_parsing:
            args = [self._default, *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; for an unknown one, suggest a similar one."""
        if args[0] == "help" and not ctx.resilient_parsing:
            if len(args) == 1:
                from jlremote.cli.screen.terminal import answer

                answer(ctx.get_help())
                ctx.exit()
            args = [*args[1:], "--help"]
        if ALIASES.get(args[0], ("",))[0] in self._table:
            args = [*ALIASES[args[0]], *args[1:]]
        if args[0] not in self._table and not ctx.resilient_parsing:
            hint = self._suggestion(args[0]) or f"`{ctx.command_path} --help` lists the commands"
            unknown = Usage(f"no such command `{args[0]}`", hint=hint)
            unknown.usage = usage_line(ctx)
            raise unknown
        return super().resolve_command(ctx, args)

    def _suggestion(self, typed: str) -> str | None:
        below = [f"{path} {name}" for path in GROUPS for name in GROUPS[path]]
        meant = next((path for path in below if path.rpartition(" ")[2] == typed), None)
        meant = _OTHER_NAMES.get(typed, meant)
        if meant is None and typed not in _OTHER_NAMES:
            near = closest(typed, self._table)
            meant = f"{self._path} {near}".strip() if near else None
            if meant in DESTRUCTIVE:  # the next nearest may do the opposite
                meant = None
        return f"did you mean `jlr {meant}`?" if meant else None

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if is_typed(ctx, "--help"):
            super().format_help(ctx, formatter)
            return
        closing = f"`{ctx.command_path} COMMAND -h` explains a command"
        if not self._path:
            closing += "; `jlr --help` says all; try `jlr demo`"
        write_page(ctx, formatter, self._rows, (), closing)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands under their headings, and then the global options."""
        write_sections(formatter, self._rows)
        options = [row for one in self.get_params(ctx) if (row := one.get_help_record(ctx))]
        write_sections(formatter, {"Options": options})

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self._path:
            write_lines(formatter, "Examples", EXAMPLES)
            write_lines(formatter, "Exit codes", EXIT_CODES)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = (name for name in self.list_commands(ctx) if name.startswith(incomplete))
        commands = [CompletionItem(name, help=self._table[name][1]) for name in names]
        default = self.get_command(ctx, self._default) if self._default else None
        for one in default.params[:1] if default else ():
            commands += one.shell_complete(ctx, incomplete)
        return commands + click.Command.shell_complete(self, ctx, incomplete)


@click.group(
    cls=LazyGroup,
    params=global_options(),
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def jlr(context: click.Context) -> None:
    """JupyterLab of a container on a remote GPU host, in your browser.

    HOST is any host that `ssh HOST` accepts, SESSION is NAME or HOST/NAME, by default the latest.
    Each stands for the other where only one is meant; of a host and a session of one name each
    command takes the kind that it asks for, and HOST/ is the host. Options may also follow the
    command. With --json an error is an object on stderr, too: `error`, `hint` and `exit`, the exit
    code.

    `jlr help COMMAND` shows a command's help. `ls` and `ps` stand for `list`, `runs` for
    `job list`, `images` for `image list`.
    """
    context.ensure_object(Invocation)
