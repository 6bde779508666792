-- Acquires several plain locks in one step: all, or none.
--
-- KEYS  for each lock: lock, holds, token counter, turn of the others
-- ARGV  token floor, since (ms, for display); for each lock: owner, ttl in ms, number of tokens,
--       smallest token wanted
-- Returns {1, first token, number of tokens, first token, number of tokens, ...}
--         {0, which one is busy, from 1, ms until the lease in the way ends, 0 = unknown}
--         error WRONGKIND
-- include: exclusive
-- include: turns
-- include: shape

local locks = #KEYS / 4
local held = {}

for index = 1, locks do
    local lock, holds, turn = KEYS[4 * index - 3], KEYS[4 * index - 2], KEYS[4 * index]
    local owner = ARGV[4 * index - 1]
    local there = redis.call('EXISTS', lock, holds, turn) > 0
    local kind = there and redis.call('TYPE', lock).ok or 'none'
    local state, left
    if there and kind == 'none' then
        state, left = turn_at(turn)
    end
    if tonumber(state) and left > turn_kept_for then
        return {0, index, left - turn_kept_for}
    end
    if kind == 'hash' then
        local fields = redis.call('HMGET', lock, owner, 'mode')
        if fields[2] then
            return wrong_kind('the name is in use as a read/write lock: ' .. lock)
        end
        if not fields[1] and redis.call('EXISTS', holds) == 0 and not is_plain(lock) then
            return not_a_lock()
        end
        if not fields[1] then
            return {0, index, remaining(lock)}
        end
        held[index] = true
    elseif kind ~= 'none' then
        return wrong_kind('the name is not that of a lock: ' .. lock .. ' holds a ' .. kind)
    elseif there then
        may_remove(holds)
    end
end

local answer = {1}
for index = 1, locks do
    local lock, holds, counter = KEYS[4 * index - 3], KEYS[4 * index - 2], KEYS[4 * index - 1]
    local first = 4 * index - 1
    local owner, ttl, count, least = ARGV[first], ARGV[first + 1], ARGV[first + 2], ARGV[first + 3]
    local claim = claim_of({owner, ttl, count, ARGV[1], ARGV[2]}, least)
    local grant
    if held[index] then
        grant = grant_again(claim, lock, holds, counter)
    else
        grant = grant_alone(claim, lock, holds, counter, {claim.owner, '1'})
    end
    answer[2 * index] = grant[2]
    answer[2 * index + 1] = grant[3]
end
return answer
