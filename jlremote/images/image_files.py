"""Images that are files of a host: find, list and pull them."""

from __future__ import annotations

from jlremote.errors import NotFound, Usage
from jlremote.hosts.context import Context
from jlremote.hosts.engines import look_further
from jlremote.images import file_scripts, image_names, registry_keys
from jlremote.images.image_commands import Image
from jlremote.images.transfers import Transfer, follow, surviving_disconnect
from jlremote.laptop.settings.options import IMAGE_RUNTIMES
from jlremote.link.client.link import Link
from jlremote.place.host.contract import run_script
from jlremote.place.host.shell_text import command_line
from jlremote.place.runtimes.engine.engine_errors import EngineMissing
from jlremote.text import one_line

_COMMAND_NOT_FOUND = 127


def on_host(host: Link, program: str, typed: str, folder: str | None, context: Context) -> str:
    """Return the absolute path of an image on the host; pull a missing one that is a reference.

    Raises:
        NotFound: there is no such file or folder, or the registry has no such image.
        JlrError: it cannot be pulled.
    """
    path = found_there(host, typed, folder, context)
    if path is None and file_scripts.is_reference(typed):
        fetch(host, program, typed, folder, context)
        path = found_there(host, typed, folder, context)
    if path is None:
        raise NotFound(
            f"there is no image `{one_line(typed)}` on `{host.name}`",
            hint=f"a `{file_scripts.SUFFIX}` file or a folder is named by its path there, from "
            f"your home on; `{file_scripts.DOCKER}NAME` is pulled",
        )
    return path


def found_there(host: Link, typed: str, folder: str | None, context: Context) -> str | None:
    """Return the path of an image on the host, and warn if another user owns the file."""
    printed = run_script(host, file_scripts.find_script(typed, folder))
    if printed.status != 0:
        return None
    path, stranger = file_scripts.read_found(printed.stdout)
    if stranger:
        context.progress.note(
            f"the image `{one_line(path)}` belongs to `{stranger}`, another user of "
            f"`{host.name}`, who can change what it runs"
        )
    return path


def place(host: Link, program: str, typed: str, folder: str | None) -> str:
    """Return the absolute path of the file that a reference is pulled into, there or not.

    Raises:
        JlrError: its folder cannot be made.
    """
    done = run_script(host, file_scripts.place_script(typed, folder))
    if done.status != 0:
        lines = [done.complaint]
        raise file_scripts.pull_error(program, typed, host.name, lines, done.status)
    return done.stdout


def program_on(host: Link) -> str | None:
    """Return the host's program for images that are files, `None` if it has none."""
    tried = " || ".join(f"command -v {name} >/dev/null && echo {name}" for name in IMAGE_RUNTIMES)
    return next(iter(run_script(host, tried).stdout.split()), None)


def way(host: Link) -> str | None:
    """Return the hint for a host that has no engine but runs images as files."""
    if (program := program_on(host)) is None:
        return None
    return (
        f"`jlr image pull {host.name} {file_scripts.DOCKER}IMAGE` makes a file of an image for "
        f"`{one_line(program)}`, which is there"
    )


def listed(host: Link, folder: str | None) -> list[Image]:
    """Return the images in the folder of pulled ones, the latest first."""
    return file_scripts.read_list(run_script(host, file_scripts.list_script(folder)).stdout)


def pull(host: Link, program: str, typed: str, folder: str | None, context: Context) -> Image:
    """Pull an image into the folder, also if it is there: a tag may mean another one by now.

    Raises:
        Usage: it is not named by where it comes from.
    """
    if not file_scripts.is_reference(typed):
        raise Usage(
            f"`{one_line(typed)}` does not say where it comes from",
            hint=f"`{file_scripts.DOCKER}{one_line(typed)}` pulls it from a registry",
        )
    fetch(host, program, typed, folder, context)
    found_there(host, typed, folder, context)
    name = file_scripts.file_name(typed)
    return next(each for each in listed(host, folder) if each.id.endswith(f"/{name}"))


def fetch(host: Link, program: str, typed: str, folder: str | None, context: Context) -> None:
    """Pull an image as a step, and join it again after a broken connection.

    Raises:
        JlrError: the registry refuses it, or is out of reach; no space is left; …
    """
    pulling, key = puller(host, program, typed, folder)
    given = [key] if key else []
    script = surviving_disconnect(command_line(("sh", "-c", pulling)))
    pulled = Transfer()
    with context.progress.step(f"Pull {typed}"):
        status = follow(host, script, given, pulled, context)
    if status == _COMMAND_NOT_FOUND:
        look_further(host, program, EngineMissing(f"`{program}` was not found on `{host.name}`"))
        fetch(host, program, typed, folder, context)
    elif status != 0:
        raise file_scripts.pull_error(program, typed, host.name, pulled.complaint, status)


def puller(host: Link, program: str, typed: str, folder: str | None) -> tuple[str, bytes]:
    """Return the script that pulls an image, and its stdin: the registry's key, if kept."""
    keys = {}
    if file_scripts.is_docker(typed):
        name = image_names.parse(typed.removeprefix(file_scripts.DOCKER))
        keys = registry_keys.find(host.name, (name.registry,))
    script = file_scripts.pull_script(program, typed, folder, keyed=bool(keys))
    return script, registry_keys.docker_config(keys) if keys else b""
