-- Releases a plain lock: gives it to one that wishes so and listens, or else tells all who wait that it
-- is free, as Redisson does; or leaves it behind for a while in nobody's name (`linger`). For an owner
-- that does not have the lock: takes back its wish.
--
-- KEYS  lock, holds, channel (followed by `:` and a client's id: where that one is told), next, token
--       counter
-- ARGV  owner, publish command, now (ms, for display); linger in ms, if any
-- Returns {1, clients told}, or {0, 0} when the owner does not have it. One that was given the lock
--         does not count: it waits no more
-- Tells `0`, or `granted <number of the question> <first token> <number of tokens> <owner>`

local lock, holds, channel, next_one, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, now, linger = ARGV[1], ARGV[2], ARGV[3], ARGV[4]

local fields = redis.pcall('HMGET', lock, owner, 'mode')
-- Not our kind of key is not our lock.
local mine = not fields.err and fields[1] and not fields[2]
local wish = redis.pcall('GET', next_one)

-- What happens most of the time comes first: what is defined below costs time in every run.
if mine and not linger and not wish then
    redis.call('DEL', lock, holds)
    return {1, redis.call(publish, channel, '0')}
end

-- include: giving

-- Gives the lock, which is free; false when this is not wanted any more, or nobody would hear of it.
-- One time in sixteen those who leave no wishes have their chance.
local function give()
    local waiter, client, ttl, count, floor, question, its_counter =
        string.match(wish, '^(([^ ]+):[^ ]+) (%d+) (%d+) (%d+) (%d+) (.+)$')
    if its_counter ~= counter or waiter == owner then
        return false
    end
    local told_at = channel .. ':' .. client
    if not hears(publish, told_at) then
        return false
    end
    local first = take_tokens(counter, count, tonumber(floor), 0)
    if math.floor(first / count) % 16 == 0 then
        return false
    end
    local terms = string.format('%d ', first) .. count .. ' '
    write_hold(lock, holds, waiter, ttl, terms .. now, waiter, '1')
    redis.call(publish, told_at, 'granted ' .. question .. ' ' .. terms .. waiter)
    return true
end

if mine and not linger then
    redis.call('DEL', lock, holds, next_one)
    if type(wish) == 'string' and give() then
        return {1, 0}
    end
    return {1, redis.call(publish, channel, '0')}
end

-- include: exclusive
-- include: wish

if mine then
    return linger_alone(lock, owner, holds, owner, tonumber(linger))
end
if is_wish_of(owner, wish_at(next_one)) then
    redis.call('DEL', next_one)
end
return not_mine(lock, owner, tonumber(linger or 0))
