-- Acquires a fair lock, or gets in line for it: Redisson's RFairLock. Waiters count as alive for
-- `wait` after they last asked, by the server's clock, plus the time of those before them.
--
-- KEYS  lock, queue, timeouts, holds, token counter, requests, channel base (followed by `:` and the
--       waiter's owner)
-- ARGV  owner, ttl in ms, number of tokens, token floor, since (ms, for display), wait in ms,
--       whether to get in line (1, 0), smallest token wanted, number of the question (0: who is first
--       in line wants to ask rather than be granted the lock), publish command
-- Returns {1, first token, number of tokens}
--         {0, ms until the lease in the way or the time of the first in line ends, 0 = unknown}; of one
--         that is to be granted the lock also whether it listens (1, 0): if not, it may miss its turn
--         error WRONGKIND
-- include: exclusive
-- include: clock
-- include: line
-- include: shape

local lock, holds, counter = KEYS[1], KEYS[4], KEYS[5]
local claim = claim_of(ARGV, ARGV[8])
local owner, wait, gets_in_line = claim.owner, tonumber(ARGV[6]), ARGV[7] == '1'
local question = ARGV[9]
local line = {queue = KEYS[2], timeouts = KEYS[3], requests = KEYS[6], channel_base = KEYS[7],
    publish = ARGV[10], patience = wait}

local kind = redis.call('TYPE', lock).ok
if kind ~= 'none' and kind ~= 'hash' then
    return wrong_kind('the name is not that of a lock: it holds a ' .. kind)
end
if kind == 'hash' then
    local fields = redis.call('HMGET', lock, owner, 'mode')
    if fields[2] then
        return wrong_kind('the name is in use as a read/write lock')
    end
    if fields[1] then
        return grant_again(claim, lock, holds, counter)
    end
    if redis.call('EXISTS', holds) == 0 and not is_plain(lock) then
        return not_a_lock()
    end
end

local now = now_ms()
local head, head_alive_until
if kind == 'none' then
    head, head_alive_until = next_in_line(line, now, owner)
else
    head, head_alive_until = first_alive(line, now)
end
if kind == 'none' and not head then
    local alone = redis.call('EXISTS', line.queue) == 0
    local reply = grant_alone(claim, lock, holds, counter, {owner, '1'})
    if alone and redis.call('EXISTS', line.timeouts, line.requests) > 0 then
        -- Times and requests without a place in the line are nobody's.
        drop_if_small(line.timeouts, 'ZCARD')
        drop_if_small(line.requests, 'HLEN')
    end
    return reply
end
if kind == 'none' and head == owner then
    local reply = grant_alone(claim, lock, holds, counter, {owner, '1'})
    local score = redis.call('ZSCORE', line.timeouts, owner)
    strike_out(line, owner)
    move_up(line, later_than(line, '-inf', moved_at_once), time_left_of(score, wait, now))
    return reply
end

local retry, listens = remaining(lock), nil
if gets_in_line then
    local score = redis.call('ZSCORE', line.timeouts, owner)
    local finish = tonumber(score or 0)
    -- One that asks again, whose time is long enough, changes nothing in the line. The first in line
    -- always counts its time anew: those before it may have gone before their time.
    if owner == head or finish <= now + wait then
        -- Whoever is new comes behind the last. The whole line is looked at by nobody else but one in
        -- the middle of it whose time is short, which is rare.
        local before, queued = nil, owner == head
        if not score and not queued then
            before = redis.call('LINDEX', line.queue, '-1')
        end
        local looks_around = score and not queued
        for _, waiter in ipairs(looks_around and redis.call('LRANGE', line.queue, '0', '-1') or {}) do
            if waiter == owner then
                queued = true
                break
            end
            before = waiter
        end
        if not queued then
            redis.call('RPUSH', line.queue, owner)
        end
        if type(redis.pcall('PEXPIRE', line.queue, line_kept_for)) == 'table' then
            if not queued then
                strike_out(line, owner)
            end
            redis.call('PEXPIRE', line.queue, line_kept_for)  -- refused again, as in set_end
        end
        local base = before and tonumber(redis.call('ZSCORE', line.timeouts, before) or 0) or 0
        local until_now = finish
        finish = math.max(base, now) + wait
        if score then
            -- Those behind count their own time from the end of ours.
            move_up(line, later_than(line, score, '-1'), until_now - finish)
        end
        redis.call('ZADD', line.timeouts, finish, owner)
        redis.call('PEXPIRE', line.timeouts, line_kept_for)
    end
    if question ~= '0' then
        listens = hears(line.publish, channel_of(line, owner)) and 1 or 0
        local subscribes = listens == 0 and not score
        local request = string.format('%s %s %d %d %s %s', claim.ttl, claim.count, now + wait,
            subscribes and 2 or listens, question, counter)
        -- Everybody who lives writes again before that.
        set_field(line.requests, math.ceil(finish - now), owner, request)
    end
end

if kind == 'none' then
    -- Nobody released it, so nobody told them; some look only when the lease they saw would have ended.
    tell_waiter(line, head, '0')
end
if head and head ~= owner then
    local head_left = math.max(math.ceil(head_alive_until - now), 1)
    retry = retry == 0 and head_left or math.min(retry, head_left)
end
return {0, retry, listens}
