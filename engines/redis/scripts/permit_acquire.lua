-- Acquires permits of a semaphore: Redisson's RPermitExpirableSemaphore, whose counter of free
-- permits RSemaphore shares. The counter outlives its users (Redisson's never make one by
-- themselves), and the limit is remembered beside it, once it is certain:
--     limit -> <number>[ ours: the counter is]
--
-- KEYS  semaphore, timeouts, channel, holds, token counter, turn of the others, if any, mark of a latch
-- ARGV  owner, ttl in ms, permits, limit, number of tokens, token floor, since (ms, for display),
--       publish command, 16 bytes for each permit in one string, the last turn of others that it
--       knows to be over (0: none; missing: there are no turns)
-- Returns {1, first token, number of tokens}
--         {0, ms until the first permit expires, 0 = unknown}
--         {0, ms until the turn of the others ends, its number}
--         error WRONGKIND, or WRONGCOUNT when the owner has another number of permits
-- include: permits
-- include: tokens
-- include: others
-- include: numbers

local semaphore, timeouts, channel, holds, counter, turn, latch_mark = unpack(KEYS)
local owner, ttl, permits, limit = ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local count, floor, since = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7]
local publish, all_ids, over = ARGV[8], ARGV[9], ARGV[10]
local ids = ids_in(all_ids)

local kind = redis.call('TYPE', semaphore).ok
if kind ~= 'none' and kind ~= 'string' then
    return wrong_kind('the name is not that of a semaphore: it holds a ' .. kind)
end
if are_foreign(timeouts) then
    return not_permits()
end

local function has_permits(number)
    return wrong_kind(string.format(
        'the semaphore has %.0f permits; all who use it must agree on the limit', number))
end

local now, members = now_ms(), redis.call('ZCARD', timeouts)
if kind == 'none' and members > limit and redis.call('EXISTS', holds) == 0 then
    -- Nothing but their length says that these are permits, so they are left alone.
    return has_permits(members)
end
reclaim(semaphore, timeouts, channel, holds, publish, now, ids)
members = redis.call('ZCARD', timeouts)

-- Whether somebody has permits of whom we know nothing.
local function others_hold()
    local known, fields = 0, redis.call('HGETALL', holds)
    for index = 2, #fields, 2 do
        known = known + (permits_of(fields[index]) or 0)
    end
    return members > known
end

-- How many permits are free, whether the counter must be set to say so, and what is to be remembered
-- of the limit, if it is certain; or nothing and an error.
local function count_free()
    local recorded, ours = string.match(redis.call('HGET', holds, 'limit') or '', '^(%d+)(.*)$')
    recorded = tonumber(recorded)
    local free = kind == 'string' and number_at(semaphore) or nil
    if kind == 'string' and not free then
        return nil, wrong_kind('the name is not that of a semaphore: it holds no number')
    end
    if free and not recorded and latch_mark
        and string.sub(redis.call('GET', latch_mark) or '', 1, 1) == '1' then
        return nil, wrong_kind('the name is in use as a latch')
    end
    if recorded and recorded ~= limit then
        -- Once nobody has a permit, a new limit may be agreed upon, if the counter is ours. With
        -- permits missing from the counter, somebody has some: users of RSemaphore leave no other
        -- trace.
        local agreed = members == 0 and (not free or free == limit)
        if agreed or (members == 0 and free == recorded and ours == ' ours') then
            return limit, true, limit .. (agreed and free and '' or ' ours')
        end
        return nil, has_permits(recorded)
    end
    if not free then
        if members > limit then
            return nil, has_permits(members)
        end
        return limit - members, true, limit .. ' ours'
    end
    local seen = free + members
    if seen > limit or members > limit then
        return nil, has_permits(math.max(seen, members))
    end
    if recorded then
        return free, false, limit .. ours
    end
    if seen == limit then
        return free, false, limit .. ''
    end
    -- Some may be with users of RSemaphore, or the limit is too large. The counter knows, and nobody
    -- gets more than it has. Who uses permits that expire does not use the others as well.
    if members > 0 and others_hold() then
        return nil, has_permits(seen)
    end
    return free, false, nil
end

local function earliest_end()
    local first = tonumber(redis.call('ZRANGE', timeouts, '0', '0', 'WITHSCORES')[2] or never)
    return first < never and math.max(math.ceil(first - now), 1) or 0
end

local free, set_counter, limit_text = count_free()
if not free then
    return set_counter
end

local function remember(first)
    local text = hold_text(first, count, since) .. string.format(' %.0f ', permits) .. all_ids
    write_permits(holds, ttl, owner, text)
    if limit_text then
        redis.call('HSET', holds, 'limit', limit_text)
    end
end

local function grant_again()
    local text = redis.call('HGET', holds, owner)
    if lingers(text) then
        return {0, earliest_end()}
    end
    local first, number = terms_of(text)
    local held = first and permits_of(text)
    if held and held ~= permits then
        return redis.error_reply(string.format('WRONGCOUNT this owner has %.0f permits', held))
    end
    if not first then
        first, number = take_tokens(counter, count, floor, 0), count
        remember(first)
    end
    write_nothing(timeouts)
    prolong(timeouts, ids, now + ttl)
    return granted(first, number)
end

local function grant()
    if members == 0 and redis.call('HEXISTS', holds, 'limit') == 0 then
        may_remove(holds)
    end
    local first = take_tokens(counter, count, floor, 0)
    -- Without their ends nobody would ever count these permits as free again: a server that refuses to
    -- write them does so here.
    redis.call('ZADD', timeouts, 'XX', now + ttl, ids[1])
    if members == 0 then
        -- What holders before left behind, and its ttl, if the name was that of a lock.
        redis.call('DEL', holds)
    end
    remember(first)
    if set_counter then
        redis.call('SET', semaphore, free - permits)
    else
        redis.call('DECRBY', semaphore, permits)
    end
    for _, id in ipairs(ids) do
        redis.call('ZADD', timeouts, now + ttl, id)
    end
    local lifetime = redis.call('PTTL', semaphore)
    if lifetime > 0 then
        redis.call('PEXPIRE', timeouts, lifetime)
        redis.call('PEXPIRE', holds, lifetime)
    end
    return granted(first, count)
end

if redis.call('ZSCORE', timeouts, ids[1]) then
    return grant_again()
end
local their_turn, state
if over and free >= permits then
    their_turn, state = turn_of_others(turn, over)
elseif over and free <= 0 then
    note_that_they_came(turn)
end
if free >= permits and not their_turn then
    local reply = grant()
    end_their_turn(turn, state, over)
    return reply
end
if set_counter then
    redis.call('SET', semaphore, free)
end
return their_turn or {0, earliest_end()}
