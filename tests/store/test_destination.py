"""Which URLs and addresses a webhook may lead to: global unicast over https, and what the operator allows."""

import ipaddress

import pytest

from store.webhooks.destination import Allowed, DestinationRefused, resolve_host

NONE = Allowed()
WIDE = Allowed.from_environment({"BACKPROBE_WEBHOOK_PORTS": "1-65535"})
LOOPBACK = Allowed.from_environment({"BACKPROBE_WEBHOOK_NETWORKS": "127.0.0.0/8, ::1/128"})


@pytest.mark.parametrize(
    ("url", "host", "port", "path", "authority"),
    [
        ("https://example.com", "example.com", 443, "/", "example.com"),
        ("https://EXAMPLE.com:8443/a/b?c=d%20e", "example.com", 8443, "/a/b?c=d%20e", "example.com:8443"),
        ("https://xn--bcher-kva.example/x", "xn--bcher-kva.example", 443, "/x", "xn--bcher-kva.example"),
        ("https://1e100.net/", "1e100.net", 443, "/", "1e100.net"),
        ("https://8.8.8.8/x", "8.8.8.8", 443, "/x", "8.8.8.8"),
        ("https://[2606:4700::1111]:444/", "2606:4700::1111", 444, "/", "[2606:4700::1111]:444"),
        ("https://example.com:443/", "example.com", 443, "/", "example.com"),
    ],
)
def test_a_url_is_taken_apart(url, host, port, path, authority):
    found = WIDE.target(url)
    assert (found.host, found.port, found.path, found.authority) == (host, port, path, authority)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "ftp://example.com/",
        "file:///etc/passwd",
        "//example.com/",
        "example.com",
        "https:///x",
        "https://user@example.com/",
        "https://user:word@example.com/",
        "https://8.8.8.8@127.0.0.1/",
        "https://example.com\\@127.0.0.1/",
        "https://example.com/#x",
        "https://exa mple.com/",
        "https://example.com/\r\nHost: inside",
        "https://exämple.com/",
        "https://example.com:0/",
        "https://example.com:65536/",
        "https://example.com:x/",
        "https://example.com:/",
        "https://example.com./",
        "https://-example.com/",
        "https://" + "a" * 64 + ".com/",
        "https://example.com/" + "a" * 2000,
        "https://[::1",
        "https://[v1.x]/",
    ],
)
def test_what_is_no_plain_https_url_of_a_host_is_refused(url):
    with pytest.raises(DestinationRefused):
        WIDE.target(url)


@pytest.mark.parametrize(
    "host",
    [
        "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.1", "127.0.1", "1.2.3.4.5", "256.1.1.1",
        "017700000001", "0x", "example.0x1", "1.2.3.08",
    ],
)  # fmt: skip
def test_an_address_in_any_other_form_than_four_decimal_numbers_is_refused(host):
    with pytest.raises(DestinationRefused, match="four decimal numbers"):
        NONE.target(f"https://{host}/")


@pytest.mark.parametrize(
    "address",
    [
        "0.0.0.0", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.8.8.8", "168.63.129.16",
        "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.2.1", "192.88.99.1", "192.168.1.1",
        "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255",
        "::", "::1", "::8.8.8.8", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1",
        "2001::1", "2001:db8::1", "2002:7f00:1::1", "2002:808:808::1", "2620:4f:8000::1", "3fff::1", "5f00::1",
        "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "ff0e::1",
    ],
)  # fmt: skip
def test_what_is_not_global_unicast_is_refused_as_a_literal_and_as_an_answer(address):
    literal = f"[{address}]" if ":" in address else address
    with pytest.raises(DestinationRefused, match="address"):
        NONE.target(f"https://{literal}/")
    named = NONE.target("https://receiver.example/")
    with pytest.raises(DestinationRefused, match="address") as error:
        NONE.addresses(named, lambda *_: [address])
    assert str(error.value) == "its name leads to an address that is not allowed"
    assert str(ipaddress.ip_address(address)) in error.value.seen


