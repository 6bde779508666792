-- Everything the server knows of a name, for whoever wants to look. Changes nothing. Takes little time
-- whatever is there: somebody else's key is not read, and of a lock with very many holders only some
-- are.
--
-- Somebody else's key is no error: monitoring counts errors, and a list looks at very many keys.
--
-- KEYS  lock, holds, revocation, semaphore timeouts, fair queue, mark of a latch
-- ARGV  key prefix of the readers' timeout keys
-- Returns {type of the lock's key (none, hash or string),
--          its PTTL,
--          its fields and values if it is a hash,
--          fields and values of holds,
--          record of the last revocation, or '',
--          the lock's value if it is a string (a semaphore's free permits), or '',
--          ids and ends (ms since 1970) of a semaphore's permits that are out,
--          length of the fair queue,
--          server time in ms,
--          for each reader {owner, ms until its last hold ends, -1 without end, -2 over},
--          whether it is marked as a latch (1, 0)}
--         {'foreign', why it is not a lock}
-- include: permits
-- include: readers
-- include: numbers

local lock, holds, revocation, timeouts, fair_queue, latch_mark = unpack(KEYS)
local most_shown = 1024

local function is(kind, key)
    return redis.call('TYPE', key).ok == kind
end

local function foreign(problem)
    return {'foreign', problem.err}
end

local function holds_a(kind)
    return foreign(wrong_kind('the name is not that of a lock: it holds a ' .. kind))
end

local function some_of(hash)
    if redis.call('HLEN', hash) > most_shown then
        return redis.call('HSCAN', hash, '0', 'COUNT', most_shown)[2]
    end
    return redis.call('HGETALL', hash)
end

local kind, now = redis.call('TYPE', lock).ok, now_ms()
local fields, readers, free = {}, {}, ''
if kind == 'hash' then
    local mode = redis.call('HGET', lock, 'mode')
    local wrong = mode and wrong_mode(mode)
    if not wrong and not (mode and is_read_write(lock, mode) or not mode and is_plain(lock)) then
        wrong = not_a_lock()
    end
    if wrong then
        return foreign(wrong)
    end
    fields = some_of(lock)
    for index, reader in ipairs(mode and readers_among(fields) or {}) do
        readers[index] = {reader.owner, reader_remaining(ARGV[1], reader.owner, reader.count)}
    end
elseif kind == 'string' then
    free = number_at(lock)
    if not free then
        return holds_a('string that is no number')
    end
    free = string.format('%.0f', free)
elseif kind ~= 'none' then
    return holds_a(kind)
end
local has_permits = kind ~= 'hash' and is('zset', timeouts)
if has_permits and are_foreign(timeouts) then
    if kind == 'string' then
        return foreign(not_permits())
    end
    has_permits = false  -- the name is free for every kind of lock but a semaphore
end
return {
    kind,
    redis.call('PTTL', lock),
    fields,
    is('hash', holds) and some_of(holds) or {},
    is('string', revocation) and redis.call('GET', revocation) or '',
    free,
    has_permits and redis.call('ZRANGEBYSCORE', timeouts, string.format('(%.0f', now), '+inf',
        'WITHSCORES', 'LIMIT', '0', most_shown) or {},
    is('list', fair_queue) and redis.call('LLEN', fair_queue) or 0,
    now,
    readers,
    redis.call('EXISTS', latch_mark)
}
