package holdfast.interop;

import static java.util.concurrent.TimeUnit.MILLISECONDS;

import java.util.List;
import java.util.Map;
import java.util.Set;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * What the driver can do. Times are milliseconds; an answer of {@code -} stands for Java's null.
 *
 * <pre>
 *     plain|fair|fenced|spin|multi|read|write   (multi: of NAME and NAME:2)
 *         lock NAME [LEASE]          without a lease it is renewed; fenced answers with the token
 *         try NAME WAIT [LEASE]      true or false; fenced: the token or -
 *         unlock NAME
 *         force NAME                 whether there was anything to unlock
 *         locked NAME, held NAME, holds NAME, remaining NAME
 *         token NAME                 fenced only
 *     semaphore
 *         set NAME N, acquire NAME N, try NAME N WAIT, release NAME N, available NAME
 *     permits
 *         set NAME N, acquire NAME [LEASE], try NAME WAIT LEASE, release NAME ID, available NAME
 *     latch
 *         set NAME N, down NAME, await NAME WAIT, count NAME
 *     count OBJECT NAME KEY TIMES      adds one to KEY by GET and SET, TIMES times, inside OBJECT NAME
 *     share OBJECT NAME HOLD FOR       takes OBJECT NAME again and again for FOR, each time for HOLD;
 *                                      answers how often, and the longest wait
 *     self                             this thread's holder id
 *     parked THREAD                    whether it sleeps until it is told of a release
 * </pre>
 */
final class Verbs {
    /** What Redisson's threads sleep in for locks and semaphores, and for latches. */
    private static final Set<String> BEDS =
            Set.of("java.util.concurrent.Semaphore", "org.redisson.misc.ReclosableLatch");

    private final RedissonClient client;
    private final Map<String, Thread> threads;

    Verbs(RedissonClient client, Map<String, Thread> threads) {
        this.client = client;
        this.threads = threads;
    }

    Object perform(List<String> command) throws InterruptedException {
        var object = command.get(0);
        return switch (object) {
            case "self" -> holderId();
            case "parked" -> isParked(threads.get(command.get(1)));
            case "count" -> count(command);
            case "share" -> share(command);
            case "semaphore" -> semaphore(command);
            case "permits" -> permits(command);
            case "latch" -> latch(command);
            case "fenced" -> fenced(client.getFencedLock(command.get(2)), command);
            default -> lock(lockNamed(object, command.get(2)), command);
        };
    }

    private String holderId() {
        return client.getId() + ":" + Thread.currentThread().getId();
    }

    private static boolean isParked(Thread thread) {
        var frames = thread.getStackTrace();
        for (int index = 1; index < frames.length; ++index) {
            if (BEDS.contains(frames[index - 1].getClassName())
                    && frames[index].getClassName().startsWith("org.redisson.Redisson")) {
                return true;
            }
        }
        return false;
    }

    private RLock lockNamed(String object, String name) {
        return switch (object) {
            case "plain" -> client.getLock(name);
            case "fair" -> client.getFairLock(name);
            case "spin" -> client.getSpinLock(name);
            case "fenced" -> client.getFencedLock(name);
            case "multi" -> client.getMultiLock(client.getLock(name), client.getLock(name + ":2"));
            case "read" -> client.getReadWriteLock(name).readLock();
            case "write" -> client.getReadWriteLock(name).writeLock();
            default -> throw new IllegalArgumentException("no such object: " + object);
        };
    }

    private Object lock(RLock lock, List<String> command) throws InterruptedException {
        return switch (command.get(1)) {
            case "lock" -> {
                lock.lock(number(command, 3, -1), MILLISECONDS);
                yield "";
            }
            case "try" -> lock.tryLock(number(command, 3, 0), number(command, 4, -1), MILLISECONDS);
            case "unlock" -> {
                lock.unlock();
                yield "";
            }
            case "force" -> lock.forceUnlock();
            case "locked" -> lock.isLocked();
            case "held" -> lock.isHeldByCurrentThread();
            case "holds" -> lock.getHoldCount();
            case "remaining" -> lock.remainTimeToLive();
            default -> throw unknownVerb(command);
        };
    }

