"""Which addresses a fetch may connect to when somebody else chose where it goes.

What Python calls global is not enough: it takes several ranges for public that lead inside, by translation to IPv4 or
by custom of a cloud. So this is a list, and what it does not know must at least be global; in IPv6 it must lie in the
one block from which public addresses are given out.
"""

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
            # this network, private, shared by carriers, loopback, link-local (metadata services live there)
            *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12"),
            *("192.168.0.0/16", "168.63.129.16/32"),
            # protocols, documentation, relays, benchmarks, multicast, reserved
            *("192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24"),
            *("203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
            # IPv4 in other clothes: compatible, NAT64 (well known and local), Teredo and its block, 6to4
            *("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2001::/23", "2002::/16"),
            # discard, documentation, segment routing, unique local, link-local, site-local, multicast
            *("100::/64", "2001:db8::/32", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8"),
        ),
    )
)

GIVEN_OUT = ip_network("2000::/3")


class Guard(msgspec.Struct, frozen=True):
    """``allow`` opens networks that are inside, at every port: a test's servers, a picture store of one's own.

    ``deny`` closes what looks public and is not, as the networks of a cluster may; it has the last word.
    """

    allow: Networks = ()
    ports: Ports = WEB_PORTS
    deny: Networks = ()

    def admits(self, address: str, port: int) -> bool:
        """A zone makes an address local, whatever it looks like."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if isinstance(found, IPv6Address):
            if found.scope_id is not None:
                return False
            found = found.ipv4_mapped or found
        if _in(found, self.deny):
            return False
        return _in(found, self.allow) or (port in self.ports and is_public(found))


def is_public(address: Address) -> bool:
    given_out = address.version == 4 or address in GIVEN_OUT
    return given_out and address.is_global and not address.is_multicast and not _in(address, INSIDE)


def _in(address: Address, networks: Iterable[Network]) -> bool:
    return any(address.version == network.version and address in network for network in networks)
