-- Everything the server knows of a name, for whoever wants to look. Changes nothing, and never fails
-- because of what somebody else keeps under the name.
--
-- KEYS  lock, holds, revocation, semaphore timeouts, fair queue
-- ARGV  key prefix of the readers' timeout keys
-- Returns {type of the lock's key (none, hash, string or another),
--          its PTTL,
--          its fields and values if it is a hash that may be a lock,
--          fields and values of holds,
--          record of the last revocation, or '',
--          the lock's value if it is a string (a semaphore's free permits), or '',
--          ids and ends (ms since 1970) of a semaphore's permits,
--          length of the fair queue,
--          server time in ms,
--          for each reader {owner, ms until its last hold ends, -1 without end, -2 over}}
-- include: clock
-- include: readers

local lock, holds, revocation, timeouts, fair_queue = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]

local function is(kind, key)
    return redis.call('TYPE', key).ok == kind
end

-- What somebody else keeps may be large, and to read it would keep the server from everybody. Only a
-- lock with many readers has many fields.
local function fields_of_lock()
    if redis.call('HLEN', lock) > few_readers then
        if redis.call('HGET', lock, 'mode') ~= 'read' or not looks_read(lock) then
            return {}
        end
    end
    return redis.call('HGETALL', lock)
end

local kind = redis.call('TYPE', lock).ok
local fields, readers = {}, {}
if kind == 'hash' then
    fields = fields_of_lock()
    if redis.call('HEXISTS', lock, 'mode') == 1 then
        for index, reader in ipairs(readers_among(fields)) do
            local left = reader_remaining(ARGV[1], reader.owner, reader.count)
            readers[index] = {reader.owner, left}
        end
    end
end
return {
    kind,
    redis.call('PTTL', lock),
    fields,
    is('hash', holds) and redis.call('HGETALL', holds) or {},
    is('string', revocation) and redis.call('GET', revocation) or '',
    kind == 'string' and redis.call('GET', lock) or '',
    is('zset', timeouts) and redis.call('ZRANGE', timeouts, '0', '-1', 'WITHSCORES') or {},
    is('list', fair_queue) and redis.call('LLEN', fair_queue) or 0,
    now_ms(),
    readers
}