    private Object fenced(RFencedLock lock, List<String> command) throws InterruptedException {
        return switch (command.get(1)) {
            // Its variant with a lease ignores the lease, so that is not offered.
            case "lock" -> lock.lockAndGetToken();
            case "try" -> orDash(lock.tryLockAndGetToken(
                    number(command, 3, 0), number(command, 4, -1), MILLISECONDS));
            case "token" -> orDash(lock.getToken());
            default -> lock(lock, command);
        };
    }

    // The tryAcquire that is not deprecated is newer than the oldest Redisson here.
    @SuppressWarnings("deprecation")
    private Object semaphore(List<String> command) throws InterruptedException {
        var semaphore = client.getSemaphore(command.get(2));
        int permits = (int) number(command, 3, 1);
        return switch (command.get(1)) {
            case "set" -> semaphore.trySetPermits(permits);
            case "acquire" -> {
                semaphore.acquire(permits);
                yield "";
            }
            case "try" -> semaphore.tryAcquire(permits, number(command, 4, 0), MILLISECONDS);
            case "release" -> {
                semaphore.release(permits);
                yield "";
            }
            case "available" -> semaphore.availablePermits();
            default -> throw unknownVerb(command);
        };
    }

    private Object permits(List<String> command) throws InterruptedException {
        var semaphore = client.getPermitExpirableSemaphore(command.get(2));
        return switch (command.get(1)) {
            case "set" -> semaphore.trySetPermits((int) number(command, 3, 1));
            case "acquire" -> semaphore.acquire(number(command, 3, -1), MILLISECONDS);
            case "try" -> orDash(semaphore.tryAcquire(
                    number(command, 3, 0), number(command, 4, -1), MILLISECONDS));
            case "release" -> semaphore.tryRelease(command.get(3));
            case "available" -> semaphore.availablePermits();
            default -> throw unknownVerb(command);
        };
    }

    private Object latch(List<String> command) throws InterruptedException {
        var latch = client.getCountDownLatch(command.get(2));
        return switch (command.get(1)) {
            case "set" -> latch.trySetCount(number(command, 3, 1));
            case "down" -> {
                latch.countDown();
                yield "";
            }
            case "await" -> latch.await(number(command, 3, 0), MILLISECONDS);
            case "count" -> latch.getCount();
            default -> throw unknownVerb(command);
        };
    }

    private Object count(List<String> command) throws InterruptedException {
        var object = command.get(1);
        var name = command.get(2);
        var counter = client.<String>getBucket(command.get(3));
        long times = number(command, 4, 1);
        for (long done = 0; done < times; ++done) {
            var permit = enter(object, name);
            var before = counter.get();
            counter.set(Long.toString(before == null ? 1 : Long.parseLong(before) + 1));
            leave(object, name, permit);
        }
        return times;
    }

    private Object share(List<String> command) throws InterruptedException {
        var object = command.get(1);
        var name = command.get(2);
        long hold = number(command, 3, 1);
        long end = System.nanoTime() + MILLISECONDS.toNanos(number(command, 4, 1000));
        long times = 0;
        long longest = 0;
        while (System.nanoTime() < end) {
            long asked = System.nanoTime();
            var permit = enter(object, name);
            longest = Math.max(longest, System.nanoTime() - asked);
            Thread.sleep(hold);
            leave(object, name, permit);
            ++times;
        }
        return times + " " + longest / 1_000_000;
    }

    /** The id of the permit it took, if that is what it took. */
    private String enter(String object, String name) throws InterruptedException {
        switch (object) {
            case "semaphore" -> client.getSemaphore(name).acquire();
            case "permits" -> {
                return client.getPermitExpirableSemaphore(name).acquire();
            }
            default -> lockNamed(object, name).lock();
        }
        return null;
    }

    private void leave(String object, String name, String permit) {
        switch (object) {
            case "semaphore" -> client.getSemaphore(name).release();
            case "permits" -> client.getPermitExpirableSemaphore(name).release(permit);
            default -> lockNamed(object, name).unlock();
        }
    }

    private static long number(List<String> command, int index, long otherwise) {
        return command.size() > index ? Long.parseLong(command.get(index)) : otherwise;
    }

    private static Object orDash(Object value) {
        return value == null ? "-" : value;
    }

    private static RuntimeException unknownVerb(List<String> command) {
        return new IllegalArgumentException("no such verb: " + String.join(" ", command));
    }
}
