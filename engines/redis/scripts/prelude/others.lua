-- include: turns

-- The turns of the others (`turns`) at read/write locks and semaphores; the scripts of plain locks do
-- the same without functions, which cost time in every run.

-- For one of ours that finds free what it asks for; `over` is the last turn that it knows to be over.
-- Returns the refusal if it is the turn of the others; otherwise nothing, and what is known of them.
local function turn_of_others(turn, over)
    local state, left = turn_at(turn)
    if tonumber(state) and left > turn_kept_for and over ~= state then
        return {0, left - turn_kept_for, tonumber(state)}
    end
    return nil, state
end

-- One of ours was granted something that it found free. If nobody saw the others come, they may not be
-- there.
local function end_their_turn(turn, state, over)
    if tonumber(state) then
        local _, _, lasts = turn_state(turn)
        if over == state then
            set_turn(turn, 'seen', turn_kept_for, lasts)
        else
            turn_was_missed(turn, missed_by_known, lasts)
        end
    end
end

-- One of ours finds taken what it asks for: if it was the turn of the others, they came.
local function note_that_they_came(turn)
    local state, _, lasts = turn_state(turn)
    if tonumber(state) then
        pcall(set_turn, turn, 'seen', turn_kept_for, lasts)
    end
end

-- It is the turn of the others, if any of them listen. Returns whether they do.
local function begin_their_turn(turn, number, publish, channel, listeners)
    local subscribers = publish == 'spublish' and 'SHARDNUMSUB' or 'NUMSUB'
    local count = redis.pcall('PUBSUB', subscribers, channel, listeners)
    local listen = not count.err and tonumber(count[2]) > tonumber(count[4])
    local state, _, lasts
    if listen then
        state, _, lasts = turn_state(turn)
    end
    if listen and state ~= 'missed' then
        set_turn(turn, number, turn_kept_for + lasts, lasts)
    end
    return listen
end
