-- include: shape
-- include: telling

-- The readers of a read/write lock. Each of a reader's holds has a key of its own, which expires with
-- it: <key prefix>:<owner>:rwlock_timeout:<1, 2, ...>

-- More holds than any reader has; a bound for counts that somebody else wrote.
local most_holds = 10000
-- More readers than this are not all looked at whenever one of them goes or somebody wants to write.
local few_readers = 32

-- Whether a field is a writer's, or says that a writer has let it go for later.
local function is_of_writer(field)
    return string.find(field, ':write$') or string.find(field, ':lingering$')
end

local function timeout_key(key_prefix, owner, number)
    return key_prefix .. ':' .. owner .. ':rwlock_timeout:' .. number
end

-- Milliseconds until the last of a reader's holds ends; -1 when one has no end, -2 when all are over.
local function reader_remaining(key_prefix, owner, count)
    local longest = -2
    for number = 1, math.min(count, most_holds) do
        local left = redis.call('PTTL', timeout_key(key_prefix, owner, number))
        if left == -1 then
            return -1
        end
        longest = math.max(longest, left)
    end
    return longest
end

-- The readers among a lock's fields (name, value, name, value ...).
local function readers_among(fields)
    local readers = {}
    for index = 1, #fields, 2 do
        local owner, count = fields[index], tonumber(fields[index + 1])
        -- <client>:<thread>; the readers of Redisson's transactions have something more behind it.
        if count and not is_of_writer(owner) and string.find(owner, ':%-?%d') then
            readers[#readers + 1] = {owner = owner, count = count}
        end
    end
    return readers
end

-- Whether a hash with a mode is a read/write lock: all its other fields are owners, and there are some.
-- A writer is there in the mode `write` only. Of many fields only a few are looked at.
local function is_read_write(lock, mode)
    local fields, step = nil, 1
    local count = redis.call('HLEN', lock)
    if count > few_readers then
        fields, step = redis.call('HSCAN', lock, '0', 'COUNT', '8')[2], 2
    else
        fields = redis.call('HKEYS', lock)
    end
    local written
    for index = 1, #fields, step do
        local field = fields[index]
        if field ~= 'mode' and not (is_owner(field) and is_number(redis.call('HGET', lock, field))) then
            return false
        end
        written = written or is_of_writer(field)
    end
    return count > 1 and (count > few_readers or not written == (mode ~= 'write'))
end

-- The error if a hash is no read/write lock. One whose holders we know of is one.
local function wrong_shape(lock, holds, mode)
    local wrong = wrong_mode(mode)
    if not wrong and redis.call('EXISTS', holds) == 0 and not is_read_write(lock, mode) then
        wrong = not_a_lock()
    end
    return wrong
end

-- All readers, those whose holds are over included.
local function readers_of(lock, key_prefix)
    local readers = readers_among(redis.call('HGETALL', lock))
    for _, reader in ipairs(readers) do
        reader.left = reader_remaining(key_prefix, reader.owner, reader.count)
    end
    return readers
end

-- How long each of `enough` readers has left, if there are many and so many of the first few are
-- alive; `but` does not count. Nothing when it takes a look at all of them to tell.
local function enough_of_many(lock, key_prefix, enough, but)
    if redis.call('HLEN', lock) <= few_readers then
        return nil
    end
    local alive = {}
    for _, reader in ipairs(readers_among(redis.call('HSCAN', lock, '0', 'COUNT', '8')[2])) do
        local left = reader.owner == but and -2
            or reader_remaining(key_prefix, reader.owner, reader.count)
        if left ~= -2 then
            alive[#alive + 1] = left
        end
        if #alive == enough then
            return alive
        end
    end
    return nil
end

-- How many readers are alive but for `but`, and how long the lock must live for them; nothing if there
-- are none, or one has no end.
local function readers_left(lock, key_prefix, but)
    local alive, longest, endless = 0, 1, false
    for _, reader in ipairs(readers_of(lock, key_prefix)) do
        if reader.left ~= -2 and reader.owner ~= but then
            alive = alive + 1
            longest = math.max(longest, reader.left)
            endless = endless or reader.left == -1
        end
    end
    return alive, alive > 0 and not endless and longest or nil
end

-- Takes a reader out of the lock, and tells those who wait; `zeros` go ahead of the message. Returns
-- how many were told. What may be refused comes before the first write.
local function remove_reader(lock, holds, owner, timeout, channel, key_prefix, publish, zeros)
    -- Of many the lock may live a little longer than the last: until the lease of the one that went.
    local alive, longest = 2, nil
    if redis.call('HGET', lock, 'mode') ~= 'write'
        and not enough_of_many(lock, key_prefix, 2, owner) then
        alive, longest = readers_left(lock, key_prefix, owner)
    end
    if alive == 0 then
        redis.call('DEL', lock, holds, timeout)
        return tell(publish, channel, zeros .. '0')
    end
    redis.call('DEL', timeout)
    redis.call('HDEL', lock, owner)
    redis.call('HDEL', holds, owner)
    if longest then
        redis.call('PEXPIRE', lock, longest)
    end
    if alive == 1 then
        -- The last reader may wait to become the writer. Redisson does not listen to this number.
        return tell(publish, channel, zeros .. '2')
    end
    return 0
end

-- The same for a writer, or what it has let go for later. Reads that its owner holds besides live on.
local function remove_writer(lock, holds, owner, field, channel, publish, zeros)
    if redis.call('HLEN', lock) > 2 then
        -- First, because somebody else may have put something there that refuses it.
        redis.call('HDEL', holds, owner)
        redis.call('HSET', lock, 'mode', 'read')
        redis.call('HDEL', lock, field)
    else
        redis.call('DEL', lock, holds)
    end
    return tell(publish, channel, zeros .. '1')
end
