-- Releases a plain lock: hands it over to the first request whose waiter listens, or else tells all
-- waiters that it is free, as Redisson does; or leaves it behind for a while in nobody's name
-- (`linger`). For an owner that does not have the lock: takes back its request.
--
-- KEYS  lock, holds, channel, list of requests, token counter, turn of the others
-- ARGV  owner, publish command, now (ms, for display), token floor, channels of grants (followed by `:`
--       and a client's id: where that one is told), channel of those of ours who listen, message that
--       tells all who wait (some zeros); linger in ms, if any
-- Returns {1, clients told}, or {0, 0} when the owner does not have it. One that was given the lock
--         does not count: it waits no more. A third element says why nobody could be told
-- Tells zeros, or `granted <number of the question> <first token> <number of tokens> <owner> <lock>`

local lock, holds, channel, requests, counter, turn = unpack(KEYS)
local owner, publish, now, floor, grants, listeners, message, linger = unpack(ARGV)

local fields = redis.pcall('HMGET', lock, owner, 'mode')
-- Not our kind of key is not our lock.
local held = not fields.err and fields[1] and not fields[2]
-- The first, and whether there are others.
local waiting = redis.pcall('LRANGE', requests, '0', '1')

-- What happens most of the time comes first: what is defined below costs time in every run.
local told
if held and not linger and not waiting[1] then
    redis.call('DEL', lock, holds)
    told = redis.pcall(publish, channel, message)
    if told == 0 then
        return {1, 0}
    end
    if type(told) == 'table' then
        return {1, 0, told.err}
    end
end

-- include: clock
-- include: telling
-- include: giving
-- include: places
-- include: turns

-- Gives the lock to the first that still wants it and would hear of it. Where others listen they have
-- a place in this order, ahead of those whom it leaves waiting; if there are more of them than of ours,
-- it is their turn each time, because ours are quicker when they release it. No function: it would cost
-- as much as two calls.
if held and not linger then
    local several = waiting[2] ~= nil
    local subscribers = publish == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
    if several then
        redis.call('DEL', lock, holds)
    elseif not told then
        redis.call('DEL', lock, holds, requests)
    end
    local is_their_turn, kept, dropped = told ~= nil, nil, nil
    while waiting[1] and waiting[1] ~= kept and not is_their_turn do
        local waiter, client, ttl, count, alive_until, question, counter_of_request =
            string.match(waiting[1], '^(([^ ]+):[^ ]+) (%d+) (%d+) (%d+) (%d+) (.+)$')
        local told_at = grants .. ':' .. (client or '')
        local unheard_from, stays
        if waiter and counter_of_request ~= counter then
            counter_of_request, unheard_from = string.match(counter_of_request, '^(.+) unheard (%d+)$')
        end
        local heard = (waiting[1] == others_place
            or counter_of_request == counter and waiter ~= owner and now_ms() < tonumber(alive_until))
            and redis.pcall('PUBSUB', subscribers, told_at, channel, listeners)
        if heard and not heard.err then
            local others = tonumber(heard[4]) - tonumber(heard[6])
            local state = (others > 0 or count ~= '1') and turn_state(turn)
            if state == 'missed' then
                others = 0
            elseif others > 0 or state then
                count = '1'
            end
            local ours = others > 0 and several and redis.call('LLEN', requests) or 1
            if others > 0 and (not waiter or others > ours) then
                is_their_turn = true
            elseif waiter and tonumber(heard[2]) > 0 then
                -- The floor of the one that releases: its connection is to the server as it is now, the
                -- waiter's request may come from before a loss of data.
                local counts, first = pcall(take_tokens, counter, count, tonumber(floor), 0)
                if not counts then
                    told = tell(publish, channel, '0')
                    return {1, told, untold}
                end
                local terms = string.format('%d ', first) .. count .. ' '
                write_hold(lock, holds, waiter, ttl, terms .. now, waiter, '1')
                tell(publish, told_at,
                    'granted ' .. question .. ' ' .. terms .. waiter .. ' ' .. lock)
                if others == 0 then
                    if several then
                        redis.call('LPOP', requests)
                    end
                elseif several then
                    redis.call('LSET', requests, '0', others_place)
                else
                    redis.call('RPUSH', requests, others_place)
                    redis.call('PEXPIRE', requests, turn_kept_for)
                end
                return {1, 0, untold}
            elseif unheard_from then
                -- It is alive, and would find the lock taken whenever it asks. So it is given the lock
                -- for the time until it has to ask, if that will be soon.
                local at = now_ms()
                local left = tonumber(alive_until) - at
                if at >= tonumber(unheard_from) and left > 0 then
                    local counts, first = pcall(take_tokens, counter, count, tonumber(floor), 0)
                    if not counts then
                        told = tell(publish, channel, '0')
                        return {1, told, untold}
                    end
                    write_hold(lock, holds, waiter, math.min(ttl, left),
                        string.format('%d %s %s', first, count, now), waiter, '1')
                    if several then
                        redis.call('LPOP', requests)
                    end
                    return {1, 0}
                end
                stays, kept = true, kept or waiting[1]
            end
        end
        if not is_their_turn or not waiter then
            if not dropped and several and redis.call('LLEN', requests) > most_requests then
                break  -- somebody else's list: all who wait are told, as if it were not there
            end
            dropped = true
            redis.call('LPOP', requests)
            if stays then
                if redis.call('RPUSH', requests, waiting[1]) == 1 then
                    set_end(requests, math.max(alive_until - now_ms(), 1))
                end
            end
            waiting = redis.call('LRANGE', requests, '0', '1')
        end
    end
    told = told or tell(publish, channel, message)
    local count = told > 0 and redis.pcall('PUBSUB', subscribers, channel, listeners)
    local others_listen = count and not count.err and tonumber(count[2]) > tonumber(count[4])
    local state, _, lasts
    if others_listen then
        state, _, lasts = turn_state(turn)
    end
    if others_listen and state ~= 'missed' then
        set_turn(turn, (state == 'seen' and '0' or '') .. #message, turn_kept_for + lasts, lasts)
    end
    return {1, told, untold}
end

-- include: exclusive
-- include: requests
-- include: looks

if held then
    return linger_alone(lock, owner, holds, owner, tonumber(linger))
end
take_back_request(owner, requests)
return refusal(fields, 'HMGET') or not_mine(lock, owner, tonumber(linger or 0))
