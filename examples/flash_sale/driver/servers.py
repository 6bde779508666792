"""Processes of the sale: Redis servers, the shop's instances, nginx. All on the loopback interface,
with their files in one directory, and gone when the sale is."""

import ctypes
import http.client
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import time

PATIENCE = 20.0
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None)


def wait_until(what, condition, patience=PATIENCE):
    """Asks again until the condition holds; fails when it does not in time."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        if condition():
            return
        time.sleep(0.01)
    raise RuntimeError(f"waited {patience:.0f} s in vain: {what}")


def free_port():
    """A port below those that the system hands out by itself."""
    for _ in range(1000):
        port = random.randrange(12000, 32000)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise RuntimeError("no free port")


def wanted_or_free(port):
    """The tutorials' port if nobody has it."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
            return port
        except OSError:
            return free_port()


def path_of(program):
    """None if it is not installed. Not everybody has the system's programs in the path."""
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/usr/local/sbin")


def raise_file_limit(wanted=16384):
    """Three thousand buyers are six thousand sockets for nginx."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY:
        wanted = min(wanted, hard)
    if soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


class Process:
    """A child that does not outlive us. Ended by its own id, never by name. `ready` has to recognise
    the child: on the port it wanted somebody else may answer, another sale for example."""

    #: For those who must not be us: user, group and extra_groups.
    identity = {}

    def __init__(self, name, command, directory):
        self.name, self.command, self.directory = name, [str(word) for word in command], directory
        self.log = directory / f"{name}.log"
        self.child = None

    def start(self):
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(
                self.command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.directory,
                **self.identity, preexec_fn=lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        wait_until(f"{self.name} is ready", self.checked_ready)

    def checked_ready(self):
        if self.child.poll() is not None:
            raise RuntimeError(f"{self.name} ended:\n{self.log.read_text()[-2000:]}")
        return self.ready()

    def ready(self):
        return True

    def send(self, number):
        self.child.send_signal(number)

    def kill(self):
        self.child.kill()
        self.child.wait()

    def stop(self, number=signal.SIGTERM, patience=PATIENCE):
        if self.child is None or self.child.poll() is not None:
            return
        self.send(signal.SIGCONT)
        self.send(number)
        try:
            self.child.wait(patience)
        except subprocess.TimeoutExpired:
            self.kill()


class RedisConnection:
    """As much of the protocol as counting needs."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=5)
        self.reader = self.socket.makefile("rb")

    def __call__(self, *words):
        encoded = [str(word).encode() for word in words]
        parts = [b"$%d\r\n%s\r\n" % (len(word), word) for word in encoded]
        self.socket.sendall(b"*%d\r\n" % len(encoded) + b"".join(parts))
        return self.answer()

    def answer(self):
        line = self.reader.readline()
        if not line:
            raise ConnectionError("Redis closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"-":
            raise RuntimeError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            size = int(rest)
            return None if size < 0 else self.reader.read(size + 2)[:-2].decode()
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        return rest.decode()

    def close(self):
        self.reader.close()
        self.socket.close()


class Redis(Process):
    def __init__(self, name, directory, *arguments):
        self.port = free_port()
        files = directory / name
        files.mkdir()
        super().__init__(name, [
            "redis-server", "--port", self.port, "--bind", "127.0.0.1", "--dir", files, "--save", "",
            "--appendonly", "no", "--loglevel", "warning", "--maxmemory-policy", "noeviction",
            *arguments], directory)

    @property
    def address(self):
        return f"redis://127.0.0.1:{self.port}"

    def ask(self, *words):
        connection = RedisConnection(self.port)
        try:
            return connection(*words)
        finally:
            connection.close()

    def commands(self):
        found = re.search(r"^total_commands_processed:(\d+)", self.ask("INFO", "stats"), re.M)
        return int(found.group(1))

    def ready(self):
        try:
            return f"process_id:{self.child.pid}\r" in self.ask("INFO", "server")
        except (OSError, RuntimeError):
            return False


class Sentinel(Redis):
    """Watches over a master under the name `sale`; agrees with two others that it is gone."""

    def __init__(self, name, directory, master):
        Process.__init__(self, name, [], directory)
        self.port = free_port()
        configuration = directory / f"{name}.conf"
        configuration.write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {directory}\n"
            f"sentinel monitor sale 127.0.0.1 {master.port} 2\n"
            "sentinel down-after-milliseconds sale 500\n"
            "sentinel failover-timeout sale 3000\n")
        self.command = ["redis-server", str(configuration), "--sentinel"]


class Instance(Process):
    """One of the shop's two."""

    def __init__(self, binary, port, directory, options):
        self.port = port
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        super().__init__(f"shop-{port}", [binary, "--port", port, *words], directory)
        self.said_before = 0

    def start(self):
        self.said_before = self.log.stat().st_size if self.log.exists() else 0
        super().start()

    def get(self, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", path)
            return connection.getresponse().read().decode()
        finally:
            connection.close()

    def ready(self):
        if b"ready on" not in self.log.read_bytes()[self.said_before:]:
            return False
        try:
            return "up" in self.get("/health")
        except OSError:
            return False

    def in_flight(self):
        """How many requests it is working on."""
        found = re.search(r"^flash_sale_in_flight (\d+)", self.get("/metrics"), re.M)
        return int(found.group(1))


NGINX = """
daemon off;
worker_processes 1;
worker_rlimit_nofile 16384;
pid {directory}/nginx.pid;
error_log {directory}/nginx-errors.log;
events {{ worker_connections 12000; }}
http {{
    access_log off;
    client_body_temp_path {directory}/nginx-body;
    proxy_temp_path {directory}/nginx-proxy;
    fastcgi_temp_path {directory}/nginx-fastcgi;
    uwsgi_temp_path {directory}/nginx-uwsgi;
    scgi_temp_path {directory}/nginx-scgi;
    upstream redislock {{
        server 127.0.0.1:{first} weight=1 max_fails=0;
        server 127.0.0.1:{second} weight=2 max_fails=0;
        keepalive 4000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        keepalive_requests 100000;
        location / {{
            proxy_pass http://redislock;
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_read_timeout 120s;
            # Whoever gets no answer asks again by himself, and is counted.
            proxy_next_upstream off;
        }}
    }}
}}
"""


class Nginx(Process):
    def __init__(self, directory, first, second):
        self.port = free_port()
        configuration = directory / "nginx.conf"
        configuration.write_text(
            NGINX.format(directory=directory, first=first, second=second, port=self.port))
        super().__init__("nginx", [path_of("nginx"), "-p", directory, "-c", configuration, "-e",
                                   directory / "nginx-errors.log"], directory)

    def ready(self):
        # Written when the port is ours.
        file = self.directory / "nginx.pid"
        if not file.exists() or file.read_text().strip() != str(self.child.pid):
            return False
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0
