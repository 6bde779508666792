-- include: holds
-- include: clock
-- include: leases
-- include: telling

-- Redisson's number for permits without an end.
local never = 922337203685477
local id_length = 16

local function ids_in(text)
    local ids = {}
    for start = 1, #text, id_length do
        ids[#ids + 1] = string.sub(text, start, start + id_length - 1)
    end
    return ids
end

-- The ids that a request names, or else those that were written down with the hold.
local function ids_of(named, hold)
    if named == '' and type(hold) == 'string' then
        local _, written = permits_of(hold)
        named = written
    end
    return ids_in(named)
end

-- A server that is out of memory refuses a script's first write if that might need more (ZADD), and
-- none after it. This one needs nothing and changes nothing.
local function write_nothing(timeouts)
    redis.call('ZREM', timeouts, '')
end

-- What we know goes by itself: a month after the semaphore was last used, not before its permits end.
local month = 2592000000

local function keep_holds(holds, ttl)
    extend(holds, math.max(ttl, month))
end

local function write_permits(holds, ttl, owner, text)
    set_field(holds, math.max(ttl, month), owner, text)
end

-- Sets the ends of permits, except of those that end later anyway.
local function prolong(timeouts, ids, finish)
    for _, id in ipairs(ids) do
        local current = redis.call('ZSCORE', timeouts, id)
        if current and tonumber(current) < finish then
            redis.call('ZADD', timeouts, 'XX', finish, id)
        end
    end
end

-- Whether there is a counter that permits can be put back into. A counter that is gone stays so: only
-- an acquisition knows the limit. To be asked before the ends of permits are removed: without the
-- permission to count they would be gone for ever.
local function takes_back(semaphore, timeouts)
    write_nothing(timeouts)
    if redis.call('EXISTS', semaphore) == 0 then
        return false
    end
    local same = redis.pcall('INCRBY', semaphore, '0')
    if type(same) == 'table' and not string.find(same.err, 'WRONGTYPE', 1, true)
        and not string.find(same.err, 'not an integer', 1, true) then
        redis.call('INCRBY', semaphore, '0')  -- refused: says so to the client
    end
    return type(same) == 'number'
end

-- Puts permits back if there is a counter, and returns how many clients were told. `zeros` go ahead of
-- the message.
local function give_back(semaphore, channel, publish, counts, count, zeros)
    local sum = counts and redis.pcall('INCRBY', semaphore, count)
    local free = type(sum) == 'number' and sum or count
    local message = zeros .. string.format('%.0f', free)
    return tell(publish, channel, message), #message
end

-- Forgets the holds whose permits are in `gone`.
local function forget_holds(holds, gone)
    local fields = redis.call('HGETALL', holds)
    for index = 1, #fields, 2 do
        local _, ids = permits_of(fields[index + 1])
        if gone[string.sub(ids, 1, id_length)] then
            redis.call('HDEL', holds, fields[index])
        end
    end
end

-- Whether the key for the ends of permits is somebody else's. Looks at two members, no more.
local function are_foreign(timeouts)
    local kind = redis.call('TYPE', timeouts).ok
    if kind ~= 'zset' then
        return kind ~= 'none'
    end
    local first = redis.call('ZRANGE', timeouts, '0', '0')[1]
    local last = redis.call('ZRANGE', timeouts, '-1', '-1')[1]
    return #first ~= id_length or #last ~= id_length
end

local function not_permits()
    return wrong_kind('the name is not that of a semaphore: the key beside it that ends in :timeout ' ..
        'holds no permits')
end

-- Takes back permits that have expired: at most so many, so that the server is never kept busy for
-- long, and those with `ids` in any case.
local most_reclaimed = 256

local function reclaim(semaphore, timeouts, channel, holds, publish, now, ids)
    local expired = redis.call('ZRANGEBYSCORE', timeouts, '-inf', now, 'LIMIT', '0',
        math.max(most_reclaimed, #ids))
    if not expired[1] then
        return
    end
    local counts = takes_back(semaphore, timeouts)
    local gone, removed = {}, 0
    for _, id in ipairs(expired) do
        removed = removed + redis.call('ZREM', timeouts, id)
        gone[id] = true
    end
    if #expired >= most_reclaimed then
        for _, id in ipairs(ids) do
            local finish = redis.call('ZSCORE', timeouts, id)
            if finish and tonumber(finish) <= now then
                removed = removed + redis.call('ZREM', timeouts, id)
                gone[id] = true
            end
        end
    end
    give_back(semaphore, channel, publish, counts, removed, '')
    forget_holds(holds, gone)
end
