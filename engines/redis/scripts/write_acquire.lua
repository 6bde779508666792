-- Acquires a write lock: Redisson's RReadWriteLock. The only reader becomes the writer.
--
-- KEYS  lock, holds, token counter, the owner's timeout key (number 1), turn of the others, if any
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), key prefix of the
--       readers' timeout keys, smallest token wanted, 1: the owner has the lock already,
--       the last turn of others that it knows to be over (0: none; missing: there are no turns),
--       1: a plain lock is waited for
-- Returns {1, first token, number of tokens}: fewer than wanted when others wait
--         {-1, 0} when the owner should have the lock already and does not
--         {0, ms until the first of the leases in the way ends (of many: one of them), 0 = unknown}
--         {0, ms until the turn of the others ends, its number}
--         error WRONGKIND
-- include: exclusive
-- include: readers
-- include: others

local lock, holds, counter, timeout, turn = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local claim = claim_of(ARGV, ARGV[7])
local owner, key_prefix, converts = claim.owner, ARGV[6], ARGV[8] == '1'
local waits_for_plain = ARGV[10] == '1'
-- Who waits for a plain lock is one of the others there: their turn is its own.
local over = not waits_for_plain and ARGV[9]
local writer = {'mode', 'write', owner .. ':write', '1'}

-- New tokens: others may have read, and acted on it, since the old ones were taken. A lease that is
-- longer stays so.
local function upgrade()
    local _, _, since = terms_of(redis.call('HGET', holds, owner))
    local ttl = math.max(claim.ttl, redis.call('PTTL', timeout))
    local first = take_tokens(counter, claim.count, claim.floor, claim.least)
    -- A server that refuses what is to come refuses it here: the reader keeps what it has.
    redis.call('PEXPIRE', timeout, ttl)
    redis.call('HSET', lock, 'mode', 'read')  -- as it is
    redis.call('DEL', lock, holds, timeout)
    local text = hold_text(first, claim.count, since or claim.since)
    write_hold(lock, holds, owner, ttl, text, unpack(writer))
    return granted(first, claim.count)
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
    if state and state ~= 'missed' then
        claim.count = '1'
    end
    local reply = grant_alone(claim, lock, holds, counter, writer)
    end_their_turn(turn, state, over)
    return reply
end
if kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local fields = redis.call('HMGET', lock, 'mode', owner .. ':write')
if waits_for_plain and not fields[1] then
    if redis.call('EXISTS', holds) == 0 and not is_plain(lock) then
        return not_a_lock()
    end
    return converts and {-1, 0} or {0, remaining(lock)}
end
local wrong = wrong_shape(lock, holds, fields[1])
if wrong then
    return wrong
end
if over then
    note_that_they_came(turn)
end
if fields[1] == 'write' then
    if fields[2] then
        return grant_again(claim, lock, holds, counter)
    end
    return converts and {-1, 0} or {0, remaining(lock)}
end
if converts and (redis.call('HEXISTS', lock, owner) == 0 or redis.call('EXISTS', timeout) == 0) then
    return {-1, 0}
end

local in_the_way = enough_of_many(lock, key_prefix, 1, owner)
if in_the_way then
    return {0, in_the_way[1] == -1 and 0 or math.max(in_the_way[1], 1)}
end
local held, others, shortest, dead = false, false, 0, {}
local readers = readers_of(lock, key_prefix)
if redis.call('HLEN', lock) ~= #readers + 1 then
    return not_a_lock()
end
for _, reader in ipairs(readers) do
    if reader.left == -2 then
        dead[#dead + 1] = reader.owner
    elseif reader.owner == owner and not lingers(redis.call('HGET', holds, owner)) then
        held = true
    else
        others = true
        if reader.left ~= -1 then
            local left = math.max(reader.left, 1)
            shortest = shortest == 0 and left or math.min(shortest, left)
        end
    end
end
if not others then
    return held and upgrade() or grant_alone(claim, lock, holds, counter, writer)
end
for _, reader in ipairs(dead) do
    redis.call('HDEL', lock, reader)
    redis.call('HDEL', holds, reader)
end
return {0, shortest}
