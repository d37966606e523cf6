from __future__ import annotations

import os
import stat
import subprocess
import sys
from base64 import b64encode
from pathlib import Path

import pytest
from pydantic import SecretStr

from forager.secrets import KEY_FILE, SecretsUnavailable, Vault
from forager.settings import Settings

TEXT = "correct horse battery staple"


def vault_at(home: Path, key: str | None = None) -> Vault:
    return Vault(Settings(home=home, secret_key=None if key is None else SecretStr(key)))


def new_key() -> str:
    return b64encode(os.urandom(32)).decode()


def unavailable(vault: Vault, sealed: bytes, context: str = "here") -> str:
    with pytest.raises(SecretsUnavailable) as caught:
        vault.decrypt(sealed, context)
    return str(caught.value)


def test_what_was_sealed_opens_again_in_another_process(tmp_path: Path) -> None:
    sealed = vault_at(tmp_path / "home").encrypt(TEXT, "here")
    assert TEXT.encode() not in sealed
    assert vault_at(tmp_path / "home").decrypt(sealed, "here") == TEXT


def test_the_same_text_is_never_sealed_the_same_way_twice(tmp_path: Path) -> None:
    vault = vault_at(tmp_path)
    assert vault.encrypt(TEXT, "here") != vault.encrypt(TEXT, "here")


def test_the_key_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    previous = os.umask(0)
    try:
        vault_at(tmp_path / "home").encrypt(TEXT, "here")
    finally:
        os.umask(previous)
    assert stat.S_IMODE((tmp_path / "home" / KEY_FILE).stat().st_mode) == 0o600
    assert [file.name for file in (tmp_path / "home").iterdir()] == [KEY_FILE]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_key_file_that_others_can_use_is_refused(tmp_path: Path, mode: int) -> None:
    sealed = vault_at(tmp_path).encrypt(TEXT, "here")
    (tmp_path / KEY_FILE).chmod(mode)
    words = unavailable(vault_at(tmp_path), sealed)
    assert f"mode {mode:03o}" in words
    assert f"chmod 600 {tmp_path / KEY_FILE}" in words
    with pytest.raises(SecretsUnavailable):
        vault_at(tmp_path).encrypt(TEXT, "here")


def test_the_setting_wins_over_the_file(tmp_path: Path) -> None:
    key = new_key()
    sealed = vault_at(tmp_path, key).encrypt(TEXT, "here")
    assert not (tmp_path / KEY_FILE).exists()
    vault_at(tmp_path).encrypt("something", "else")
    assert vault_at(tmp_path, key).decrypt(sealed, "here") == TEXT


def test_another_key_is_distinguished_from_damage(tmp_path: Path) -> None:
    key = new_key()
    sealed = vault_at(tmp_path, key).encrypt(TEXT, "here")
    words = unavailable(vault_at(tmp_path, new_key()), sealed)
    assert "another key" in words
    assert "FORAGER_SECRET_KEY" in words
    broken = sealed[:-1] + bytes([sealed[-1] ^ 1])
    for damaged in (broken, sealed[:9], sealed[:15], sealed[:30]):
        assert "damaged" in unavailable(vault_at(tmp_path, key), damaged)
    assert "another key" in unavailable(vault_at(tmp_path, key), b"")


def test_a_sealed_text_opens_only_where_it_belongs(tmp_path: Path) -> None:
    vault = vault_at(tmp_path)
    assert "copied" in unavailable(vault, vault.encrypt(TEXT, "here"), "there")


def test_opening_without_a_key_says_so_and_makes_none(tmp_path: Path) -> None:
    sealed = vault_at(tmp_path / "one").encrypt(TEXT, "here")
    words = unavailable(vault_at(tmp_path / "two"), sealed)
    assert str(tmp_path / "two" / KEY_FILE) in words
    assert not (tmp_path / "two").exists()


@pytest.mark.parametrize("key", ["short", "not base64 at all!", b64encode(bytes(31)).decode(), "é"])
def test_a_key_that_is_none_is_refused_without_showing_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(SecretsUnavailable) as caught:
        vault_at(tmp_path, key).encrypt(TEXT, "here")
    assert "FORAGER_SECRET_KEY is not a key" in str(caught.value)
    assert "openssl" in str(caught.value)
    assert key not in str(caught.value)


def test_a_pipe_or_a_folder_in_place_of_the_file_is_refused_at_once(tmp_path: Path) -> None:
    for number, make in enumerate((os.mkfifo, os.mkdir)):
        home = tmp_path / str(number)
        home.mkdir()
        make(home / KEY_FILE, 0o600)
        with pytest.raises(SecretsUnavailable, match="is not a file"):
            vault_at(home).encrypt(TEXT, "here")


def test_a_home_that_cannot_be_made_is_an_error_with_a_way_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SecretsUnavailable, match="set FORAGER_SECRET_KEY"):
        vault_at(tmp_path / "file" / "home").encrypt(TEXT, "here")


def test_nothing_shows_the_key_or_the_text(tmp_path: Path) -> None:
    key = new_key()
    vault = vault_at(tmp_path, key)
    sealed = vault.encrypt(TEXT, "here")
    shown = repr(vault) + str(vars(vault)) + unavailable(vault, sealed, "there")
    shown += unavailable(vault_at(tmp_path, new_key()), sealed)
    assert TEXT not in shown
    assert key not in shown


STARTER = """
import sys
from pathlib import Path
from forager.secrets import Vault
from forager.settings import Settings
vault = Vault(Settings(home=Path(sys.argv[1])))
print("ready", flush=True)
sys.stdin.readline()
print(vault.encrypt(sys.argv[2], "here").hex(), flush=True)
"""


def test_processes_that_start_at_once_get_the_same_key(tmp_path: Path) -> None:
    home = tmp_path / "home"
    starters = [
        subprocess.Popen(
            [sys.executable, "-c", STARTER, str(home), f"text {number}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(4)
    ]
    for starter in starters:
        assert starter.stdout is not None
        assert starter.stdout.readline() == "ready\n"
    for starter in starters:
        assert starter.stdin is not None
        starter.stdin.write("go\n")
        starter.stdin.flush()
    sealed = [bytes.fromhex(starter.communicate(timeout=60)[0]) for starter in starters]
    vault = vault_at(home)
    assert [vault.decrypt(one, "here") for one in sealed] == [f"text {n}" for n in range(4)]
    assert [file.name for file in home.iterdir()] == [KEY_FILE]
