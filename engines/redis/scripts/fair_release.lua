-- Releases a fair lock, and hands it over to the first in line if that one asked for that and listens;
-- any other is told that it is its turn, as Redisson does. For an owner that does not have the lock:
-- leaves the line, as Redisson does when it gives up.
--
-- KEYS  lock, queue, timeouts, holds, channel base (followed by `:` and the waiter's owner), requests,
--       token counter
-- ARGV  owner, publish command, linger in ms (0: none), wait in ms (as for fair_acquire), token floor
-- Returns {1, waiters in line}, or {0, 0} when the owner did not have it. A third element says why
--         nobody could be told
-- Tells `0`, or `granted <number of the question> <first token> <number of tokens> <owner> <lock>`

local lock, queue, timeouts, holds, channel_base, requests, counter = unpack(KEYS)
local owner, publish, linger, wait, floor = unpack(ARGV)

local fields = redis.pcall('HMGET', lock, owner, 'mode')
local held = not fields.err and fields[1] and not fields[2]
-- The first in line, and whether there are others. What is no line keeps nobody from releasing.
local ahead = redis.pcall('LRANGE', queue, '0', '1')
local head, several = ahead[1], ahead[2] ~= nil

-- What happens most of the time comes first: what is defined below costs time in every run.
if held and linger == '0' and not head then
    redis.call('DEL', lock, holds)
    return {1, 0}
end

-- include: clock
-- include: telling
-- include: giving

local now = now_ms()

-- Gives the lock to the first in line, if that one wants it so and is there. Nobody waits for anything
-- but this: it has no call to spare, and is no function, which would cost as much as two calls.
local score
local request = held and linger == '0' and redis.call('HGET', requests, head)
if request then
    local ttl, count, finish, question, its_counter =
        string.match(request, '^(%d+) (%d+) (%d+) [012] (%d+) (.+)$')
    local told_at = channel_base .. ':' .. head
    if its_counter == counter and tonumber(finish) > now and hears(publish, told_at) then
        if several then
            score = redis.call('ZSCORE', timeouts, head)
            redis.call('DEL', lock, holds)
            redis.call('LPOP', queue)
            redis.call('ZREM', timeouts, head)
            redis.call('HDEL', requests, head)
        else
            redis.call('DEL', lock, holds, queue, timeouts, requests)
        end
        local counts, first = pcall(take_tokens, counter, count, tonumber(floor), 0)
        if not counts then
            tell(publish, told_at, '0')
            return {1, redis.call('LLEN', queue), untold}
        end
        local terms = string.format('%d ', first) .. count
        write_hold(lock, holds, head, ttl, terms .. string.format(' %d', now), head, '1')
        tell(publish, told_at, 'granted ' .. question .. ' ' .. terms .. ' ' .. head .. ' ' .. lock)
        if not several then
            return {1, 0, untold}
        end
    else
        request = nil
    end
end

-- include: line

local line = {queue = queue, timeouts = timeouts, requests = requests, channel_base = channel_base,
    publish = publish, patience = tonumber(wait)}

if request then
    move_up(line, later_than(line, '-inf', moved_at_once), time_left_of(score, wait, now))
    return {1, redis.call('LLEN', queue), untold}
end

-- The lock is free: it is the turn of the first who is there. Returns how many are in line.
local function call_next()
    head = next_in_line(line, now)
    if head then
        tell_waiter(line, head, '0')
    end
    return redis.call('LLEN', queue)
end

if held and linger == '0' then
    redis.call('DEL', lock, holds)
    return {1, call_next(), untold}
end

-- include: exclusive
-- include: looks

if held then
    return linger_alone(lock, owner, holds, owner, tonumber(linger))
end
local place_in_time = redis.call('ZSCORE', timeouts, owner)
strike_out(line, owner)
if place_in_time then
    move_up(line, later_than(line, place_in_time, moved_at_once), wait)
end
if redis.call('EXISTS', lock) == 0 then
    call_next()
end
return refusal(fields, 'HMGET') or not_mine(lock, owner, tonumber(linger))