@pytest.mark.parametrize("address", ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])
def test_the_control_global_unicast_passes(address):
    NONE.check(ipaddress.ip_address(address))
    assert NONE.addresses(NONE.target("https://receiver.example/"), lambda *_: [address]) == [
        ipaddress.ip_address(address)
    ]


def test_of_several_answers_those_that_are_allowed_are_kept_in_order():
    asked = []

    def resolve(host, port):
        asked.append((host, port))
        return ["10.0.0.1", "2606:4700::1111", "fe80::1%eth0", "8.8.8.8", "nonsense"]

    found = NONE.addresses(WIDE.target("https://receiver.example:8443/"), resolve)
    assert [str(address) for address in found] == ["2606:4700::1111", "8.8.8.8"]
    assert asked == [("receiver.example", 8443)]


def test_a_name_without_addresses_is_not_resolved():
    with pytest.raises(OSError, match="no address"):
        NONE.addresses(NONE.target("https://receiver.example/"), lambda *_: [])


def test_what_the_operator_allows_passes_also_over_http_and_nothing_else_does():
    LOOPBACK.target("http://127.0.0.1/")
    LOOPBACK.target("https://[::1]/")
    named = LOOPBACK.target("http://receiver.example/")
    assert [str(address) for address in LOOPBACK.addresses(named, lambda *_: ["8.8.8.8", "127.0.0.1"])] == ["127.0.0.1"]
    for url in ("https://10.0.0.1/", "http://8.8.8.8/", "https://[::ffff:127.0.0.1]/", "https://2130706433/"):
        with pytest.raises(DestinationRefused):
            LOOPBACK.target(url)
    with pytest.raises(DestinationRefused, match="https") as error:
        LOOPBACK.addresses(named, lambda *_: ["8.8.8.8"])
    assert ("8.8.8.8" in str(error.value), "8.8.8.8" in error.value.seen) == (False, True)


NAMED = Allowed.from_environment({"BACKPROBE_WEBHOOK_PORTS": "443, 8443,9000-9002"})
PORTS = [
    (NONE, "https", {443}, {1, 22, 80, 442, 444, 6379, 8443}),
    (LOOPBACK, "https", {443, 80}, {22, 5432, 8000}),
    (LOOPBACK, "http", {443, 80}, {22, 5432, 8000}),
    (NAMED, "https", {443, 8443, 9000, 9001, 9002}, {80, 8999, 9003}),
    (WIDE, "https", {1, 22, 443, 65535}, set()),
]


@pytest.mark.parametrize(("allowed", "scheme", "taken", "refused"), PORTS)
def test_only_the_operator_s_ports_are_taken(allowed, scheme, taken, refused):
    for port in taken:
        assert allowed.target(f"{scheme}://receiver.example:{port}/").port == port
    for port in refused:
        with pytest.raises(DestinationRefused, match=f"port {port} is not allowed"):
            allowed.target(f"{scheme}://receiver.example:{port}/")


def test_what_is_no_network_is_refused_with_the_setting_s_name():
    assert Allowed.from_environment({}) == NONE
    for text in ("10.0.0.1/8", "inside", "10.0.0.0/33"):
        with pytest.raises(ValueError, match="BACKPROBE_WEBHOOK_NETWORKS"):
            Allowed.from_environment({"BACKPROBE_WEBHOOK_NETWORKS": text})
    for text in ("0", "65536", "443-", "-443", "90-80", "https", "443;80", "+1"):
        with pytest.raises(ValueError, match="BACKPROBE_WEBHOOK_PORTS"):
            Allowed.from_environment({"BACKPROBE_WEBHOOK_PORTS": text})


def test_the_machine_s_own_names_are_resolved():
    found = resolve_host("localhost", 443)
    assert found
    assert all(ipaddress.ip_address(address).is_loopback for address in found)
    assert len(set(found)) == len(found)
