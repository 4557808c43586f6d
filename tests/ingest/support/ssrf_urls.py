"""URLs that try to reach the internal network, by trick. ``{port}`` is the port of the canary servers."""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address

from msgspec import Struct

FRIEND = "127.0.0.9"
"""The one address that the tests' guard allows: a server of the test's own listens there, at the same port."""

INNER_V4 = (
    *("127.0.0.1", "127.0.0.2", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255"),  # noqa: S104
    *("100.64.0.1", "100.100.100.200", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.168.1.1"),
    *("192.0.0.8", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
)
INNER_V6 = (
    *("::1", "::", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::2", "fe80::1", "febf::1"),
    *("fec0::1", "feff::1", "fc00::1", "fd00:ec2::254", "fdff:ffff::1", "ff02::1", "ff0e::1", "100::1"),
    *("2001:db8::1", "3fff::1", "3fff:fff::1", "5f00::1", "2001::1", "2001:2::1", "2001:10::1", "2001:20::1"),
    *("2001:1ff:ffff::1", "64:ff9b::", "64:ff9b:1::", "2002::", "::ffff:0:0"),
)
SHORT_LIST = ("127.0.0.1", "127.0.0.2", "0.0.0.0", "10.0.0.1", "169.254.169.254", "192.168.1.1")  # noqa: S104
OUTER = "93.184.215.14"
"""Public, and never connected to: every case that names it is refused for something else."""


class Case(Struct, frozen=True):
    trick: str
    url: str
    names: dict[str, list[list[str]]] = {}
    """What the test's resolver says: by name, the answers of one look-up after the other."""
    redirect: str | None = None
    """Where the friend sends whoever asks it."""
    friendly: bool = False
    """The friend may well be asked: it is only the canaries that must not be."""


def corpus() -> list[Case]:
    return [
        *_spelled_v4(),
        *_v4_in_v6(),
        *_native_v6(),
        *_zones(),
        *_user_infos(),
        *_odd_letters(),
        *_names(),
        *_mixed_answers(),
        *_redirects(),
        *_rebinding(),
        *_schemes_and_ports(),
    ]


def _spelled_v4() -> Iterator[Case]:
    for address in SHORT_LIST:
        for spelling in spellings(address):
            yield Case("spelled v4", f"http://{spelling}:{{port}}/")
    for address in INNER_V4:
        yield Case("plain v4", f"http://{address}:{{port}}/")
        yield Case("plain v4", f"https://{address}:{{port}}/a.png?x=1")


def spellings(address: str) -> list[str]:
    one, two, three, four = (int(part) for part in address.split("."))
    whole = int(IPv4Address(address))
    low = whole & 0xFFFFFF
    return [
        f"{whole}",
        f"0x{whole:x}",
        f"0X{whole:08X}",
        f"0{whole:o}",
        f"0x{one:x}.0x{two:x}.0x{three:x}.0x{four:x}",
        f"0x{one:02X}.0X{two:02x}.{three}.{four}",
        f"0{one:o}.0{two:o}.0{three:o}.0{four:o}",
        f"00{one:o}.{two}.0x{three:x}.{four}",
        f"{one}.{low}",
        f"{one}.0x{low:x}",
        f"{one}.{two}.{three << 8 | four}",
        f"0x{one:x}.{two}.0{three << 8 | four:o}",
        f"{address}.",
        f"{address}..",
        ".".join(f"{part:03}" for part in (one, two, three, four)),
        address.replace(".", "%2E"),
        "".join(f"%{ord(char):02x}" for char in address),
    ]


def _v4_in_v6() -> Iterator[Case]:
    for address in (*SHORT_LIST, "100.64.0.1", "172.16.0.1", "224.0.0.1"):
        whole = int(IPv4Address(address))
        high, low = f"{whole >> 16:x}", f"{whole & 0xFFFF:x}"
        veiled = ~whole & 0xFFFFFFFF
        for form in (
            *(f"::ffff:{address}", f"::ffff:{high}:{low}", f"0:0:0:0:0:ffff:{high}:{low}", f"::FFFF:{address}"),
            *(f"::{address}", f"::{high}:{low}", f"64:ff9b::{address}", f"64:ff9b::{high}:{low}"),
            *(f"64:ff9b:1::{address}", f"2002:{high}:{low}::1", f"2002:{high}:{low}::"),
            *(f"2001:0:{high}:{low}::1", f"2001:0:5ef5:79fd:0:0:{veiled >> 16:x}:{veiled & 0xFFFF:x}"),
            *(f"fe80::5efe:{address}", f"::ffff:0:{address}"),
        ):
            yield Case("v4 in v6", f"http://[{form}]:{{port}}/")


def _native_v6() -> Iterator[Case]:
    for address in INNER_V6:
        yield Case("native v6", f"http://[{address}]:{{port}}/")
        yield Case("native v6", f"https://[{IPv6Address(address).exploded.upper()}]:{{port}}/")


def _zones() -> Iterator[Case]:
    for zone in ("lo", "1", "eth0", "25lo", ""):
        for address in ("fe80::1", "::1", "::ffff:127.0.0.1", "2606:4700::1111"):
            yield Case("zone", f"http://[{address}%25{zone}]:{{port}}/")
            yield Case("zone", f"http://[{address}%{zone}]:{{port}}/")


def _user_infos() -> Iterator[Case]:
    for address in ("127.0.0.1", "[::1]", "2130706433"):
        for before in ("friend.example", "friend.example:80", "a:b", "friend.example%23", "%40", "", ":", "a%00"):
            yield Case("user info", f"http://{before}@{address}:{{port}}/")
        yield Case("user info", f"http://{address}:{{port}}@friend.example:{{port}}/")
        for between in ("#@", "?@", "/@", "\\@", "%5c@", "\t@", " @", "\n@", "\r\n@"):
            yield Case("user info", f"http://friend.example:{{port}}{between}{address}:{{port}}/", friendly=True)


def _odd_letters() -> Iterator[Case]:
    """Other letters that a reader of host names may take for digits and dots."""
    for address in ("127.0.0.1", "0.0.0.0", "10.0.0.1"):  # noqa: S104
        for dot in "。．｡":
            yield Case("odd letters", f"http://{address.replace('.', dot)}:{{port}}/")
        for first in (0xFF10, 0x1D7CE, 0x1D7D8, 0x1D7E2, 0x1D7EC, 0x1D7F6):
            odd = "".join(chr(first + int(char)) if char.isdigit() else char for char in address)
            yield Case("odd letters", f"http://{odd}:{{port}}/")
        yield Case("odd letters", f"http://{address[0]}\u00ad{address[1:]}:{{port}}/")
        yield Case("odd letters", f"http://{address[0]}\u200b{address[1:]}:{{port}}/")
    yield Case("odd letters", "http://①②⑦.⓪.⓪.①:{port}/")
    yield Case("odd letters", "http://ⓛocalhost:{port}/", {"localhost": [["127.0.0.1"]]})


def _names() -> Iterator[Case]:
    for name in ("localhost", "LOCALHOST", "localhost.", "LocalHost..", "sub.localhost", "ip6-localhost"):
        answers = {name.lower().rstrip("."): [["127.0.0.1", "::1"]]}
        yield Case("name", f"http://{name}:{{port}}/", answers)
    for address in (*INNER_V4, *INNER_V6):
        yield Case("name", "http://sly.example:{port}/", {"sly.example": [[address]]})
    for address in ("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::1", "fe80::1%2", "::127.0.0.1"):
        yield Case("name", "https://sly.example:{port}/", {"sly.example": [[address]]})


def _mixed_answers() -> Iterator[Case]:
    for address in (*SHORT_LIST, "::1", "fe80::1%2", "64:ff9b::7f00:1", "::ffff:10.0.0.1", "not an address"):
        for answer in ([FRIEND, address], [address, FRIEND], [FRIEND, address, FRIEND], [OUTER, address]):
            yield Case("mixed answers", "http://mixed.example:{port}/", {"mixed.example": [answer]})


def _redirects() -> Iterator[Case]:
    targets = [
        *(f"http://{address}:{{port}}/" for address in INNER_V4),
        *(f"http://[{address}]:{{port}}/" for address in INNER_V6),
        *(f"http://{spelling}:{{port}}/" for spelling in spellings("127.0.0.1")),
        *("http://[::ffff:7f00:1]:{port}/", "http://[64:ff9b::7f00:1]:{port}/", "http://[2002:7f00:1::]:{port}/"),
        *("//127.0.0.1:{port}/", "//[::1]:{port}/", "\\\\127.0.0.1:{port}\\", "/\\127.0.0.1:{port}/"),
        *("http://a:b@127.0.0.1:{port}/", "http:127.0.0.1:{port}", "https:///127.0.0.1:{port}/"),
        *("file:///etc/passwd", "gopher://127.0.0.1:{port}/_x", "ftp://127.0.0.1:{port}/", "data:image/png;base64,AA"),
        *("dict://127.0.0.1:{port}/", "javascript:alert(1)", "http://", "http://[::1", "http://127.0.0.1:0/", ""),
        *("http://127.0.0.1:99999/", "http://sly.example:{port}/", "//mixed.example:{port}/"),
    ]
    names = {"sly.example": [["127.0.0.1"]], "mixed.example": [[FRIEND, "::1"]]}
    for target in targets:
        yield Case("redirect", "http://friend.example:{port}/redirect", names, target, friendly=True)


def _rebinding() -> Iterator[Case]:
    """The first answer is fine; whoever asks again is led inside."""
    for address in (*SHORT_LIST, "::1", "::ffff:127.0.0.1"):
        flip = {"flip.example": [[FRIEND], [address]]}
        yield Case("rebinding", "http://flip.example:{port}/", flip, friendly=True)
        back = {"flip.example": [[FRIEND], [address]]}
        yield Case("rebinding", "http://flip.example:{port}/redirect", back, "http://flip.example:{port}/", True)


def _schemes_and_ports() -> Iterator[Case]:
    for scheme in ("file", "gopher", "ftp", "dict", "ldap", "ws", "wss", "jar", "tftp", "unix", "HTTPX", "view-source"):
        yield Case("scheme", f"{scheme}://127.0.0.1:{{port}}/")
    for text in (
        "",
        "http",
        "http:",
        "http:/",
        "http://",
        "//127.0.0.1:{port}/",
        "127.0.0.1:{port}",
        "http://:{port}/",
    ):
        yield Case("scheme", text)
    for port in (1, 22, 25, 53, 111, 2375, 3306, 4222, 5432, 6379, 8080, 9200, 11211, 27017, 65535):
        yield Case("port", f"http://outer.example:{port}/", {"outer.example": [[OUTER]]})
