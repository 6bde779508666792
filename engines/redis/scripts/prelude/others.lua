-- include: turns

-- The turns of the others (`turns`) at read/write locks and semaphores; the scripts of plain locks do
-- the same without functions, which cost time in every run.

-- For one of ours that finds free what it asks for; `over` is the last turn that it knows to be over.
-- Returns the refusal if it is the turn of the others; otherwise nothing, and what is known of them.
local function turn_of_others(turn, over)
    local state = redis.call('GET', turn)
    local left = state and redis.call('PTTL', turn) - turn_kept_for or 0
    if left > turn_lasts then
        redis.call('DEL', turn)
        return nil
    end
    if left > 0 and over ~= state then
        return {0, left, tonumber(state)}
    end
    return nil, state
end

-- One of ours was granted something that it found free. If nobody saw the others come, they may not be
-- there.
local function end_their_turn(turn, state, over)
    if state and tonumber(state) then
        redis.call('SET', turn, over == state and 'seen' or 'missed', 'PX', turn_kept_for)
    end
end

-- One of ours finds taken what it asks for: if it was the turn of the others, they came.
local function note_that_they_came(turn)
    if tonumber(redis.call('GET', turn)) then
        redis.pcall('SET', turn, 'seen', 'PX', turn_kept_for)
    end
end

-- It is the turn of the others, if any of them listen. Returns whether they do.
local function begin_their_turn(turn, number, publish, channel, listeners)
    local subscribers = publish == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
    local count = redis.pcall('PUBSUB', subscribers, channel, listeners)
    local listen = not count.err and tonumber(count[2]) > tonumber(count[4])
    if listen and redis.call('GET', turn) ~= 'missed' then
        redis.call('SET', turn, number, 'PX', turn_kept_for + turn_lasts)
    end
    return listen
end
