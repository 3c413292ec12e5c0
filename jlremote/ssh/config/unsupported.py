"""The settings that `ssh` honours and jlr does not: one sentence each, shown with `-v`."""

from __future__ import annotations

from jlremote.ssh.config.ssh_settings import SshSettings

# The values that switch a setting off.
_OFF = frozenset({"", "no", "none", "false", "0 0"})
_RSA_SIZE = "1024"  # OpenSSH's default
_REMARKS = {
    "gssapiauthentication": "Kerberos tickets are not offered",
    "hostbasedauthentication": "host-based authentication is not offered",
    "pkcs11provider": "keys of a PKCS#11 token are used only through an agent",
    "verifyhostkeydns": "SSHFP records are not looked up; the known_hosts files decide",
    "knownhostscommand": "the command is not run; the known_hosts files decide",
    "checkhostip": "only the name is checked, not the address",
    "bindinterface": "connections are bound by BindAddress only",
    "nohostauthenticationforlocalhost": "the host's key is checked there too",
    "localcommand": "the command is not run",
    "forwardagent": "the agent is never forwarded",
    "forwardx11": "X11 is not forwarded",
    "controlpath": "jlr keeps a connection of its own instead of sharing ssh's",
    "addkeystoagent": "keys are not added to the agent",
    "localforward": "jlr opens only its own forwards",
    "remoteforward": "jlr opens only its own forwards",
    "dynamicforward": "jlr opens only its own forwards",
    "rekeylimit": "keys are renewed after jlr's own limit of bytes",
    "remotecommand": "jlr runs only its own commands",
    "setenv": "the variables are not sent",
    "tunnel": "no tunnel device is opened",
}


def remarks(host: str, settings: SshSettings) -> tuple[str, ...]:
    """Return a sentence for each setting of a host that is set and not honoured."""
    found = [
        f"{host}: `{name} {settings.first(name)}` is not honoured: {remark}"
        for name, remark in _REMARKS.items()
        if settings.first(name).lower() not in _OFF
    ]
    if settings.first("stricthostkeychecking") in {"no", "off", "false"}:
        found.append(
            f"{host}: `StrictHostKeyChecking no` accepts new keys; a changed key is still refused"
        )
    if settings.first("requiredrsasize", _RSA_SIZE) != _RSA_SIZE:
        found.append(f"{host}: `RequiredRSASize` is not honoured: any RSA key is accepted")
    return tuple(found)
