-- Releases a write lock, or leaves it behind for a while in nobody's name (`linger`).
--
-- KEYS  lock, holds, channel
-- ARGV  owner, publish command, linger in ms (0: none)
-- Returns {1, clients told}, or {0, 0} when the owner does not have it
-- include: exclusive
-- include: readers

local lock, holds, channel = KEYS[1], KEYS[2], KEYS[3]
local owner, publish, linger = ARGV[1], ARGV[2], tonumber(ARGV[3])
local field = owner .. ':write'

local fields = redis.pcall('HMGET', lock, 'mode', field)
if fields.err or fields[1] ~= 'write' or not fields[2] then
    return not_mine(lock, owner, linger)
end
if linger > 0 then
    return linger_alone(lock, field, holds, owner, linger)
end
redis.call('HDEL', lock, field)
redis.call('HDEL', holds, owner)
return {1, after_a_writer(lock, holds, channel, publish)}
