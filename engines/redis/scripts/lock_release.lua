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
-- include: exclusive
-- include: wish
-- include: hearing

local lock, holds, channel, next_one, counter = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local owner, publish, linger = ARGV[1], ARGV[2], tonumber(ARGV[4] or 0)

-- Gives the lock, which is free; false when this is not wanted any more, or nobody would hear of it.
-- One time in sixteen those who leave no wishes have their chance.
local function give(wish)
    local waiter, client, ttl, count, floor, question, its_counter =
        string.match(wish, '^(([^ ]+):[^ ]+) (%d+) (%d+) (%d+) (%d+) (.+)$')
    if its_counter ~= counter or waiter == owner then
        return false
    end
    local told_at = channel .. ':' .. client
    if not hears(publish, told_at) then
        return false
    end
    local claim = claim_of({waiter, ttl, count, floor, ARGV[3]})
    local first = take_tokens(counter, count, claim.floor, claim.least)
    if math.floor(first / count) % 16 == 0 then
        return false
    end
    write_hold(claim, lock, holds, {waiter, '1'}, first)
    redis.call(publish, told_at, string.format('granted %s %d %s %s', question, first, count, waiter))
    return true
end

-- Not our kind of key is not our lock.
local fields = redis.pcall('HMGET', lock, owner, 'mode')
local wish = wish_at(next_one)
if fields.err or not fields[1] or fields[2] then
    if is_wish_of(owner, wish) then
        redis.call('DEL', next_one)
    end
    return not_mine(lock, owner, linger)
end
if linger > 0 then
    return linger_alone(lock, owner, holds, owner, linger)
end
if not wish then
    redis.call('DEL', lock, holds)
elseif redis.call('DEL', lock, holds, next_one) and give(wish) then
    return {1, 0}
end
return {1, redis.call(publish, channel, '0')}
