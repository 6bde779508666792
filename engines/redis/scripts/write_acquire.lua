-- Acquires a write lock: Redisson's RReadWriteLock. The only reader becomes the writer.
--
-- KEYS  lock, holds, token counter, the owner's timeout key (number 1)
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), key prefix of the
--       readers' timeout keys, smallest token wanted, 1: the owner has the lock already
-- Returns {1, first token, number of tokens}
--         {-1, 0} when the owner should have the lock already and does not
--         {0, ms until the first of the leases in the way ends (of many: one of them), 0 = unknown}
--         error WRONGKIND
-- include: exclusive
-- include: readers

local lock, holds, counter, timeout = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local claim = claim_of(ARGV, ARGV[7])
local owner, key_prefix, converts = claim.owner, ARGV[6], ARGV[8] == '1'
local writer = {'mode', 'write', owner .. ':write', '1'}

-- New tokens: others may have read, and acted on it, since the old ones were taken. A lease that is
-- longer stays so.
local function upgrade()
    local _, _, since = terms_of(redis.call('HGET', holds, owner))
    local ttl = math.max(claim.ttl, redis.call('PTTL', timeout))
    local first = take_tokens(counter, claim.count, claim.floor, claim.least)
    -- A server that refuses to set an end refuses it here: the reader keeps what it has.
    redis.call('PEXPIRE', timeout, ttl)
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
    return grant_alone(claim, lock, holds, counter, writer)
end
if kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local fields = redis.call('HMGET', lock, 'mode', owner .. ':write')
local wrong = wrong_mode(fields[1])
if wrong then
    return wrong
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
local mine, others, shortest, dead = false, false, 0, {}
local readers = readers_of(lock, key_prefix)
if redis.call('HLEN', lock) ~= #readers + 1 then
    return wrong_kind('the name is not that of a lock: its hash has other fields than readers')
end
for _, reader in ipairs(readers) do
    if reader.left == -2 then
        dead[#dead + 1] = reader.owner
    elseif reader.owner == owner and not lingers(redis.call('HGET', holds, owner)) then
        mine = true
    else
        others = true
        if reader.left ~= -1 then
            local left = math.max(reader.left, 1)
            shortest = shortest == 0 and left or math.min(shortest, left)
        end
    end
end
if not others then
    return mine and upgrade() or grant_alone(claim, lock, holds, counter, writer)
end
for _, reader in ipairs(dead) do
    redis.call('HDEL', lock, reader)
    redis.call('HDEL', holds, reader)
end
return {0, shortest}
