-- Takes a hold away from its owner by force, whatever kind it is of, also one that lingers. Wakes those
-- who wait as a release would, and tells the owner's client.
--
-- KEYS  lock, holds, revocation, lock channel, read/write channel, semaphore channel,
--       semaphore timeouts, fair queue, the owner's timeout key (number 1; a foreign reader's others
--       are derived)
-- ARGV  owner, first token of the hold (0: one that holdfast knows nothing of), record to keep (starts
--       with the owner, a blank, the token and a blank), ms for which to keep it, publish command,
--       client channel, fair channel base, key prefix of the readers' timeout keys
-- Returns {1}, or {0} when there is no such hold
-- include: permits
-- include: readers

local lock, holds, revocation = KEYS[1], KEYS[2], KEYS[3]
local lock_channel, read_write_channel, semaphore_channel = KEYS[4], KEYS[5], KEYS[6]
local timeouts, fair_queue = KEYS[7], KEYS[8]
local owner, token, record, keep_for, publish = ARGV[1], ARGV[2], ARGV[3], ARGV[4], ARGV[5]
local client_channel, fair_channel_base, key_prefix = ARGV[6], ARGV[7], ARGV[8]

local function revoke_lock()
    local fields = redis.call('HMGET', lock, owner, owner .. ':lingering')
    if not fields[1] and not fields[2] then
        return false
    end
    may_remove(holds)
    redis.call('DEL', lock, holds)
    tell(publish, lock_channel, '0')
    local head = redis.pcall('LINDEX', fair_queue, '0')
    if type(head) == 'string' then
        tell(publish, fair_channel_base .. ':' .. head, '0')
    end
    return true
end

local function revoke_reader()
    local count = tonumber(redis.call('HGET', lock, owner) or '')
    if not count or reader_remaining(key_prefix, owner, count) == -2 then
        return false
    end
    for number = 1, math.min(count, most_holds) do
        redis.call('DEL', timeout_key(key_prefix, owner, number))
    end
    return true
end

local function revoke_reader_or_writer()
    local writes = redis.call('HMGET', lock, owner .. ':write', owner .. ':lingering')
    local field = writes[1] and owner .. ':write' or writes[2] and owner .. ':lingering'
    local read = revoke_reader()
    if field then
        redis.call('HDEL', lock, owner)
        if remove_writer(lock, holds, owner, field, read_write_channel, publish, '') > 0 then
            tell(publish, read_write_channel, '0')  -- for Redisson's who do not sleep yet
        end
        return true
    end
    if read then
        remove_reader(lock, holds, owner, KEYS[9], read_write_channel, key_prefix, publish, '')
    end
    return read
end

-- The id of a permit that holdfast knows nothing of is written as the owner's uuid.
local function foreign_permit()
    local digits = string.gsub(string.sub(owner, 1, 36), '-', '')
    if #digits ~= 2 * id_length or string.find(digits, '%X') then
        return ''
    end
    return (string.gsub(digits, '..', function(pair) return string.char(tonumber(pair, 16)) end))
end

local function revoke_permits(hold)
    local all_ids = foreign_permit()
    if hold then
        local _, ids = permits_of(hold)
        all_ids = ids
    end
    local counts, now, removed = takes_back(lock, timeouts), now_ms(), 0
    for _, id in ipairs(ids_in(all_ids)) do
        if tonumber(redis.call('ZSCORE', timeouts, id) or 0) > now then
            removed = removed + redis.call('ZREM', timeouts, id)
        end
    end
    if removed == 0 then
        return false
    end
    redis.call('HDEL', holds, owner)
    give_back(lock, semaphore_channel, publish, counts, removed, '')
    return true
end

local function revoke(hold)
    local kind = redis.call('TYPE', lock).ok
    if kind ~= 'hash' then
        return redis.call('TYPE', timeouts).ok == 'zset' and revoke_permits(hold)
    end
    if redis.call('HEXISTS', lock, 'mode') == 1 then
        return revoke_reader_or_writer()
    end
    return revoke_lock()
end

-- Ends the script if its user may not do one of the things to come: nothing has changed by now. Done
-- to a key that is not there, they do nothing. The first of them keeps a server that is out of memory
-- from refusing those that follow.
local function check_permissions()
    local nothing = timeout_key(key_prefix, owner, 0)
    redis.call('DEL', nothing)
    redis.call('HDEL', nothing, '')
    redis.call('ZREM', nothing, '')
    redis.call('PEXPIRE', nothing, '1')
    redis.call('PTTL', nothing)
    redis.call('EXISTS', nothing)
    redis.call('HLEN', nothing)
    redis.call('HGETALL', nothing)
    redis.call('HSCAN', nothing, '0')
    redis.call('SET', nothing, '', 'XX')
end

local hold = redis.call('HGET', holds, owner)
local first_token = hold and string.match(hold, '^%d+') or '0'
if first_token ~= token then
    return {0}
end
check_permissions()
redis.call('PUBLISH', client_channel, '1')
if not revoke(hold) then
    return {0}
end
redis.call('SET', revocation, record, 'PX', keep_for)
return {1}
