from __future__ import annotations

from ipaddress import ip_network

import ada_url
import pytest

from forager.errors import ErrorKind, GiveUp
from forager.fetch.guard import GuardPolicy, literal_address

REFUSED = [
    ("0.0.0.0", "unspecified"),
    ("10.1.2.3", "private"),
    ("172.31.255.255", "private"),
    ("192.168.0.1", "private"),
    ("100.64.0.1", "shared (CGNAT)"),
    ("127.0.0.1", "loopback"),
    ("127.255.255.254", "loopback"),
    ("169.254.1.1", "link-local"),
    ("169.254.169.254", "metadata"),
    ("100.100.100.200", "metadata"),
    ("192.0.2.1", "reserved"),
    ("198.18.0.1", "reserved"),
    ("224.0.0.1", "multicast"),
    ("255.255.255.255", "reserved"),
    ("::", "unspecified"),
    ("::1", "loopback"),
    ("fc00::1", "private"),
    ("fd00:ec2::254", "metadata"),
    ("fe80::1", "link-local"),
    ("fe80::1%eth0", "link-local"),
    ("ff02::1", "multicast"),
    ("2001:db8::1", "reserved"),
    ("2001::1", "reserved"),
    ("::ffff:127.0.0.1", "loopback"),
    ("::ffff:169.254.169.254", "metadata"),
    ("64:ff9b::10.0.0.1", "private"),
    ("64:ff9b:1::1", "private"),
    ("64:ff9b:1::1.1.1.1", "private"),
    ("64:ff9b:1::169.254.169.254", "metadata"),
    ("64:ff9b:1:a9fe:a9:fe00::", "metadata"),
    ("64:ff9b:1:a9:fe:a9fe::", "metadata"),
    ("64:ff9b:1:0:a9:fea9:fe00::", "metadata"),
    ("2002:7f00:1::1", "loopback"),
    ("2002:a9fe:a9fe::1", "metadata"),
    ("::10.0.0.1", "reserved"),
    ("not an address", "unreadable"),
]
ALLOWED = [
    "1.1.1.1",
    "8.8.8.8",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "64:ff9b::1.1.1.1",
    "::ffff:1.1.1.1",
    "2002:101:101::1",
]


@pytest.mark.parametrize(("address", "label"), REFUSED)
def test_refuses_addresses_that_are_not_public(address: str, label: str) -> None:
    assert GuardPolicy().refusal(address) == label


@pytest.mark.parametrize("address", ALLOWED)
def test_lets_public_addresses_pass(address: str) -> None:
    assert GuardPolicy().refusal(address) is None


def test_allow_private_does_not_open_metadata() -> None:
    policy = GuardPolicy(allow_private=True)
    assert policy.refusal("127.0.0.1") is None
    assert policy.refusal("169.254.169.254") == "metadata"
    assert policy.refusal("::ffff:169.254.169.254") == "metadata"
    assert policy.refusal("64:ff9b:1::169.254.169.254") == "metadata"


def test_a_network_can_be_allowed() -> None:
    policy = GuardPolicy(allow_networks=(ip_network("10.0.0.0/8"),))
    assert policy.refusal("10.9.9.9") is None
    assert policy.refusal("::ffff:10.9.9.9") is None
    assert policy.refusal("192.168.0.1") == "private"


def test_a_host_can_be_allowed_and_its_address_stays_refused_to_others() -> None:
    policy = GuardPolicy(allow_hosts=frozenset({"wiki.example"}))
    policy.check_address("10.0.0.1", "wiki.example")
    with pytest.raises(GiveUp):
        policy.check_address("10.0.0.1", "evil.example")


@pytest.mark.parametrize(
    "spelling",
    [
        "http://127.0.0.1/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://0177.0.0.1/",
        "http://127.1/",
        "http://127.0.0.1./",
        "http://\uff11\uff12\uff17.0.0.1/",
        "http://[::1]/",
        "http://[::ffff:7f00:1]/",
        "http://%31%32%37.0.0.1/",
    ],
)
def test_every_spelling_of_a_literal_is_seen(spelling: str) -> None:
    with pytest.raises(GiveUp) as caught:
        GuardPolicy().check_literal(ada_url.URL(spelling).hostname)
    assert caught.value.kind is ErrorKind.NOT_ALLOWED
    assert "loopback" in caught.value.message
    assert "--allow-private" in str(caught.value)


@pytest.mark.parametrize("name", ["example.com", "example.com.", "server1", "b2.example", "a.b1"])
def test_names_are_no_literals(name: str) -> None:
    assert literal_address(name) is None
    GuardPolicy().check_literal(name)


@pytest.mark.parametrize(
    "name", ["localhost", "LOCALHOST.", "a.localhost", "wiki.internal", "metadata.google.internal"]
)
def test_names_a_proxy_would_resolve_near_itself_are_refused(name: str) -> None:
    with pytest.raises(GiveUp):
        GuardPolicy().check_unresolved(name)


def test_the_message_names_host_and_address() -> None:
    with pytest.raises(GiveUp, match=r"inner\.example resolves to 10\.0\.0\.1, which is a private"):
        GuardPolicy().check_address("10.0.0.1", "inner.example")
