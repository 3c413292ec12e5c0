"""Secrets are found by their names and by their forms."""

from __future__ import annotations

import pytest

from jlremote.text import redacted


@pytest.mark.parametrize(
    ("text", "harmless"),
    [
        ("GET /lab?token=abc123&x=1", "GET /lab?token=***&x=1"),
        ("{'Authorization': 'token abc123'}", "{'Authorization': 'token ***'}"),
        ("Authorization: Bearer abc.def", "Authorization: Bearer ***"),
        ("password='pw'", "password='***'"),
        ('{"api_key": "k"}', '{"api_key": "***"}'),
        ("JUPYTER_TOKEN=abc", "JUPYTER_TOKEN=***"),
        ('password: "correct horse battery"', 'password: "***"'),
        ("pull https://me:p4ss@registry.example/x", "pull https://me:***@registry.example/x"),
        ("run -e X=hf_abcdefghijklmnopqrst", "run -e X=***"),
        (f"said {'5ec2e7' * 8}", "said ***"),
        (
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3Bl\n-----END OPENSSH PRIVATE KEY-----\nrest",
            "***\nrest",
        ),
        ("-----BEGIN RSA PRIVATE KEY-----\ncut", "***"),
        ("the tokens of the parser", "the tokens of the parser"),
    ],
)
def test_values_that_look_like_secrets_are_redacted(text: str, harmless: str) -> None:
    assert redacted(text) == harmless


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["-", "a", "token", "token=", "a-", "-----BEGIN ", "a://", " "])
def test_no_text_takes_long(piece: str) -> None:
    assert redacted(piece * (200_000 // len(piece)))
