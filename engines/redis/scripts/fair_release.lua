-- Releases a fair lock and tells the first in line; or, for one that does not have it, leaves the
-- line, as Redisson does when it gives up.
--
-- KEYS  lock, queue, timeouts, holds, channel base (followed by `:` and the waiter's owner)
-- ARGV  owner, publish command, linger in ms (0: none), wait in ms (as for fair_acquire)
-- Returns {1, waiters in line}, or {0, 0} when the owner did not have it
-- include: exclusive
-- include: clock
-- include: line

local lock, queue, timeouts, holds, channel_base = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, linger, wait = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])

local fields = redis.pcall('HMGET', lock, owner, 'mode')
if not fields.err and fields[1] and not fields[2] then
    if linger > 0 then
        return linger_alone(lock, owner, holds, owner, linger)
    end
    redis.call('DEL', lock, holds)
    tell(publish, channel_base, (first_alive(queue, timeouts, now_ms())))
    return {1, redis.call('LLEN', queue)}
end

local behind, queued = {}, false
for _, waiter in ipairs(redis.call('LRANGE', queue, 0, -1)) do
    if waiter == owner then
        queued = true
    elseif queued then
        behind[#behind + 1] = waiter
    end
end
if queued then
    redis.call('LREM', queue, 0, owner)
    redis.call('ZREM', timeouts, owner)
    move_up(timeouts, behind, wait)
end
if redis.call('EXISTS', lock) == 0 then
    tell(publish, channel_base, (first_alive(queue, timeouts, now_ms())))
end
return not_mine(lock, owner, linger)
