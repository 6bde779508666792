-- Releases a plain lock, or leaves it behind for a while in nobody's name (`linger`).
--
-- KEYS  lock, holds, channel
-- ARGV  owner, publish command, linger in ms (0: none)
-- Returns {1, clients told}, or {0, 0} when the owner does not have it
-- include: exclusive

local lock, holds, channel = KEYS[1], KEYS[2], KEYS[3]
local owner, publish, linger = ARGV[1], ARGV[2], tonumber(ARGV[3])

-- Not our kind of key is not our lock.
local fields = redis.pcall('HMGET', lock, owner, 'mode')
if fields.err or not fields[1] or fields[2] then
    return not_mine(lock, owner, linger)
end
if linger > 0 then
    return linger_alone(lock, owner, holds, owner, linger)
end
redis.call('DEL', lock, holds)
return {1, redis.call(publish, channel, '0')}
