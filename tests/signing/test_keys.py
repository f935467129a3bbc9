"""Keys in files: what keygen writes, what other programs read of it, and what stays secret."""

import os
import resource
import stat
import subprocess
import sys

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

from bankml.errors import FileProblem, UsageError
from bankml.signing import ed25519, keys
from bankml.signing.keys import PublicKey, SigningKey, generate


def never():
    raise AssertionError("no passphrase is needed")


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "sign.key")


def test_a_key_is_written_and_read(path):
    made = generate(path, None)
    assert (made.private, made.public) == (path, f"{path}.pub.pem")
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600 and stat.S_IMODE(os.stat(made.public).st_mode) == 0o644
    key, public = SigningKey.read(path, never), PublicKey.read(made.public)
    assert key.key_id == public.key_id == made.key_id
    signature = key.sign(b"text")
    assert len(signature) == 64 and public.verifies(signature, b"text") and not public.verifies(signature, b"test")
    with open(path, "rb") as private, open(made.public, "rb") as file:
        load_pem_public_key(file.read()).verify(signature, b"text")
        assert load_pem_private_key(private.read(), None).sign(b"text") == signature


def test_the_id_is_the_sha256_of_what_openssl_writes(path):
    made = generate(path, None)
    der = subprocess.run(
        ["openssl", "pkey", "-pubin", "-in", made.public, "-outform", "DER"], capture_output=True, check=True
    ).stdout
    digest = subprocess.run(["openssl", "sha256", "-r"], input=der, capture_output=True, check=True).stdout
    assert digest.decode().split()[0] == made.key_id
    derived = subprocess.run(["openssl", "pkey", "-in", path, "-pubout"], capture_output=True, check=True).stdout
    with open(made.public, "rb") as file:
        assert file.read() == derived


def test_an_encrypted_key_opens_with_its_passphrase_alone(path):
    generate(path, b"correct horse")
    with open(path, "rb") as file:
        assert file.read().startswith(keys.ENCRYPTED)
    assert SigningKey.read(path, lambda: b"correct horse").key_id
    with pytest.raises(FileProblem, match="the passphrase does not open it") as raised:
        SigningKey.read(path, lambda: b"battery staple")
    assert "battery" not in str(raised.value) and raised.value.__cause__ is None


def test_a_key_is_never_overwritten(path):
    for existing in (path, f"{path}.pub.pem"):
        with open(existing, "w") as file:
            file.write("mine")
        with pytest.raises(UsageError, match="a key is never overwritten"):
            generate(path, None)
        with open(existing) as file:
            assert file.read() == "mine"
        os.unlink(existing)


def test_nothing_is_left_of_a_key_whose_public_file_cannot_be_written(path, monkeypatch):
    create = keys._create

    def failing(one, data, mode):
        if one.endswith(".pub.pem"):
            raise FileProblem("cannot write it: no space left on device")
        create(one, data, mode)

    monkeypatch.setattr(keys, "_create", failing)
    with pytest.raises(FileProblem):
        generate(path, None)
    assert not os.path.exists(path)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o660])
def test_a_file_that_others_may_read_is_refused(path, mode):
    generate(path, None)
    os.chmod(path, mode)
    with pytest.raises(UsageError, match=f"mode 0{mode:o}.*chmod 600"):
        SigningKey.read(path, never)
    with pytest.raises(UsageError, match="chmod 600"):
        keys.passphrase_in(path)


def test_what_is_not_such_a_key(path, tmp_path):
    rsa = ed25519.private_pem(generate_private_key(65537, 2048), None)
    pub = ed25519.public_pem(generate_private_key(65537, 2048).public_key())
    for data, says in ((b"", "PEM"), (b"hello", "PEM"), (rsa, "another kind"), (b"x" * 70000, "longer than")):
        (tmp_path / "bad").write_bytes(data)
        os.chmod(tmp_path / "bad", 0o600)
        with pytest.raises(FileProblem, match=says):
            SigningKey.read(str(tmp_path / "bad"), never)
    (tmp_path / "pub").write_bytes(pub)
    with pytest.raises(FileProblem, match="another kind"):
        PublicKey.read(str(tmp_path / "pub"))
    with pytest.raises(FileProblem, match="no such file"):
        PublicKey.read(path)


def test_the_passphrase_is_the_files_first_line(tmp_path):
    for data, found in ((b"a b \n", b"a b "), (b"x\r\ny\n", b"x"), (b"z", b"z")):
        (tmp_path / "p").write_bytes(data)
        os.chmod(tmp_path / "p", 0o600)
        assert keys.passphrase_in(str(tmp_path / "p")) == found
    (tmp_path / "p").write_bytes(b"\nsecond")
    with pytest.raises(UsageError, match="no passphrase"):
        keys.passphrase_in(str(tmp_path / "p"))


CRASH = """
import os, resource, sys
from bankml.signing.keys import SigningKey
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
if sys.argv[1]:
    SigningKey.read(sys.argv[1], None)
print(open('/proc/self/stat').read().split()[0], flush=True)
os.abort()
"""
DUMPED = 0x80


@pytest.mark.skipif(sys.platform != "linux", reason="prctl(2) is Linux's")
def test_a_process_with_a_key_leaves_no_core_file(path, tmp_path):
    generate(path, None)

    def dumped(argument):
        with subprocess.Popen([sys.executable, "-c", CRASH, argument], stdout=subprocess.PIPE, cwd=tmp_path) as process:
            _, status = os.waitpid(process.pid, 0)
            process.returncode = 0
        return bool(status & DUMPED)

    if resource.getrlimit(resource.RLIMIT_CORE)[1] and dumped(""):  # else the machine writes none anyway
        assert not dumped(path)
    probe = "import ctypes, sys\nfrom bankml.signing.keys import SigningKey\nSigningKey.read(sys.argv[1], None)\n"
    probe += "print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))"  # PR_GET_DUMPABLE
    assert subprocess.run([sys.executable, "-c", probe, path], capture_output=True, check=True).stdout == b"0\n"


def test_a_key_does_not_show_in_what_is_printed_of_it(path):
    generate(path, None)
    key = SigningKey.read(path, never)
    secret = key._key.private_bytes_raw()
    for text in (repr(key), str(vars(key)), repr(key._key)):
        assert secret.hex() not in text and "PRIVATE" not in text
