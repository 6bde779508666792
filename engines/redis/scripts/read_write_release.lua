-- Releases what an owner has of a read/write lock, or keeps it for a while in nobody's name
-- (`linger`). Whether the owner reads or writes is for the lock to say: after a lost answer to an
-- upgrade or a downgrade its client does not know. The share of another reader is not touched. A
-- lingering reader keeps its field and its timeout key, so that Redisson respects it, and is marked
-- only beside the lock.
--
-- KEYS  lock, holds, channel, the owner's timeout key (number 1)
-- ARGV  owner, publish command, linger in ms (0: none), key prefix of the readers' timeout keys
-- Returns {1, clients told}, or {0, 0} when the owner does not have it
-- include: exclusive
-- include: readers
-- include: looks

local lock, holds, channel, timeout = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local owner, publish, linger, key_prefix = ARGV[1], ARGV[2], tonumber(ARGV[3]), ARGV[4]
local written = owner .. ':write'

local fields = redis.pcall('HMGET', lock, 'mode', owner, written)
if fields.err or not fields[1] then
    return refusal(fields, 'HMGET') or {0, 0}
end
if fields[1] == 'write' and fields[3] then
    if linger > 0 then
        return linger_alone(lock, written, holds, owner, linger)
    end
    redis.call('HDEL', lock, written)
    redis.call('HDEL', holds, owner)
    return {1, after_a_writer(lock, holds, channel, publish)}
end
if not fields[2] then
    return not_mine(lock, owner, linger)
end
local hold = redis.call('HGET', holds, owner)
local alive = redis.call('EXISTS', timeout) == 1
if alive and lingers(hold) then
    return {linger > 0 and 1 or 0, 0}
end
if alive and linger > 0 then
    redis.call('PEXPIRE', timeout, linger)
    set_field(holds, linger, owner, as_lingering(hold))
    outlive_readers(lock, key_prefix)
    return {1, 0}
end
redis.call('HDEL', lock, owner)
redis.call('DEL', timeout)
redis.call('HDEL', holds, owner)
local told = after_a_reader(lock, holds, channel, key_prefix, publish)
if not alive then
    return {0, 0}
end
return {1, told}
