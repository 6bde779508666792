-- Acquires a plain lock: a hash at the lock's name with the owner's field, as Redisson's RLock. One
-- that must wait may leave a wish to be given the lock when it is released.
--
-- KEYS  lock, holds, token counter; with a wish: list of wishes
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display); if any: smallest
--       token wanted; with a wish: number of the question, how long the wish lasts in ms
-- Returns {1, first token, number of tokens}
--         {0, ms until the lease in the way ends, 0 = unknown}
--         error WRONGKIND
-- include: exclusive
-- include: wishes
-- include: clock

local lock, holds, counter, wishes = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local claim = claim_of(ARGV, ARGV[6])
local owner, question, lasts = claim.owner, ARGV[7], ARGV[8]

-- What is granted is not wished for any more.
local function fulfilled(reply)
    if question then
        take_back_wish(owner, wishes)
    end
    return reply
end

-- One that asks again keeps its place. Without memory for it there is no wish.
local function make_wish()
    local wish = table.concat({owner, claim.ttl, claim.count,
        string.format('%d', now_ms() + lasts), question, counter}, ' ')
    local place, count = wish_of(owner, wishes)
    local written
    if place then
        written = redis.pcall('LSET', wishes, place - 1, wish)
    elseif count < 64 then
        written = redis.pcall('RPUSH', wishes, wish)
    else
        return
    end
    if type(written) == 'number' or not written.err then
        redis.call('PEXPIRE', wishes, lasts)
    end
end

local kind = redis.call('TYPE', lock).ok
if kind == 'none' then
    return fulfilled(grant_alone(claim, lock, holds, counter, {owner, '1'}))
end
if kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local fields = redis.call('HMGET', lock, owner, 'mode')
if fields[2] then
    return wrong_kind('the name is in use as a read/write lock')
end
if fields[1] then
    return fulfilled(grant_again(claim, lock, holds, counter))
end
if question then
    make_wish()
end
return {0, remaining(lock)}
