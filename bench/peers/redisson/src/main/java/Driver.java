import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintWriter;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.locks.LockSupport;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;

/** Redisson's RLock, as its documentation shows it. See ../README.md for the protocol. */
public class Driver {
    private static List<long[]> work(RLock lock, long hold, long most, long begin, long end) {
        List<long[]> pairs = new ArrayList<>();
        long asked;
        for (long taken = 0; (most == 0 || taken < most) && (asked = System.nanoTime()) < end; ++taken) {
            lock.lock();
            long got = System.nanoTime();
            if (hold > 0) {
                LockSupport.parkNanos(hold);
            }
            long released = System.nanoTime();
            lock.unlock();
            long done = System.nanoTime();
            if (begin <= asked && done <= end) {
                pairs.add(new long[] {asked, got, released, done});
            }
        }
        return pairs;
    }

    public static void main(String[] arguments) throws Exception {
        Config config = new Config();
        config.useSingleServer().setAddress("redis://127.0.0.1:" + arguments[0]);
        RedissonClient client = Redisson.create(config);
        System.out.println("ready Redisson " + Redisson.class.getPackage().getImplementationVersion());
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        String line;
        while ((line = lines.readLine()) != null) {
            Map<String, String> order = new HashMap<>();
            for (String word : line.split(" ")) {
                String[] parts = word.split("=", 2);
                order.put(parts[0], parts[1]);
            }
            int tasks = Integer.parseInt(order.get("tasks"));
            long hold = Long.parseLong(order.get("hold_us")) * 1000;
            long most = Long.parseLong(order.get("pairs"));
            long begin = System.nanoTime() + Long.parseLong(order.get("warm_ms")) * 1_000_000;
            long end = begin + Long.parseLong(order.get("ms")) * 1_000_000;
            var threads = Executors.newFixedThreadPool(tasks);
            List<Future<List<long[]>>> results = new ArrayList<>();
            for (int task = 0; task < tasks; ++task) {
                String name = order.get("mode").equals("one") ? order.get("name") : order.get("name") + ":" + task;
                Callable<List<long[]>> job = () -> work(client.getLock(name), hold, most, begin, end);
                results.add(threads.submit(job));
            }
            try (PrintWriter out = new PrintWriter(order.get("out"))) {
                for (int task = 0; task < tasks; ++task) {
                    for (long[] pair : results.get(task).get()) {
                        out.println(task + " " + pair[0] + " " + pair[1] + " " + pair[2] + " " + pair[3]);
                    }
                }
            }
            threads.shutdown();
            System.out.println("done");
        }
        client.shutdown();
    }
}
