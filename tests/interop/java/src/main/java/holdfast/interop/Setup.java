package holdfast.interop;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.redisson.client.codec.StringCodec;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ReadMode;
import org.redisson.config.SubscriptionMode;

/**
 * The driver's arguments: how Redisson is configured.
 *
 * <pre>
 *     single   redis://127.0.0.1:7000
 *     replicas redis://127.0.0.1:7000 redis://127.0.0.1:7001      the first is the master
 *     sentinel redis://127.0.0.1:7100 … master=stock
 *     cluster  redis://127.0.0.1:7000 …
 *
 *     subscribe=SLAVE with replicas: where it listens, MASTER if nothing is said
 *     watchdog=MS     the ttl of locks without a lease, which are renewed every third of it
 *     timeout=MS      how long a command may go unanswered
 *     retries=N       how often an unanswered command may be sent again
 * </pre>
 */
final class Setup {
    private final List<String> addresses = new ArrayList<>();
    private final Map<String, String> settings = new HashMap<>();

    private Setup(String[] arguments) {
        for (int index = 1; index < arguments.length; ++index) {
            var parts = arguments[index].split("=", 2);
            if (parts.length == 2) {
                settings.put(parts[0], parts[1]);
            } else {
                addresses.add(parts[0]);
            }
        }
    }

    static Config parse(String[] arguments) {
        if (arguments.length < 2) {
            throw new IllegalArgumentException(
                    "usage: single|replicas|sentinel|cluster URL… [SETTING=VALUE…]");
        }
        var setup = new Setup(arguments);
        var config = new Config();
        config.setCodec(StringCodec.INSTANCE);
        config.setThreads(4);
        config.setNettyThreads(4);
        config.setLockWatchdogTimeout(setup.number("watchdog", 30_000));
        setup.addServers(config, arguments[0]);
        return config;
    }

    private void addServers(Config config, String mode) {
        switch (mode) {
            case "single" -> addSingle(config);
            case "replicas" -> addReplicas(config);
            case "sentinel" -> addSentinels(config);
            case "cluster" -> addCluster(config);
            default -> throw new IllegalArgumentException("no such mode: " + mode);
        }
    }

    private void addSingle(Config config) {
        var servers = config.useSingleServer();
        servers.setAddress(addresses.get(0));
        servers.setConnectionMinimumIdleSize(1).setConnectionPoolSize(16);
        common(servers);
    }

    private void addReplicas(Config config) {
        var servers = config.useMasterSlaveServers();
        servers.setMasterAddress(addresses.get(0));
        addresses.stream().skip(1).forEach(servers::addSlaveAddress);
        if (settings.containsKey("subscribe")) {
            servers.setSubscriptionMode(SubscriptionMode.valueOf(settings.get("subscribe")));
        }
        fewConnections(servers);
    }

    private void addSentinels(Config config) {
        var servers = config.useSentinelServers();
        servers.setMasterName(settings.get("master")).setCheckSentinelsList(false);
        servers.addSentinelAddress(addresses.toArray(String[]::new));
        fewConnections(servers);
    }

    private void addCluster(Config config) {
        var servers = config.useClusterServers();
        servers.addNodeAddress(addresses.toArray(String[]::new));
        fewConnections(servers);
    }

    private void fewConnections(BaseMasterSlaveServersConfig<?> servers) {
        servers.setMasterConnectionMinimumIdleSize(1);
        servers.setMasterConnectionPoolSize(16);
        servers.setSlaveConnectionMinimumIdleSize(1);
        servers.setSlaveConnectionPoolSize(16);
        // A replica may lag: what a test has seen on the master must not be unknown to Redisson.
        servers.setReadMode(ReadMode.MASTER);
        common(servers);
    }

    private void common(BaseConfig<?> servers) {
        servers.setTimeout(number("timeout", 3000));
        servers.setRetryAttempts(number("retries", 3));
    }

    private int number(String name, int otherwise) {
        return Integer.parseInt(settings.getOrDefault(name, Integer.toString(otherwise)));
    }
}
