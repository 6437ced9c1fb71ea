"""Event loops and green threads: what they interleave and what comes out is the same, and so are their signals."""

import signal
import sys
import time


def burn(seconds: float) -> int:
    end = time.process_time() + seconds
    while time.process_time() < end:
        sum(range(200))
    return 0


def with_gevent() -> None:
    import gevent.monkey

    gevent.monkey.patch_all()
    import socket
    import subprocess
    import threading

    import gevent

    def serve(listener: socket.socket) -> None:
        connection, _ = listener.accept()
        while data := connection.recv(100):
            burn(0.01)
            connection.sendall(data.upper())

    listener = socket.create_server(("127.0.0.1", 0))
    server = gevent.spawn(serve, listener)
    client = socket.create_connection(listener.getsockname())
    for number in range(8):
        client.sendall(f"message {number}".encode())
        print(client.recv(100))
    client.close()
    server.join(5)
    gevent.signal_handler(signal.SIGALRM, lambda: print("alarm"))
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    threads = [threading.Thread(target=time.sleep, args=(0.1,)) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(subprocess.run(["echo", "hello"], capture_output=True).stdout)
    pool = gevent.get_hub().threadpool
    print(pool.map(lambda n: burn(0.02) or n * n, range(5)))


def with_eventlet() -> None:
    import eventlet

    def worker(number: int) -> int:
        burn(0.01)
        eventlet.sleep(0.01)
        return number * number

    pool = eventlet.GreenPool(10)
    print(list(pool.imap(worker, range(20))))
    with eventlet.Timeout(0.05, False):
        eventlet.sleep(5)
    print("timed out")


def with_greenlet() -> None:
    import greenlet

    def worker(number: int) -> int:
        for _ in range(50):
            burn(0.0005)
            greenlet.getcurrent().parent.switch(number)
        return -number

    workers = [greenlet.greenlet(worker) for _ in range(10)]
    total = 0
    while workers:
        total += sum(each.switch(number) or 0 for number, each in enumerate(workers))
        workers = [each for each in workers if not each.dead]
    print(total)


def with_uvloop() -> None:
    import asyncio

    import uvloop

    async def main() -> None:
        loop = asyncio.get_running_loop()
        print(type(loop).__module__.split(".")[0])
        alarmed = asyncio.Event()
        loop.add_signal_handler(signal.SIGALRM, alarmed.set)
        signal.setitimer(signal.ITIMER_REAL, 0.05)

        async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while data := await reader.read(100):
                burn(0.01)
                writer.write(data.upper())
            writer.close()

        server = await asyncio.start_server(handle, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        for number in range(8):
            writer.write(f"message {number}".encode())
            print(await reader.read(100))
        writer.close()
        await alarmed.wait()
        print("alarm")
        process = await asyncio.create_subprocess_exec("echo", "hello", stdout=asyncio.subprocess.PIPE)
        print(await process.communicate())
        await asyncio.to_thread(burn, 0.1)
        server.close()

    if sys.version_info >= (3, 12):
        uvloop.run(main())
    else:
        uvloop.install()
        asyncio.run(main())


globals()[f"with_{sys.argv[1]}"]()
