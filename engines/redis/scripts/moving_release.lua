-- Releases a lock of any kind while its slot moves to another server of a cluster. The lock's other
-- keys may be on the other server: nobody is judged by them, and nobody is given the lock.
--
-- KEYS  lock
-- ARGV  owner, publish command, linger in ms (0: none), channel (empty: none)
-- Returns {1, clients told}
--         {2, clients told} for a reader, whose timeout key remains (it is also what lingers)
--         {0, 0} when the owner does not have it
-- include: exclusive
-- include: looks

local lock = KEYS[1]
local owner, publish, linger, channel = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]

local fields = redis.pcall('HMGET', lock, 'mode', owner, owner .. ':write')
if fields.err or not (fields[2] or fields[3]) then
    return refusal(fields, 'HMGET') or not_mine(lock, owner, linger)
end

local function tell(message)
    local told = channel ~= '' and redis.pcall(publish, channel, message)
    return type(told) == 'number' and told or 0
end

if fields[2] and fields[1] and not fields[3] then
    if linger > 0 then
        extend(lock, linger)
        return {2, 0}
    end
    redis.call('HDEL', lock, owner)
    if redis.call('HLEN', lock) > 1 then
        return {2, 0}
    end
    redis.call('DEL', lock)
    return {2, tell('0')}
end

local field = fields[3] and owner .. ':write' or owner
if linger > 0 then
    -- In this order: a key that is gone cannot be made anew on the server that it leaves, and a server
    -- without memory refuses HSET as a script's first write. What may be refused is tried first, in
    -- ways that change nothing.
    redis.call('HDEL', lock, owner .. ':lingering')
    redis.call('HSET', lock, field, redis.call('HGET', lock, field))
    redis.call('PEXPIRE', lock, linger)
    redis.call('HSET', lock, owner .. ':lingering', '1')
    redis.call('HDEL', lock, field)
    return {1, 0}
end
if not fields[1] then
    redis.call('DEL', lock)
    return {1, tell('0')}
end
redis.call('HDEL', lock, field)
if redis.call('HLEN', lock) > 1 then
    redis.call('HSET', lock, 'mode', 'read')
else
    redis.call('DEL', lock)
end
local told = tell('1')
if told > 0 then
    tell('0')  -- for those of Redisson's who do not sleep yet
end
return {1, told}
