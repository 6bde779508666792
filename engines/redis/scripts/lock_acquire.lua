-- Acquires a plain lock: a hash at the lock's name with the owner's field, as Redisson's RLock. One
-- that must wait may leave a wish to be given the lock when it is released.
--
-- KEYS  lock, holds, token counter, turn of the others; with a wish: list of wishes
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display); if any: smallest
--       token wanted, the last turn of others that it knows to be over (0: none); with a wish: number
--       of the question, how long the wish lasts in ms, publish command, channel, channel of those of
--       ours who listen
-- Returns {1, first token, number of tokens}: fewer than wanted when others wait, so that a process
--         does not keep the lock among its threads
--         {0, ms until the lease in the way ends, 0 = unknown}
--         {0, ms until the turn of the others ends, its number}
--         error WRONGKIND
-- include: exclusive

local lock, holds, counter, turn, wishes = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local claim = claim_of(ARGV, ARGV[6])
local owner, over, question, lasts = claim.owner, ARGV[7], ARGV[8], ARGV[9]

-- What happens most of the time comes first: what is defined below costs time in every run.
local there = redis.call('EXISTS', lock, turn)
if there == 0 and not question then
    return grant_alone(claim, lock, holds, counter, {owner, '1'})
end

-- include: wishes
-- include: clock
-- include: turns

local kind = there == 0 and 'none' or redis.call('TYPE', lock).ok
if kind ~= 'none' and kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local refusal, reply
if kind == 'none' then
    local state = there > 0 and redis.call('GET', turn)
    local left = state and redis.call('PTTL', turn) - turn_kept_for or 0
    if left > 0 and over ~= state then
        refusal = {0, left, tonumber(state)}
    else
        if state and state ~= 'missed' then
            claim.count = '1'
        elseif question and claim.count ~= '1' then
            local subscribers = ARGV[10] == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
            local count = redis.pcall('PUBSUB', subscribers, ARGV[11], ARGV[12])
            if not count.err and tonumber(count[2]) > tonumber(count[4]) and not state then
                claim.count = '1'
            end
        end
        reply = grant_alone(claim, lock, holds, counter, {owner, '1'})
        if state and tonumber(state) then
            -- If nobody saw them come, they may not be there.
            redis.call('SET', turn, over == state and 'seen' or 'missed', 'PX', turn_kept_for)
        end
    end
else
    local fields = redis.call('HMGET', lock, owner, 'mode')
    if fields[2] then
        return wrong_kind('the name is in use as a read/write lock')
    end
    if fields[1] then
        reply = grant_again(claim, lock, holds, counter)
    else
        if there == 2 and tonumber(redis.call('GET', turn)) then
            redis.pcall('SET', turn, 'seen', 'PX', turn_kept_for)
        end
        refusal = {0, remaining(lock)}
    end
end
if not question then
    return reply or refusal
end
if reply then
    take_back_wish(owner, wishes)  -- what is granted is not wished for any more
    return reply
end

-- One that asks again keeps its place. Without memory for it there is no wish.
local wish = table.concat({owner, claim.ttl, claim.count, string.format('%d', now_ms() + lasts),
    question, counter}, ' ')
local place, count = wish_of(owner, wishes)
local written
if place then
    written = redis.pcall('LSET', wishes, place - 1, wish)
elseif count < 64 then
    written = redis.pcall('RPUSH', wishes, wish)
end
if type(written) == 'number' or written and not written.err then
    set_end(wishes, lasts)
end
return refusal
