-- Writes a lock that nobody has: the fields into its hash, the hold beside it.
local function write_hold(lock, holds, owner, ttl, text, ...)
    redis.call('HSET', lock, ...)
    redis.call('PEXPIRE', lock, ttl)
    redis.call('HSET', holds, owner, text)
    redis.call('PEXPIRE', holds, ttl)
end
