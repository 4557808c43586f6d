"""No URL, name or redirect leads a fetch inside: nobody ever knocks at a canary."""

import asyncio
import random
import socket
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

import pytest
from autopost_runtime.fetch.addresses import Guard, is_public
from autopost_runtime.fetch.fetch import Fetcher, Unfetched
from ingest.support.canary_servers import Canaries, Names, canaries
from ingest.support.ssrf_urls import FRIEND, INNER_V4, INNER_V6, OUTER, Case, corpus
from msgspec import field

CORPUS = corpus()
TRICKS = sorted({case.trick for case in CORPUS})
SHORT = timedelta(seconds=3)
REFUSED = {"forbidden_address", "invalid_url", "credentials_in_url", "bad_redirect", "dns", "too_many_redirects"}
"""Before anything was connected to."""


@pytest.fixture
async def nest() -> AsyncIterator[Canaries]:
    async with canaries() as made:
        yield made


class Trial:
    """One fetcher for many cases: what costs most is to read the certificates of the system."""

    def __init__(self, nest: Canaries, guard: Guard) -> None:
        self._nest = nest
        self._fetcher = Fetcher(guard, resolve=self._resolve, unknown_after=timedelta())
        self.names = Names(Case("", ""))

    async def end(self, case: Case) -> str:
        """The status of an answer, or why there is none."""
        self.names, self._nest.redirect = Names(case), case.redirect
        url = case.url.replace("{port}", str(self._nest.port))
        try:
            async with self._fetcher.fetch(url, limit=1000, within=SHORT, idle=SHORT) as answer:
                return str(answer.status)
        except Unfetched as exc:
            return exc.code

    async def _resolve(self, host: str) -> Sequence[str]:
        return await self.names.resolve(host)


def guarded(nest: Canaries) -> Guard:
    """The canaries' port is open, so that it is never the port alone that keeps a fetch away."""
    return Guard((ip_network(FRIEND),), frozenset({80, 443, nest.port}))


def test_the_corpus_is_as_large_and_as_varied_as_it_should_be() -> None:
    assert len({(case.url, case.redirect, str(case.names)) for case in CORPUS}) >= 400
    assert len(TRICKS) == 13
    assert min(Counter(case.trick for case in CORPUS).values()) >= 10


@pytest.mark.parametrize("trick", TRICKS)
async def test_nobody_knocks_at_a_canary(nest: Canaries, trick: str) -> None:
    trial = Trial(nest, guarded(nest))

    ends = [(case, await trial.end(case)) for case in CORPUS if case.trick == trick]

    assert nest.heard == []
    assert [(case.url, end) for case, end in ends if end not in REFUSED and not case.friendly] == []


async def test_without_the_guard_the_same_corpus_reaches_the_canaries(nest: Canaries) -> None:
    """So that silence above means something."""
    trial = Trial(nest, Guard((ip_network("127.0.0.0/8"), ip_network("::1"), ip_network("0.0.0.0/8"))))
    heard: Counter[str] = Counter()

    for case in CORPUS:
        nest.heard.clear()
        await trial.end(case)
        heard[case.trick] += len(nest.heard)

    assert {trick for trick, times in heard.items() if times} >= {
        *("plain v4", "native v6", "v4 in v6", "name", "mixed answers", "redirect", "rebinding", "odd letters"),
    }


@pytest.mark.parametrize("scheme", ["HTTP", "HTTPS", "ALL"])
async def test_a_proxy_of_the_environment_takes_no_part(
    nest: Canaries, monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    for name in (f"{scheme}_PROXY", f"{scheme}_PROXY".lower()):
        monkeypatch.setenv(name, f"http://127.0.0.1:{nest.port}")

    end = await Trial(nest, guarded(nest)).end(Case("proxy", "http://friend.example:{port}/"))

    assert (end, nest.heard) == ("200", [])


async def test_a_name_is_looked_up_once_and_the_answer_is_where_the_connection_goes(nest: Canaries) -> None:
    trial = Trial(nest, guarded(nest))

    end = await trial.end(Case("", "http://flip.example:{port}/", {"flip.example": [[FRIEND], ["127.0.0.1"]]}))

    assert (end, trial.names.asked) == ("200", ["flip.example"])
    assert (nest.asked, nest.heard) == (1, [])


async def test_every_hop_is_looked_up_and_checked_anew(nest: Canaries) -> None:
    flip = {"flip.example": [[FRIEND], ["127.0.0.1"]]}
    again = Case("", "http://flip.example:{port}/redirect", flip, "http://flip.example:{port}/")

    end = await Trial(nest, guarded(nest)).end(again)

    assert (end, nest.asked, nest.heard) == ("dns", 1, [])


class Fickle(Guard, frozen=True):
    """Says yes when it is asked about the answers of the name server, and no when the connection is made."""

    asked: list[str] = field(default_factory=list)

    def admits(self, address: str, port: int) -> bool:
        self.asked.append(address)
        return len(self.asked) == 1


async def test_the_address_is_judged_once_more_when_it_is_connected_to(nest: Canaries) -> None:
    end = await Trial(nest, Fickle()).end(Case("", "http://127.0.0.1:{port}/"))

    assert (end, nest.heard) == ("forbidden_address", [])


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "017700000001", "::1", "localhost"])
async def test_the_systems_own_look_up_reads_every_spelling_before_it_is_judged(nest: Canaries, host: str) -> None:
    shown = f"[{host}]" if ":" in host else host
    fetcher = Fetcher(Guard(ports=frozenset({nest.port})))

    with pytest.raises(Unfetched, match="dns" if host == "localhost" else "forbidden_address"):
        async with fetcher.fetch(f"http://{shown}:{nest.port}/", limit=1, within=SHORT, idle=SHORT):
            pass

    assert set(await fetcher.look_up(host)) & {"127.0.0.1", "::1"}
    assert nest.heard == []


