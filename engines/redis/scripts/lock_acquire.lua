-- Acquires a plain lock: a hash at the lock's name with the owner's field, as Redisson's RLock. One
-- that must wait may leave a request: the release then hands the lock over to it.
--
-- KEYS  lock, holds, token counter, turn of the others; with a request: list of requests
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display); if any: smallest
--       token wanted, the last turn of others that it knows to be over (0: none); with a request:
--       number of the question, how long the request lasts in ms, publish command, channel, channel of
--       our listeners, channels of grants (followed by `:` and a client's id: where that one is told)
-- Returns {1, first token, number of tokens}: fewer than wanted when others wait, so that a process
--         does not keep the lock among its threads
--         {0, ms until the lease in the way ends, 0 = unknown}
--         {0, ms until the turn of the others ends, its number}
--         One that finds the lock free and would be served before another that came first is refused;
--         that one is given the lock, as by a release
--         error WRONGKIND
-- include: exclusive

local lock, holds, counter, turn, requests = KEYS[1], KEYS[2], KEYS[3], KEYS[4], KEYS[5]
local claim = claim_of(ARGV, ARGV[6])
local owner, over, question, lasts = claim.owner, ARGV[7], ARGV[8], ARGV[9]

-- What happens most of the time comes first: what is defined below costs time in every run.
local there = redis.call('EXISTS', lock, turn)
if there == 0 and not question then
    return grant_alone(claim, lock, holds, counter, {owner, '1'})
end

-- include: requests
-- include: clock
-- include: turns
-- include: shape

local kind = there == 0 and 'none' or redis.call('TYPE', lock).ok
if kind ~= 'none' and kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
local refusal, reply
if kind == 'none' then
    local state, left, lasts
    if there > 0 then
        state, left, lasts = turn_at(turn)
    end
    local number = tonumber(state)
    local is_over = number and number == tonumber(over)
    if number and left > turn_kept_for and not is_over then
        refusal = {0, left - turn_kept_for, number}
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
        if question then
-- include: giving

            -- Hands the free lock over to the first request whose waiter would hear of it, unless that
            -- is the one that asks. The last holder subscribes last, and is the first to hear that the
            -- lock is free again: without this it would have it most of the time.
            local publish, waiting = ARGV[10], redis.pcall('LRANGE', requests, '0', '1')
            local request = waiting[1] == others_place and waiting[2] or waiting[1]
            local waiter, client, ttl, count, alive_until, its_question, its_counter =
                string.match(request or '', '^(([^ ]+):[^ ]+) (%d+) (%d+) (%d+) (%d+) (.+)$')
            local told_at = ARGV[13] .. ':' .. (client or '')
            if waiter and waiter ~= owner and its_counter == counter
                and now_ms() < tonumber(alive_until) and hears(publish, told_at) then
                may_remove(holds)
                count = claim.count == '1' and '1' or count
                local first = take_tokens(counter, count, claim.floor, 0)
                local terms = string.format('%d ', first) .. count .. ' '
                redis.call('DEL', lock, holds)
                redis.call('LREM', requests, '1', request)
                write_hold(lock, holds, waiter, ttl, terms .. claim.since, waiter, '1')
                -- One that cannot be told asks soon.
                redis.pcall(publish, told_at,
                    'granted ' .. its_question .. ' ' .. terms .. waiter .. ' ' .. lock)
                refusal = {0, remaining(lock)}
            end
        end
        if not refusal then
            reply = grant_alone(claim, lock, holds, counter, {owner, '1'})
        end
        if is_over then
            set_turn(turn, 'seen', turn_kept_for, lasts)
        elseif number then
            -- If nobody saw them come, they may not be there.
            local known = string.sub(state, 1, 1) == '0'
            turn_was_missed(turn, known and missed_by_known or missed_by_unknown, lasts)
        end
    end
else
    local fields = redis.call('HMGET', lock, owner, 'mode')
    if fields[2] then
        return wrong_kind('the name is in use as a read/write lock')
    end
    if fields[1] then
        reply = grant_again(claim, lock, holds, counter)
    elseif redis.call('EXISTS', holds) == 0 and not is_plain(lock) then
        return not_a_lock()
    else
        local state, _, lasts
        if there == 2 then
            state, _, lasts = turn_state(turn)
        end
        if tonumber(state) or state == 'missed' and redis.call('EXISTS', holds) == 0 then
            pcall(set_turn, turn, 'seen', turn_kept_for, lasts)
        end
        refusal = {0, remaining(lock)}
    end
end
if not question then
    return reply or refusal
end
if reply then
    take_back_request(owner, requests)  -- it waits no more
    return reply
end

-- One that asks again keeps its place. Without memory for it there is no request.
local now = now_ms()
local request = table.concat({owner, claim.ttl, claim.count, string.format('%d', now + lasts), question,
    counter}, ' ')
local subscribers = ARGV[10] == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
local heard = redis.pcall('PUBSUB', subscribers, ARGV[13] .. ':' .. string.match(owner, '^[^:]*'))
if not heard.err and tonumber(heard[2]) == 0 then
    request = request .. string.format(' unheard %d', now + lasts / 4)
end
local place, count = request_of(owner, requests)
local written
if not place and count > most_requests then
    return refusal  -- nobody knows whose list it is: this one waits without a place
elseif place or count == most_requests then
    written = redis.pcall('LSET', requests, (place or 0) - 1, request)
else
    written = redis.pcall('RPUSH', requests, request)
end
if type(written) == 'number' or written and not written.err then
    set_end(requests, lasts)
elseif written and not string.find(written.err, 'OOM', 1, true)
    and not string.find(written.err, 'WRONGTYPE', 1, true) then
    -- A missing permission is told, not made up for in silence.
    return redis.error_reply(written.err .. (place and ' in `LSET`' or ' in `RPUSH`'))
end
return refusal
