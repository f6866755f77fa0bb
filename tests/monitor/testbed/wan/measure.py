"""Measure a network from inside a namespace: ``serve ADDRESS``, ``round-trips|rate ADDRESS PORT N``."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time

LOST_SECONDS = 5.0  # generous: a busy machine answers late


def serve(address: str) -> None:
    """Echo datagrams; answer each connection with the rate at which its bytes came. Prints the port first."""
    listener = socket.create_server((address, 0))
    port = listener.getsockname()[1]
    echoing = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    echoing.bind((address, port))
    threading.Thread(target=_echo, args=(echoing,), daemon=True).start()
    print(port, flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(json.dumps(_received_rate(connection)).encode())


def _echo(echoing: socket.socket) -> None:
    while True:
        data, caller = echoing.recvfrom(2048)
        echoing.sendto(data, caller)


def _received_rate(connection: socket.socket) -> float:
    """Return bytes per second from the first to the last that arrived."""
    received = len(connection.recv(1 << 16))
    first, began = received, time.monotonic()
    while data := connection.recv(1 << 16):
        received += len(data)
    return (received - first) / (time.monotonic() - began)


def round_trips(address: str, port: int, number: int) -> list[float | None]:
    durations: list[float | None] = []
    for probe in range(number):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.settimeout(LOST_SECONDS)
            began = time.monotonic()
            caller.sendto(str(probe).encode(), (address, port))
            try:
                caller.recv(2048)
            except TimeoutError:
                durations.append(None)
            else:
                durations.append(time.monotonic() - began)
    return durations


def rate(address: str, port: int, size_bytes: int) -> float:
    with socket.create_connection((address, port)) as connection:
        connection.sendall(bytes(size_bytes))
        connection.shutdown(socket.SHUT_WR)
        return float(json.loads(connection.recv(100)))


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        serve(sys.argv[2])
    else:
        measure = round_trips if sys.argv[1] == "round-trips" else rate
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))))
