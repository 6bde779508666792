package holdfast.interop;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;

/**
 * Does with Redisson what it is told on standard input, one command per line, and answers on standard
 * output:
 *
 * <pre>
 *     7 t1 plain lock stock 30000       request number, Java thread, object, verb, name, arguments
 *     7 ok                              the same number; what the verb returns follows
 *     8 t1 plain unlock other
 *     8 error IllegalMonitorStateException attempt to unlock lock, not locked by …
 * </pre>
 *
 * Ownership of Redisson's locks is by Java thread, so the command says which thread it is for. A
 * thread appears when it is first named and does its commands in order; different threads work at the
 * same time. The first line it writes is {@code 0 ok} and the client's id; {@code quit}, or the end of
 * standard input, ends it. Its arguments are described in {@link Setup}, its verbs in {@link Verbs}.
 */
public final class RedissonDriver {
    private final RedissonClient client;
    private final Verbs verbs;
    private final PrintStream answers;
    private final Map<String, ExecutorService> workers = new ConcurrentHashMap<>();
    private final Map<String, Thread> threads = new ConcurrentHashMap<>();

    private RedissonDriver(RedissonClient client, PrintStream answers) {
        this.client = client;
        this.verbs = new Verbs(client, threads);
        this.answers = answers;
    }

    public static void main(String[] arguments) throws IOException {
        var answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        var client = Redisson.create(Setup.parse(arguments));
        new RedissonDriver(client, answers).run();
        // Not shutdown(): it waits for idle connections, and nothing here is worth waiting for.
        Runtime.getRuntime().halt(0);
    }

    private void run() throws IOException {
        answers.println("0 ok " + client.getId());
        var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var line = input.readLine();
        while (line != null && !line.equals("quit")) {
            accept(List.of(line.strip().split(" +")));
            line = input.readLine();
        }
    }

    private void accept(List<String> words) {
        var number = words.get(0);
        if (words.size() < 3) {
            answers.println(number + " error a command has a number, a thread and words");
            return;
        }
        worker(words.get(1)).execute(() -> answer(number, words.subList(2, words.size())));
    }

    private ExecutorService worker(String name) {
        return workers.computeIfAbsent(name, ignored -> Executors.newSingleThreadExecutor(work -> {
            var thread = new Thread(work, name);
            thread.setDaemon(true);
            threads.put(name, thread);
            return thread;
        }));
    }

    private void answer(String number, List<String> command) {
        String text;
        try {
            text = " ok " + verbs.perform(command);
        } catch (Exception failure) {
            text = " error " + failure.getClass().getSimpleName() + " " + oneLine(failure.getMessage());
        }
        answers.println(number + text.stripTrailing());
    }

    private static String oneLine(String text) {
        return text == null ? "" : String.join(" ", Arrays.asList(text.split("\\s+")));
    }
}
