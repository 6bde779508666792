-- Acquires a plain lock: a hash at the lock's name with the owner's field, as Redisson's RLock.
--
-- KEYS  lock, holds, token counter
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), smallest token
--       wanted
-- Returns {1, first token, number of tokens}
--         {0, ms until the lease in the way ends, 0 = unknown}
--         error WRONGKIND
-- include: exclusive

local lock, holds, counter = KEYS[1], KEYS[2], KEYS[3]
local claim = claim_of(ARGV, ARGV[6])

local kind = redis.call('TYPE', lock).ok
if kind == 'none' then
    return grant_alone(claim, lock, holds, counter, {claim.owner, 1})
end
if kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local fields = redis.call('HMGET', lock, claim.owner, 'mode')
if fields[2] then
    return wrong_kind('the name is in use as a read/write lock')
end
if fields[1] then
    return grant_again(claim, lock, holds, counter)
end
return {0, remaining(lock)}
