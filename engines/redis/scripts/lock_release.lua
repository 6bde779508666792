-- Releases a plain lock: gives it to the first that wishes so and listens, or else tells all who wait
-- that it is free, as Redisson does; or leaves it behind for a while in nobody's name (`linger`). For
-- an owner that does not have the lock: takes back its wish.
--
-- KEYS  lock, holds, channel, list of wishes, token counter
-- ARGV  owner, publish command, now (ms, for display), token floor, channels of grants (followed by `:`
--       and a client's id: where that one is told); linger in ms, if any
-- Returns {1, clients told}, or {0, 0} when the owner does not have it. One that was given the lock
--         does not count: it waits no more
-- Tells `0`, or `granted <number of the question> <first token> <number of tokens> <owner> <lock>`

local lock, holds, channel, wishes, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, now, floor, grants, linger = unpack(ARGV)

local fields = redis.pcall('HMGET', lock, owner, 'mode')
-- Not our kind of key is not our lock.
local mine = not fields.err and fields[1] and not fields[2]
-- The first, and whether there are others.
local waiting = redis.pcall('LRANGE', wishes, '0', '1')

-- What happens most of the time comes first: what is defined below costs time in every run.
if mine and not linger and not waiting[1] then
    redis.call('DEL', lock, holds)
    return {1, redis.call(publish, channel, '0')}
end

-- include: clock
-- include: giving

-- Gives the lock to the first that still wants it and would hear of it. One time in sixteen everybody
-- has a chance, also those who leave no wishes. No function: it would cost as much as two calls.
if mine and not linger then
    local several = waiting[2] ~= nil
    if several then
        redis.call('DEL', lock, holds)
    else
        redis.call('DEL', lock, holds, wishes)
    end
    while waiting[1] do
        local waiter, client, ttl, count, alive_until, question, its_counter =
            string.match(waiting[1], '^(([^ ]+):[^ ]+) (%d+) (%d+) (%d+) (%d+) (.+)$')
        local told_at = grants .. ':' .. (client or '')
        -- A list of one goes in time by itself.
        local alive = not several or now_ms() < tonumber(alive_until or 0)
        if its_counter == counter and waiter ~= owner and alive and hears(publish, told_at) then
            -- The floor of the one that releases: its connection is to the server as it is now, the
            -- waiter's wish may come from before a loss of data.
            local first = take_tokens(counter, count, tonumber(floor), 0)
            if math.floor(first / count) % 16 == 0 then
                break
            end
            if several then
                redis.call('LPOP', wishes)
            end
            local terms = string.format('%d ', first) .. count .. ' '
            write_hold(lock, holds, waiter, ttl, terms .. now, waiter, '1')
            redis.call(publish, told_at,
                'granted ' .. question .. ' ' .. terms .. waiter .. ' ' .. lock)
            return {1, 0}
        end
        redis.call('LPOP', wishes)
        waiting = redis.call('LRANGE', wishes, '0', '1')
    end
    return {1, redis.call(publish, channel, '0')}
end

-- include: exclusive
-- include: wishes

if mine then
    return linger_alone(lock, owner, holds, owner, tonumber(linger))
end
take_back_wish(owner, wishes)
return not_mine(lock, owner, tonumber(linger or 0))
