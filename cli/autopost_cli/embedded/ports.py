"""Ports on 127.0.0.1 that nobody listens on."""

import random
import socket

HOST = "127.0.0.1"
# Below the range from which the kernel picks ports for outgoing connections: what is free now stays free.
CHOICE = range(15_000, 32_000)


def is_free(port: int) -> bool:
    with socket.socket() as attempt:
        attempt.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            attempt.bind((HOST, port))
        except OSError:
            return False
    return True


def free_port() -> int:
    while not is_free(port := random.choice(CHOICE)):  # noqa: S311 -- nothing to guess here
        pass
    return port
