-- Acquires a read lock: Redisson's RReadWriteLock. The writer itself becomes a reader.
--
-- KEYS  lock, holds, token counter, channel, the owner's timeout key (number 1), turn of the others,
--       if any
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), publish command,
--       smallest token wanted, 1: the owner has the lock already, the last turn of others that it
--       knows to be over (0: none; missing: there are no turns), 1: a plain lock is waited for
-- Returns {1, first token, number of tokens}
--         {-1, 0} when the owner should have the lock already and does not
--         {0, ms until the lease in the way ends, 0 = unknown}
--         {0, ms until the turn of the others ends, its number}
--         error WRONGKIND
-- include: exclusive
-- include: readers
-- include: others

local lock, holds, counter, channel, timeout, turn = unpack(KEYS)
local claim = claim_of(ARGV, ARGV[7])
local owner, publish, converts = claim.owner, ARGV[6], ARGV[8] == '1'
local waits_for_plain = ARGV[10] == '1'
-- Who waits for a plain lock is one of the others there: their turn is its own.
local over = not waits_for_plain and ARGV[9]

local function join_readers()
    local left = redis.call('PTTL', lock)
    local first = take_tokens(counter, claim.count, claim.floor, claim.least)
    redis.call('SET', timeout, '1', 'PX', claim.ttl, 'XX')  -- not there: only whether it may be set
    set_field(holds, claim.ttl, owner, hold_text(first, claim.count, claim.since))
    if left < tonumber(claim.ttl) then
        redis.call('PEXPIRE', lock, claim.ttl)
    end
    redis.call('SET', timeout, '1', 'PX', claim.ttl)
    redis.call('HSET', lock, owner, '1')
    return granted(first, claim.count)
end

-- The tokens stay, and so does a lease that is longer. The owner is the writer until its read lease is
-- there, and nobody reads before it writes no more.
local function downgrade()
    local first, count = terms_of(redis.call('HGET', holds, owner))
    if not first then
        first, count = take_tokens(counter, claim.count, claim.floor, claim.least), claim.count
    end
    local left = math.max(redis.call('PTTL', lock), claim.ttl)
    -- First, because it is never refused for want of memory, and nothing is after it.
    redis.call('PEXPIRE', lock, left)
    -- What may be refused is, before anything has changed.
    redis.call('HSET', lock, 'mode', 'write')  -- as it is
    redis.call('HDEL', lock, '')
    if redis.call(publish, channel, '1') > 0 then
        redis.call(publish, channel, '0')  -- for those of Redisson's who do not sleep yet
    end
    if redis.call('HEXISTS', holds, owner) == 0 then
        set_field(holds, left, owner, hold_text(first, count, claim.since))
    else
        extend(holds, left)
    end
    redis.call('SET', timeout, '1', 'PX', left)
    redis.call('HDEL', lock, owner .. ':write')
    redis.call('HSET', lock, 'mode', 'read', owner, '1')
    return granted(first, count)
end

local kind = redis.call('TYPE', lock).ok
if kind == 'none' then
    if converts then
        return {-1, 0}
    end
    local their_turn, state
    if over then
        their_turn, state = turn_of_others(turn, over)
    end
    if their_turn then
        return their_turn
    end
    local reply = grant_alone(claim, lock, holds, counter, {'mode', 'read', owner, '1'})
    redis.call('SET', timeout, '1', 'PX', claim.ttl)
    end_their_turn(turn, state, over)
    return reply
end
if kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local fields = redis.call('HMGET', lock, 'mode', owner, owner .. ':write')
local mode, reads, writes = fields[1], fields[2], fields[3]
if waits_for_plain and not mode then
    if redis.call('EXISTS', holds) == 0 and not is_plain(lock) then
        return not_a_lock()
    end
    return converts and {-1, 0} or {0, remaining(lock)}
end
local wrong = wrong_shape(lock, holds, mode)
if wrong then
    return wrong
end
if over then
    note_that_they_came(turn)
end
if mode == 'write' then
    if writes then
        return downgrade()
    end
    return converts and {-1, 0} or {0, remaining(lock)}
end
-- Without its timeout key the owner's lease is over, and only other readers keep the lock.
if not reads or redis.call('EXISTS', timeout) == 0 then
    return converts and {-1, 0} or join_readers()
end
if lingers(redis.call('HGET', holds, owner)) then
    return {0, remaining(timeout)}
end
local reply = grant_again(claim, lock, holds, counter)
extend(timeout, claim.ttl)
return reply