def own_address() -> str:
    """That of this host, as others see it; nothing is sent to find it out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((OUTER, 9))
        except OSError:
            pytest.skip("this host has no address but that of itself")
        return str(probe.getsockname()[0])


@pytest.mark.parametrize("way", ["literal", "mapped", "name", "redirect"])
async def test_nobody_knocks_at_the_hosts_own_address(nest: Canaries, way: str) -> None:
    own = own_address()
    url = {"literal": own, "mapped": f"[::ffff:{own}]", "name": "own.example", "redirect": "friend.example"}[way]
    case = Case("", f"http://{url}:{{port}}/redirect", {"own.example": [[own]]}, f"http://{own}:{{port}}/")
    heard: list[str] = []

    async def hear(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(own)
        writer.close()

    async with await asyncio.start_server(hear, own, nest.port):
        open_ = await Trial(nest, Guard((ip_network(FRIEND), ip_network(own)))).end(case)
        reached, heard[:] = list(heard), []
        denied = () if not is_public(ip_address(own)) else (ip_network(own),)
        end = await Trial(nest, Guard((ip_network(FRIEND),), frozenset({80, nest.port}), denied)).end(case)

    assert reached, open_  # so that the silence means something
    assert (end, heard) == ("dns" if way == "name" else "forbidden_address", [])


async def test_what_is_denied_is_denied_whatever_is_allowed() -> None:
    guard = Guard((ip_network("10.0.0.0/8"),), deny=(ip_network("10.96.0.0/12"), ip_network("93.184.215.0/24")))

    answers = [guard.admits(each, 443) for each in ("10.1.2.3", "10.96.0.1", "::ffff:10.96.0.1", OUTER, "93.184.216.1")]

    assert answers == [True, False, False, False, True]


async def test_an_address_at_another_port_than_those_of_the_web_is_not_public_enough() -> None:
    guard = Guard()

    assert [guard.admits("93.184.215.14", port) for port in (80, 443, 22, 8080, 0)] == [True, True, False, False, False]


def test_what_is_inside_is_never_public() -> None:
    for address in (*map(IPv4Address, INNER_V4), *map(IPv6Address, INNER_V6)):
        assert not Guard().admits(str(address), 443), address


FORBIDDEN_V4 = [
    *((0, 0xFFFFFF), (0x0A000000, 0x0AFFFFFF), (0x64400000, 0x647FFFFF), (0x7F000000, 0x7FFFFFFF)),
    *((0xA83F8110, 0xA83F8110), (0xA9FE0000, 0xA9FEFFFF), (0xAC100000, 0xAC1FFFFF), (0xC0000000, 0xC00000FF)),
    *((0xC0000200, 0xC00002FF), (0xC0586300, 0xC05863FF), (0xC0A80000, 0xC0A8FFFF), (0xC6120000, 0xC613FFFF)),
    *((0xC6336400, 0xC63364FF), (0xCB007100, 0xCB0071FF), (0xE0000000, 0xFFFFFFFF)),
]
"""By number, so that nothing but arithmetic is believed."""


def test_a_hundred_thousand_addresses_are_judged_as_the_table_of_numbers_does() -> None:
    chance = random.Random(20261116)
    edges = [number + step for span in FORBIDDEN_V4 for number in span for step in (-1, 0, 1)]
    numbers = [number for number in edges if 0 <= number < 2**32] + [chance.getrandbits(32) for _ in range(100_000)]

    wrong = [
        str(IPv4Address(number))
        for number in numbers
        if is_public(IPv4Address(number)) == any(low <= number <= high for low, high in FORBIDDEN_V4)
    ]

    assert wrong == []


def test_every_v4_address_inside_is_inside_in_v6_clothes_too() -> None:
    chance = random.Random(20261116)
    for low, high in FORBIDDEN_V4:
        number = chance.randint(low, high)
        clothes = (0xFFFF << 32 | number, number, 0x64FF9B << 96 | number, 0x2002 << 112 | number << 80)
        clothes += (0xFFFF << 48 | number, 0x64FF9B0001 << 80 | number, 0x20010000 << 96 | number)
        assert not any(Guard().admits(str(IPv6Address(worn)), 443) for worn in clothes)


def test_of_random_v6_addresses_only_those_given_out_to_the_public_pass() -> None:
    chance = random.Random(20261116)
    numbers = [chance.getrandbits(128) for _ in range(20_000)]

    passing = [number >> 125 for number in numbers if Guard().admits(str(IPv6Address(number)), 443)]

    assert set(passing) == {1}
    assert len(passing) > 2_000


def test_a_public_v4_address_is_public_when_it_is_mapped_and_not_when_it_is_translated() -> None:
    answers = [Guard().admits(form, 443) for form in ("93.184.215.14", "::ffff:93.184.215.14", "64:ff9b::5db8:d70e")]

    assert answers == [True, True, False]
