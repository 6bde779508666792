-- include: giving
-- include: leases
-- include: telling

-- The queue of a fair lock: a list of owners, and for each the time until which it counts as alive.
-- Beside it, ours alone, under the owner: what one of ours wants to be granted when it is its turn,
--     <ttl in ms> <token count> <alive until, by itself> <1: it listened when it last asked; 2: it did
--     not yet, when it first asked> <number of the question> <token counter>
-- and since when another, whose turn it was, has not been heard to listen:
--     deaf <since>
-- A `line` is these three keys, queue, timeouts, requests; how to tell somebody in it, publish and
-- channel_base; and for how many ms one of ours counts as alive, patience.

-- So many are looked at together, and this many times in one run.
local at_a_time, times = 256, 4
-- So many move up when one of those before them goes. The others do when they are as near to the head:
-- until then their times are too long, which nobody minds. In a line of thousands a release would take
-- as many steps otherwise.
local moved_at_once = '64'
-- What nobody clears away goes by itself. Others count on their places in the line for long.
local line_kept_for = '86400000'
-- One of ours gets in line, then subscribes, then asks again. One that has died in between is not
-- waited for any longer. (One that cannot listen asks again all the same.)
local subscribes_within = 500

-- Takes one out of the line.
local function strike_out(line, waiter)
    redis.call('LREM', line.queue, '1', waiter)
    redis.call('ZREM', line.timeouts, waiter)
    redis.call('HDEL', line.requests, waiter)
end

-- Removes what is left of a line. What is very large is somebody else's, or goes by itself: to remove
-- it would keep the server busy.
local function drop_if_small(key, length)
    local size = redis.pcall(length, key)
    if type(size) == 'number' and size <= at_a_time * times then
        redis.call('DEL', key)
    end
end

local function channel_of(line, waiter)
    return line.channel_base .. ':' .. waiter
end

local function tell_waiter(line, waiter, message)
    tell(line.publish, channel_of(line, waiter), message)
end

-- Until when a waiter counts as alive; and, of one of ours, whether it listened when it last asked
-- (`subscribes`: it may be about to). The time in the sorted set is that of all before it and its own
-- together: one of ours has its own beside it, so that many that died together go together.
local function alive_until(line, waiter)
    local note = redis.call('HGET', line.requests, waiter) or ''
    local own, listened = string.match(note, '^%d+ %d+ (%d+) ([012]) ')
    if own then
        return tonumber(own), listened == '2' and 'subscribes' or listened == '1', note
    end
    return tonumber(redis.call('ZSCORE', line.timeouts, waiter) or 0), nil, note
end

-- Drops waiters at the head whose time is over, or that have none: nobody would ever drop them.
-- Returns the first that is alive, and until when.
local function first_alive(line, now)
    for _ = 1, at_a_time * times do
        local head = redis.call('LINDEX', line.queue, '0')
        if not head then
            return nil
        end
        local finish = alive_until(line, head)
        if finish > now then
            return head, finish
        end
        strike_out(line, head)
    end
    return nil
end

-- One that is not ours, at its turn: until when it is waited for. One that is not heard to listen may
-- listen elsewhere, to a replica; it has our patience to come. Many are waited for together, because
-- each is noted when it is first met.
local function called_until(line, waiter, finish, note, now)
    if hears(line.publish, channel_of(line, waiter)) then
        if note ~= '' then
            redis.call('HDEL', line.requests, waiter)
        end
        return finish, true
    end
    local since = tonumber(string.match(note, '^deaf (%d+)$') or 0)
    if since > now then
        since = 0  -- the server's clock was set back
    end
    if since + line.patience <= now and now < since + line.patience + 2000 then
        return 0, false
    end
    if since + line.patience <= now then
        since = now
        local kept_for = 2 * line.patience + 2000
        local left = redis.call('PTTL', line.requests)
        local noted = redis.pcall('HSET', line.requests, waiter, string.format('deaf %.0f', now))
        if type(noted) == 'number' and left < kept_for then
            set_end(line.requests, kept_for)
        end
    end
    return math.min(finish, since + line.patience), false
end

-- Brings one to the head of the line, past those of ours that do not listen at the moment.
local function bring_forward(line, waiter, passed)
    for place = #passed, 1, -1 do
        if redis.pcall('LSET', line.queue, place, passed[place]).err then
            return
        end
    end
    redis.call('LSET', line.queue, '0', waiter)
end

-- Looks for the one whose turn it is among the first in line. Drops the dead. One of ours whose
-- connection is closed is passed over, and keeps its place as long as it may come back. `asker` is
-- there, whatever the server knows of it. Those in `passed` have been passed over already. Returns that
-- one and until when it is waited for; or nothing, and whether there are more to be looked at.
local function look_for_next(line, now, asker, passed)
    local waiters = redis.call('LRANGE', line.queue, #passed, #passed + at_a_time - 1)
    local found, found_until
    for _, waiter in ipairs(waiters) do
        if waiter == asker then
            found, found_until = found or waiter, found_until or now
            break
        end
        local finish, listened, note = alive_until(line, waiter)
        local ours, listens = listened ~= nil, true
        local called = finish
        if listened == 'subscribes' then
            called = math.min(finish, finish - line.patience + subscribes_within)
            listened = called <= now
        end
        if not ours and finish > now then
            finish, listens = called_until(line, waiter, finish, note, now)
            called = finish
        end
        if finish <= now then
            strike_out(line, waiter)
            if not ours then
                -- Should it live after all, it asks, and is in line again.
                tell_waiter(line, waiter, '0')
            end
        elseif found then
            if ours or listens then
                break
            end
        elseif listened and not hears(line.publish, channel_of(line, waiter)) then
            passed[#passed + 1] = waiter
        else
            found, found_until = waiter, called > now and called or finish
            if ours or listens then
                break
            end
        end
    end
    if found and #passed > 0 then
        bring_forward(line, found, passed)
    end
    return found, found_until, #waiters == at_a_time
end

-- Whose turn it is when the lock is free, and until when that one is waited for; or nothing.
local function next_in_line(line, now, asker)
    local passed, found, finish, more = {}, nil, nil, nil
    for _ = 1, times do
        found, finish, more = look_for_next(line, now, asker, passed)
        if found or not more then
            return found, finish
        end
    end
    -- Those behind would be looked at in no run. So many at once have not lost their connection for a
    -- moment: should they live after all, they ask, and are in line again.
    for _, waiter in ipairs(passed) do
        strike_out(line, waiter)
    end
    return nil
end

-- How much those behind the first in line counted on waiting for it, when it is served now: what is
-- left of its time. Never its patience alone: in a line that is never empty times would get older and
-- older, until Java, which looks at nothing else, takes those of us whose turn it is for dead.
local function time_left_of(score, wait, now)
    return tonumber(score or now + wait) - now
end

-- The first `most` of those who are behind the one with this time; -1: all of them.
local function later_than(line, score, most)
    return redis.call('ZRANGEBYSCORE', line.timeouts, '(' .. score, '+inf', 'LIMIT', '0', most)
end

-- Everybody behind one that left counted on waiting for it, too.
local function move_up(line, waiters, wait)
    for _, waiter in ipairs(tonumber(wait) == 0 and {} or waiters) do
        redis.call('ZADD', line.timeouts, 'XX', 'INCR', -wait, waiter)
    end
end
