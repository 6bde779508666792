-- Releases a fair lock, and gives it to the first in line if that one wishes so and listens; any other
-- is told that it is its turn, as Redisson does. For an owner that does not have the lock: leaves the
-- line, as Redisson does when it gives up.
--
-- KEYS  lock, queue, timeouts, holds, channel base (followed by `:` and the waiter's owner), wishes,
--       token counter
-- ARGV  owner, publish command, linger in ms (0: none), wait in ms (as for fair_acquire), token floor
-- Returns {1, waiters in line}, or {0, 0} when the owner did not have it
-- Tells `0`, or `granted <number of the question> <first token> <number of tokens>`
-- include: exclusive
-- include: clock
-- include: line
-- include: hearing

local lock, holds, channel_base, counter = KEYS[1], KEYS[4], KEYS[5], KEYS[7]
local line = {queue = KEYS[2], timeouts = KEYS[3], wishes = KEYS[6]}
local owner, publish, linger, wait = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local floor = ARGV[5]

-- Gives the lock, which is free, to the first in line; false if that one does not want it so. Nobody
-- waits for anything but this: it has no call to spare.
local function give_to_first(now)
    local head = redis.call('LINDEX', line.queue, 0)
    local wish = head and redis.call('HGET', line.wishes, head)
    if not wish then
        return false
    end
    local ttl, count, alive_until, question, its_counter =
        string.match(wish, '^(%d+) (%d+) (%d+) (%d+) (.+)$')
    if its_counter ~= counter or tonumber(alive_until) <= now or
        not hears(publish, channel_base .. ':' .. head) then
        return false
    end
    redis.call('LPOP', line.queue)
    redis.call('ZREM', line.timeouts, head)
    redis.call('HDEL', line.wishes, head)
    if redis.call('LLEN', line.queue) > 0 then
        move_up(line, redis.call('ZRANGE', line.timeouts, 0, -1), wait)
    end
    local claim = claim_of({head, ttl, count, floor, string.format('%d', now)})
    local first = take_tokens(counter, count, claim.floor, claim.least)
    write_hold(claim, lock, holds, {head, '1'}, first)
    tell(publish, channel_base, head, string.format('granted %s %d %s', question, first, count))
    return true
end

-- The lock is free: it is the turn of the first in line.
local function serve_next()
    local now = now_ms()
    if give_to_first(now) then
        return
    end
    local head = first_alive(line, now)
    -- Those who were before it may have been dead.
    if head and not give_to_first(now) then
        tell(publish, channel_base, head, '0')
    end
end

local fields = redis.pcall('HMGET', lock, owner, 'mode')
if not fields.err and fields[1] and not fields[2] then
    if linger > 0 then
        return linger_alone(lock, owner, holds, owner, linger)
    end
    redis.call('DEL', lock, holds)
    serve_next()
    return {1, redis.call('LLEN', line.queue)}
end

local behind, queued = {}, false
for _, waiter in ipairs(redis.call('LRANGE', line.queue, 0, -1)) do
    if waiter == owner then
        queued = true
    elseif queued then
        behind[#behind + 1] = waiter
    end
end
if queued then
    strike_out(line, owner)
    move_up(line, behind, wait)
end
if redis.call('EXISTS', lock) == 0 then
    redis.call('DEL', holds)
    serve_next()
end
return not_mine(lock, owner, linger)
