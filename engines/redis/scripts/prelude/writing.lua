-- include: leases

-- Writes a lock that nobody has: the fields into its hash, the hold beside it.
local function write_hold(lock, holds, owner, ttl, text, ...)
    redis.call('HSET', lock, ...)
    redis.call('HSET', holds, owner, text)
    set_end(lock, ttl, holds)
    redis.call('PEXPIRE', holds, ttl)
end
