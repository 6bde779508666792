-- Releases a fair lock, and gives it to the first in line if that one wishes so and listens; any other
-- is told that it is its turn, as Redisson does. For an owner that does not have the lock: leaves the
-- line, as Redisson does when it gives up.
--
-- KEYS  lock, queue, timeouts, holds, channel base (followed by `:` and the waiter's owner), wishes,
--       token counter
-- ARGV  owner, publish command, linger in ms (0: none), wait in ms (as for fair_acquire), token floor
-- Returns {1, waiters in line}, or {0, 0} when the owner did not have it
-- Tells `0`, or `granted <number of the question> <first token> <number of tokens>`

local lock, queue, timeouts, holds, channel_base, wishes, counter = unpack(KEYS)
local owner, publish, linger, wait, floor = unpack(ARGV)

local fields = redis.pcall('HMGET', lock, owner, 'mode')
local mine = not fields.err and fields[1] and not fields[2]
-- What is no line keeps nobody from releasing.
local head = redis.pcall('LINDEX', queue, 0)
head = type(head) == 'string' and head

-- What happens most of the time comes first: what is defined below costs time in every run.
if mine and linger == '0' and not head then
    redis.call('DEL', lock, holds)
    return {1, 0}
end

-- include: clock
-- include: giving
-- include: line

local line = {queue = queue, timeouts = timeouts, wishes = wishes}
local now = now_ms()

-- Gives the lock, which is free, to the first in line; nil if that one does not want it so. Nobody
-- waits for anything but this: it has no call to spare. Returns how many are left in line.
local function give_to_first()
    local wish = head and redis.call('HGET', wishes, head)
    if not wish then
        return nil
    end
    local ttl, count, alive_until, question, its_counter =
        string.match(wish, '^(%d+) (%d+) (%d+) (%d+) (.+)$')
    local told_at = channel_base .. ':' .. head
    if its_counter ~= counter or tonumber(alive_until) <= now or not hears(publish, told_at) then
        return nil
    end
    local left = redis.call('LLEN', queue) - 1
    if left == 0 then
        redis.call('DEL', lock, holds, queue, timeouts, wishes)
    else
        redis.call('DEL', lock, holds)
        redis.call('LPOP', queue)
        redis.call('ZREM', timeouts, head)
        redis.call('HDEL', wishes, head)
        move_up(line, redis.call('ZRANGE', timeouts, 0, -1), wait)
    end
    local first = take_tokens(counter, count, tonumber(floor), 0)
    local terms = string.format('%d ', first) .. count
    write_hold(lock, holds, head, ttl, terms .. string.format(' %d', now), head, '1')
    redis.call(publish, told_at, 'granted ' .. question .. ' ' .. terms)
    return left
end

-- The lock is free, or about to be: it is the turn of the first in line. Returns how many are left.
local function serve_next()
    local left = give_to_first()
    if left then
        return left
    end
    redis.call('DEL', lock, holds)
    -- Those who are before it may be dead.
    local first = head
    head = first_alive(line, now)
    if head ~= first then
        left = give_to_first()
    end
    if head and not left then
        tell(publish, channel_base, head, '0')
    end
    return left or redis.call('LLEN', queue)
end

if mine and linger == '0' then
    return {1, serve_next()}
end

-- include: exclusive

if mine then
    return linger_alone(lock, owner, holds, owner, tonumber(linger))
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
    strike_out(line, owner)
    move_up(line, behind, wait)
    head = redis.call('LINDEX', queue, 0)
end
if redis.call('EXISTS', lock) == 0 then
    serve_next()
end
return not_mine(lock, owner, tonumber(linger))
