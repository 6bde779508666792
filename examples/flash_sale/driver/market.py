"""Everything that a sale needs, running: stores, two instances, nginx in front of them."""

import databases
from servers import Instance, Nginx, Redis, Sentinel, free_port, wait_until, wanted_or_free
from stores import DatabaseStock, RedisStock, SqliteStock


def fields(flat):
    """Redis lists names and values in turn."""
    return dict(zip(flat[::2], flat[1::2]))


class Market:
    """`settings` are the program's arguments. The lock's ttl is short when something is going to break,
    so that what a dead holder leaves behind is soon gone."""

    def __init__(self, directory, settings):
        self.directory, self.settings = directory, settings
        self.ttl = 1.0 if settings.fault else 10.0
        self.processes, self.instances, self.sentinels = [], [], []
        self.servers = {}
        self.database = None

    def open(self):
        self.stock_redis = self.started(Redis(
            # Written to the file before it is answered: survives the end of the process.
            "stock", self.directory, "--appendonly", "yes", "--appendfsync", "no"))
        self.members = [self.started(Redis(f"member-{index}", self.directory)) for index in range(3)]
        if self.settings.fault == "failover":
            locks = self.start_sentinels()
        else:
            self.locks = self.started(Redis("locks", self.directory))
            locks = self.locks.address
        if self.settings.stock in databases.KINDS:
            kind = databases.KINDS[self.settings.stock]
            self.database = self.started(
                kind(self.settings.stock, self.directory, 2 * self.settings.connections))
        for port in (3786, 3787):
            self.instances.append(self.open_instance(port, self.options(locks)))
        self.nginx = self.started(Nginx(self.directory, *(one.port for one in self.instances)))
        self.sql = (DatabaseStock(self.database) if self.database
                    else SqliteStock(self.directory / "stock.sqlite"))
        self.redis = RedisStock(self.stock_redis)

    def open_instance(self, port, options, tries=5):
        """On the tutorials' port, or on another one if somebody is quicker. Not when something is going
        to break: while an instance is down another sale would take the port that everybody wants."""
        pick = (lambda _: free_port()) if self.settings.fault else wanted_or_free
        program = self.settings.binaries / "flash_sale"
        for left in reversed(range(tries)):
            try:
                return self.started(Instance(program, pick(port), self.directory, options))
            except RuntimeError as error:
                if "in use" not in str(error) or not left:
                    raise
        raise ValueError("no try at all")

    def options(self, locks):
        sql = ({self.settings.stock: self.database.address} if self.database
               else {"sqlite": self.directory / "stock.sqlite"})
        return {
            **sql,
            "stock": self.settings.stock,
            "stock-redis": self.stock_redis.address,
            "locks": locks,
            "quorum": "quorum:" + " ".join(member.address for member in self.members),
            # Where nothing else is disturbed by what it polls.
            "spin": self.stock_redis.address if self.settings.fault else self.locks.address,
            "ttl": int(self.ttl * 1000),
            "threads": self.settings.threads,
            "connections": self.settings.connections,
            "work": self.settings.work,
        }

    def start_sentinels(self):
        # By default five seconds are given to further replicas before one gets its copy.
        at_once = ("--repl-diskless-sync-delay", 0)
        master = self.started(Redis("locks-0", self.directory, *at_once))
        replicas = [self.started(Redis(f"locks-{index}", self.directory, *at_once, "--replicaof",
                                       "127.0.0.1", master.port)) for index in (1, 2)]
        self.servers = {server.port: server for server in [master, *replicas]}
        self.sentinels = [self.started(Sentinel(f"sentinel-{index}", self.directory, master))
                          for index in range(3)]
        wait_until("the sentinels know each other and the replicas", self.sentinels_agree)
        ports = ",".join(f"127.0.0.1:{sentinel.port}" for sentinel in self.sentinels)
        return f"redis+sentinel://{ports}/sale"

    def sentinels_agree(self):
        """All know each other, and no failover is under way: one that strikes into another may never
        end."""
        masters = set()
        for sentinel in self.sentinels:
            state = fields(sentinel.ask("SENTINEL", "MASTER", "sale"))
            known = (state["num-other-sentinels"], state["num-slaves"])
            if known != ("2", "2") or state["flags"] != "master":
                return False
            replicas = map(fields, sentinel.ask("SENTINEL", "REPLICAS", "sale"))
            if any(replica["flags"] != "slave" for replica in replicas):
                return False
            masters.add(state["port"])
        return len(masters) == 1

    def master(self):
        """The server that the sentinels call the master."""
        _, port = self.sentinels[0].ask("SENTINEL", "GET-MASTER-ADDR-BY-NAME", "sale")
        return self.servers[int(port)]

    def well(self):
        """Everything runs, and every replica follows the one master."""
        if not self.sentinels:
            return True
        if not self.sentinels_agree():
            return False
        master = self.master()
        return all(server.ask("ROLE")[0] == ("master" if server is master else "slave")
                   and (server is master or server.ask("ROLE")[3] == "connected")
                   for server in self.servers.values())

    def started(self, process):
        self.processes.append(process)
        process.start()
        return process

    def stock_of(self, strategy):
        return self.redis if (strategy.store or self.settings.stock) == "redis" else self.sql

    def redis_commands(self):
        """How many commands all Redis servers have had so far; those of a script count as well."""
        servers = [process for process in self.processes if type(process) is Redis]
        return sum(server.commands() for server in servers)

    def settle(self):
        """Until no instance works on anything: what is counted afterwards stays."""
        wait_until("the shop is quiet", lambda: not any(one.in_flight() for one in self.instances), 240)

    def close(self):
        for process in reversed(self.processes):
            process.stop(patience=5)
