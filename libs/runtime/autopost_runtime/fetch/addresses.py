"""Addresses that a fetch of an untrusted URL may connect to.

Python's ``is_global`` is not enough: it accepts ranges that reach internal networks, by translation to IPv4 or by cloud
convention. So this module lists forbidden networks; any other address must be global, and in IPv6 within the block of
allocated public addresses.
"""

import socket
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import msgspec

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Networks = tuple[Network, ...]
Ports = frozenset[int]

WEB_PORTS: Ports = frozenset({80, 443})

INSIDE: Networks = tuple(
    map(
        ip_network,
        (
            # this network, private, carrier-grade NAT, loopback, link-local (with cloud metadata services)
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.168.0.0/16", "168.63.129.16/32"),
            # protocols, documentation, relays, benchmarks, multicast, reserved
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            # IPv4 embedded in IPv6: compatible, NAT64 (well-known and local), Teredo and its block, 6to4
            *("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16"),
            # discard, documentation, segment routing, unique local, link-local, site-local, multicast
            *("100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
        ),
    )
)

GIVEN_OUT = ip_network("2000::/3")


class Guard(msgspec.Struct, frozen=True):
    """``allow`` permits internal networks on every port, such as test servers or an image store. ``deny`` forbids
    networks that only look public, such as those of a cluster, and overrides ``allow``."""

    allow: Networks = ()
    ports: Ports = WEB_PORTS
    deny: Networks = ()

    def admits(self, address: str, port: int) -> bool:
        found = _parsed(address)
        if found is None or _in(found, self.deny):
            return False
        return _in(found, self.allow) or (port in self.ports and is_public(found))

    def admits_at_some_port(self, address: str) -> bool:
        return any(self.admits(address, port) for port in self.ports)


def is_public(address: Address) -> bool:
    given_out = address.version == 4 or address in GIVEN_OUT
    return given_out and address.is_global and not address.is_multicast and not _in(address, INSIDE)


def is_number(host: str) -> bool:
    """Whether the host is an IP address, in any notation that the system accepts, and not a name."""
    try:
        return _parsed(host) is not None or bool(socket.inet_aton(host))
    except OSError:
        return False


def _parsed(address: str) -> Address | None:
    """An address with a zone is local."""
    try:
        found = ip_address(address)
    except ValueError:
        return None
    if isinstance(found, IPv6Address):
        if found.scope_id is not None:
            return None
        return found.ipv4_mapped or found
    return found


def _in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
