"""Free ports on 127.0.0.1."""

import random
import socket

HOST = "127.0.0.1"
# Below the range for outgoing connections, so that the kernel does not take a free port in the meantime.
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
    while not is_free(port := random.choice(CHOICE)):  # noqa: S311 -- not a secret
        pass
    return port
